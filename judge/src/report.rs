//! What tasks with `--json` print: one object on one line, the last of standard output.
//!
//! Everything a person reads goes to standard error, so that `cargo xtask TASK --json | tail -1` and
//! `… | jq` both work.

use std::io::Write;

use serde_json::Value;

/// Prints `object` as one line to standard output.
pub(crate) fn print_json(object: &Value) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{object}")?;
    Ok(output.flush()?)
}
