//! The table of operators. Each family file of [`crate::ops`] lists its own, one line an operator, with the operator
//! set versions in which its schema changed; a node is imported under the latest of them that its model's operator
//! set includes.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::ops;
use crate::values::Outputs;

/// The newest operator set of `ai.onnx` whose changes the table knows (onnx 1.23.2).
pub const NEWEST_OPSET: i64 = 28;

/// What a handler gives: the node's outputs, or what is wrong.
pub(crate) type Handled = Result<Outputs, NodeProblem>;

/// Builds the nodes of a graph that are equivalent to one node of a model.
pub(crate) type Handler = fn(&mut NodeContext<'_, '_>) -> Handled;

/// One operator.
pub(crate) struct Operator {
    /// The domain; empty for `ai.onnx`.
    pub(crate) domain: &'static str,
    /// The type.
    pub(crate) name: &'static str,
    /// The operator set versions that changed the schema, ascending.
    pub(crate) since: &'static [i64],
    /// What imports it.
    pub(crate) import: Handler,
}

/// An operator of ONNX's own domain.
pub(crate) const fn onnx(name: &'static str, since: &'static [i64], import: Handler) -> Operator {
    Operator { domain: "", name, since, import }
}

/// An operator of another domain.
pub(crate) const fn of_domain(
    domain: &'static str,
    name: &'static str,
    since: &'static [i64],
    import: Handler,
) -> Operator {
    Operator { domain, name, since, import }
}

/// The domain as the table has it: `ai.onnx` is the empty one.
pub(crate) fn normal_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

static TABLE: LazyLock<FxHashMap<(&str, &str), &Operator>> = LazyLock::new(|| {
    let all = ops::FAMILIES.iter().flat_map(|(_, operators)| operators.iter());
    all.map(|operator| ((operator.domain, operator.name), operator)).collect()
});

/// The operator and the version of its schema that `opset` includes.
pub(crate) fn find(domain: &str, name: &str, opset: i64) -> Option<(&'static Operator, i64)> {
    let operator = TABLE.get(&(normal_domain(domain), name)).copied()?;
    let since = operator.since.iter().rev().find(|since| **since <= opset)?;
    Some((operator, *since))
}

/// One operator of the coverage table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// The domain; `ai.onnx` for ONNX's own.
    pub domain: &'static str,
    /// The type.
    pub operator: &'static str,
    /// The family file.
    pub family: &'static str,
    /// The schema versions that are told apart.
    pub since: &'static [i64],
}

/// Every operator that is imported, by domain and name; the coverage page is made from it.
pub fn coverage() -> Vec<Coverage> {
    let mut all: Vec<Coverage> = ops::FAMILIES
        .iter()
        .flat_map(|(family, operators)| {
            operators.iter().map(|o| Coverage {
                domain: if o.domain.is_empty() { "ai.onnx" } else { o.domain },
                operator: o.name,
                family,
                since: o.since,
            })
        })
        .collect();
    all.sort_by_key(|c| (c.domain, c.operator));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_operator_is_listed_twice() {
        let all = coverage();
        for pair in all.windows(2) {
            let same = (pair[0].domain, pair[0].operator) == (pair[1].domain, pair[1].operator);
            assert!(!same, "{} is listed twice", pair[0].operator);
        }
    }

    #[test]
    fn schema_versions_ascend() {
        for c in coverage() {
            assert!(c.since.windows(2).all(|w| w[0] < w[1]) && !c.since.is_empty(), "{}", c.operator);
        }
    }

    /// The versions of each operator of the onnx package, from the oldest on.
    fn schemas() -> FxHashMap<(&'static str, &'static str), Vec<i64>> {
        let lines = include_str!("operators.txt").lines().filter(|line| !line.starts_with('#'));
        let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
        words
            .map(|w| ((w[0], w[1]), w[2..].iter().map(|v| v.parse().expect("a version")).collect()))
            .collect()
    }

    /// Operators that onnxruntime writes into the domain of ONNX, which has no such schema or only a later one.
    const OF_ONNXRUNTIME: &[&str] = &["LayerNormalization", "SimplifiedLayerNormalization"];

    #[test]
    fn the_table_knows_every_version_of_its_operators() {
        let schemas = schemas();
        let of_onnx = |c: &Coverage| c.domain.starts_with("ai.onnx") && !OF_ONNXRUNTIME.contains(&c.operator);
        for c in coverage().into_iter().filter(of_onnx) {
            let all = &schemas[&(c.domain, c.operator)];
            let known: Vec<i64> = all.iter().copied().filter(|v| *v >= c.since[0]).collect();
            assert_eq!(c.since, known, "{}", c.operator);
        }
    }
}
