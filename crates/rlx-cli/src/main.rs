//! The `rlx` command.

#[cfg_attr(not(test), expect(dead_code, reason = "`rlx run` is not there yet"))]
mod input;

fn main() {}
