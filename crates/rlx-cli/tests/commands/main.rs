//! The `rlx` command as a user meets it: each test starts the program.

mod bench;
mod completions;
mod devices;
mod explain;
mod markup;
mod run;
mod verify;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A product with a constant, a region, a softmax and a sum over rows; sizes are symbolic.
pub(crate) const SMALL: &str = r#"rlx 1
graph "small <&> model"(%x: f32[n, 3], %bias: f32[2]) {
  %w = constant<value=f32[3, 2] [1.0, -2.0, 0.5, 3.0, -1.0, 0.25]>()
  %xw = dot<lhs_contract=[1], rhs_contract=[0]>(%x, %w) @["layer/<MatMul>"]
  %b = broadcast<dims=[n, 2]>(%bias)
  %a = add(%xw, %b) @["layer/Add"]
  %t = tanh(%a)
  %s = softmax<axis=-1>(%t)
  %r = reduce_sum<axes=[1], keep_dims=false>(%t)
  return "probabilities" = %s, "sums" = %r
}
"#;

/// A loop of `n` trips in each of the `n` trips of another: long work on little memory.
pub(crate) const LONG: &str = r#"rlx 1
graph "long"(%start: f32[], %x: f32[n]) {
  %r = scan<body=graph "outer"(%c: f32[], %row: f32[], %all: f32[n]) {
    %s = scan<body=graph "inner"(%c: f32[], %x: f32[]) { %s = add(%c, %x) return "c" = %s }, carried=1, scanned=1, length=n, reverse=false>(%c, %all) : f32[]
    return "c" = %s
  }, carried=1, scanned=1, length=n, reverse=false>(%start, %x, %x) : f32[]
  return "sum" = %r
}
"#;

/// A folder that goes away with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("rlx-cli-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file with this text.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program with these arguments, not yet started.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rlx"));
    command.args(arguments);
    command
}

pub(crate) fn rlx(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// What a run that must end well printed.
pub(crate) fn printed(arguments: &[&str]) -> String {
    let output = rlx(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The last line of a run that must end well, as JSON.
pub(crate) fn json(arguments: &[&str]) -> Value {
    let printed = printed(arguments);
    serde_json::from_str(printed.lines().last().unwrap()).unwrap()
}

/// The exit code and the message of a run that must fail.
pub(crate) fn refused(arguments: &[&str]) -> (i32, String) {
    let output = rlx(arguments);
    assert!(!output.status.success(), "{arguments:?} went well");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

pub(crate) fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
