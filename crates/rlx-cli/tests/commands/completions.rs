//! `rlx completions`.

use crate::printed;

#[test]
fn every_command_is_completed_in_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(&["completions", shell]);
        for command in ["run", "explain", "bench", "verify", "inspect", "print", "devices"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}
