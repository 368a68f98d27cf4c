//! `cargo xtask check`: formatting, lints and documentation, warnings being errors.

use crate::context::Context;
use crate::process;
use crate::test::PROFILE;

pub(crate) fn run(context: &Context) -> anyhow::Result<()> {
    let cargo = || {
        let mut command = process::cargo();
        command.current_dir(&context.repository);
        command
    };
    eprintln!("== formatting");
    process::run(cargo().args(["fmt", "--all", "--check"]))?;
    process::run(cargo().args(["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"]))?;
    eprintln!("== lints");
    process::run(
        cargo()
            .args(["clippy", "--workspace", "--all-targets", "--profile", PROFILE])
            .args(["--", "--deny", "warnings"]),
    )?;
    eprintln!("== documentation");
    process::run(
        cargo()
            .args(["doc", "--workspace", "--no-deps", "--profile", PROFILE])
            .env("RUSTDOCFLAGS", "--deny warnings"),
    )?;
    eprintln!("formatting, lints and documentation are clean");
    Ok(())
}
