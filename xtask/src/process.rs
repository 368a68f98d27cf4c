//! Running other programs, with errors that name the command line.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// Runs `command` with this program's terminal; an error unless it succeeds.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| starting(command))?;
    if !status.success() {
        bail!("`{}` failed: {status}", line(command));
    }
    Ok(())
}

/// Runs `command` and gives what it wrote to its standard output, without the closing newline.
/// The standard error goes to this program's.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stderr(Stdio::inherit()).output().with_context(|| starting(command))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", line(command), output.status);
    }
    let text = String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` wrote something else than UTF-8", line(command)))?;
    Ok(text.trim_end().to_owned())
}

/// Runs `command`, and shows `watch` each line that it writes, once it is passed on to this
/// program's standard error.
pub(crate) fn run_watching(command: &mut Command, mut watch: impl FnMut(&str)) -> anyhow::Result<()> {
    let (reader, writer) = std::io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().with_context(|| starting(command))?;
    // The command holds the writing ends, too: the reader would wait for them for ever.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    for text in BufReader::new(reader).split(b'\n') {
        let text = String::from_utf8_lossy(&text?).into_owned();
        eprintln!("{text}");
        watch(&text);
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{}` failed: {status}", line(command));
    }
    Ok(())
}

/// Whether `command` can be started and succeeds; what it writes is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The cargo that runs this program, or the one on the path.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").as_deref().unwrap_or(OsStr::new("cargo")))
}

fn starting(command: &Command) -> String {
    format!("starting `{}`", line(command))
}

/// The command as one line for messages; not quoted for a shell.
fn line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        let _ = write!(line, " {}", argument.to_string_lossy());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn failure_names_the_command_and_its_status() {
        let error = run(&mut shell("exit 3")).unwrap_err().to_string();
        assert!(error.contains("sh -c exit 3") && error.contains('3'), "{error}");
    }

    #[test]
    fn program_that_is_not_there_is_named() {
        let error = run(&mut Command::new("no-such-program-of-rlx")).unwrap_err().to_string();
        assert!(error.contains("no-such-program-of-rlx"), "{error}");
    }

    #[test]
    fn watching_sees_every_line_of_both_streams() {
        let mut lines = Vec::new();
        let mut command = shell("echo out; echo err >&2; printf unfinished");
        run_watching(&mut command, |line| lines.push(line.to_owned())).unwrap();
        assert_eq!(lines, ["out", "err", "unfinished"]);
    }
}
