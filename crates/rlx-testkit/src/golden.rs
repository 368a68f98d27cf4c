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
    let entries = match format::parse(&entries_of(text, op)) {
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

/// The text with empty lines in place of the entries of other operations: a file serves many, and reading all its numbers
/// for each of them takes long. Lines keep their numbers.
fn entries_of(text: &str, op: &str) -> String {
    let own = format!("case \"{op}/");
    let mut kept = true;
    let mut lines = String::with_capacity(text.len());
    for line in text.lines() {
        if line.starts_with("case ") {
            kept = line.starts_with(&own);
        }
        lines.push_str(if kept { line } else { "" });
        lines.push('\n');
    }
    lines
}

/// The same cases with a symbol for each size above 1 of their inputs, equal sizes sharing one.
pub fn symbolic_golden(text: &str, op: &str) -> Vec<Case> {
    golden(&with_symbols(&entries_of(text, op)), op)
        .into_iter()
        .map(|case| {
            let name = format!("{}_symbolic", case.name);
            case.named(name)
        })
        .collect()
}

/// The text with the sizes above 1 in the parameters of graphs replaced by symbols.
fn with_symbols(text: &str) -> String {
    let line_with_symbols = |line: &str| {
        let header = line.strip_prefix("graph ").and_then(|rest| Some((rest.find('(')?, rest.find(") {")?)));
        let Some((open, close)) = header else { return line.to_string() };
        let (open, close) = (open + "graph ".len(), close + "graph ".len());
        let mut symbols = String::new();
        for part in line[open..close].split_inclusive(['[', ',', ']']) {
            let (word, end) = part.split_at(part.len() - usize::from(part.ends_with(['[', ',', ']'])));
            match word.trim().parse::<usize>() {
                Ok(size) if size > 1 => symbols.push_str(&word.replace(word.trim(), &format!("size{size}"))),
                _ => symbols.push_str(word),
            }
            symbols.push_str(end);
        }
        format!("{}{symbols}{}", &line[..open], &line[close..])
    };
    text.lines().map(line_with_symbols).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_without_recorded_cases_is_noticed() {
        let cases = golden("", "exp");
        assert_eq!(cases[0].graph.clone().map(|_| ()), Err("the golden file has no case of exp".to_string()));
    }

    #[test]
    fn entry_that_does_not_read_fails_for_its_operation_with_its_line() {
        let text = "case \"exp/a\"\nnonsense\ncase \"log/b\"\nnonsense\n";
        let message = |op| golden(text, op)[0].graph.clone().map(|_| ()).unwrap_err();
        assert!(message("exp").starts_with("line 2"), "{}", message("exp"));
        assert!(message("log").starts_with("line 4"), "{}", message("log"));
    }

    #[test]
    fn sizes_of_parameters_become_symbols() {
        let text = "graph \"case\"(%x0: f32[2, 1, 13], %s: i64[]) {\n  %y = neg(%x0) return \"y\" = %y }\nrun: f32[2, 1, 13] []";
        let expected = text.replace("%x0: f32[2, 1, 13]", "%x0: f32[size2, 1, size13]");
        assert_eq!(with_symbols(text), expected);
    }
}
