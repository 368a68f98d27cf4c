//! Cases recorded from outside references by the scripts under `references/cases/`.

use crate::case::{Case, Expect, Stage, case};
use crate::format::{self, Directive, Outcome};

/// The cases of the operation `op` in the text of a file under `golden/`, given by `include_str!`.
///
/// A file that does not read, or has nothing for `op`, gives a case that fails and says so.
pub fn golden(text: &str, op: &str) -> Vec<Case> {
    let broken = |message: String| {
        let mut broken = case(op, "golden", "() { return }");
        broken.graph = Err(message);
        vec![broken]
    };
    let entries = match format::parse(text) {
        Ok(entries) => entries,
        Err(e) => return broken(e.to_string()),
    };
    let mut cases = Vec::new();
    for entry in entries.iter().filter(|e| e.op == op) {
        let made = case(op, &format!("golden_{}", entry.name), &entry.graph).within(entry.tolerance.clone());
        for (i, directive) in entry.directives.iter().enumerate() {
            let made = if i == 0 { made.clone() } else { made.clone().named(format!("{}_{i}", made.name)) };
            cases.push(match directive {
                Directive::Run { inputs, outcome } => {
                    let expect = match outcome {
                        Outcome::Values(values) => Expect::Values(values.clone()),
                        Outcome::Error(text) => Expect::Fails(Stage::Run, text.clone()),
                    };
                    made.inputs(inputs.iter().cloned()).expecting(expect)
                }
                Directive::Error(text) => made.fails(Stage::Build, text),
                Directive::Pass { name, .. } => {
                    return broken(format!("line {}: pass {name} in a golden file", entry.line));
                }
            });
        }
    }
    if cases.is_empty() { broken(format!("the golden file has no case of {op}")) } else { cases }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_without_recorded_cases_is_noticed() {
        let cases = golden("", "exp");
        assert_eq!(cases[0].graph.clone().map(|_| ()), Err("the golden file has no case of exp".to_string()));
    }
}
