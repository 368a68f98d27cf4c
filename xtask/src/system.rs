//! What tasks need of the system itself, installed where that is possible.
//!
//! On Debian and its kin, and as root (as in a CI container), a missing package is installed;
//! anywhere else the error says what to type.

use std::process::Command;

use anyhow::bail;

use crate::process;

/// Makes sure that `present` holds, by installing the Debian package `package` when it does not.
/// `what` names the need for messages.
pub(crate) fn require(what: &str, package: &str, present: impl Fn() -> bool) -> anyhow::Result<()> {
    if present() {
        return Ok(());
    }
    let has_apt = process::succeeds(Command::new("apt-get").arg("--version"));
    if !has_apt {
        bail!("{what} is missing; install it (the package is called {package} on Debian)");
    }
    if !is_root() {
        bail!("{what} is missing; install it with `sudo apt-get install {package}`");
    }
    eprintln!("{what} is missing: installing the package {package}");
    // A failed update is no reason to stop: the lists that are there may do.
    if let Err(error) = process::run(&mut apt(&["update", "--quiet"])) {
        eprintln!("{error:#}");
    }
    process::run(&mut apt(&["install", "--quiet", "--yes", "--no-install-recommends", package]))?;
    if !present() {
        bail!("{what} is still missing after `apt-get install {package}`");
    }
    Ok(())
}

fn apt(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments);
    command
}

fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|user| user == "0")
}
