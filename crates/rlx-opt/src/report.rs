//! What the compiler did, and why: kept with the program, printed by `rlx explain`.

use serde_json::{Value, json};
use std::time::Duration;

/// One pass.
#[derive(Clone, Debug)]
pub struct PassRecord {
    /// Its name.
    pub name: &'static str,
    /// How long it took.
    pub time: Duration,
    /// Nodes before, subgraphs included.
    pub nodes_before: usize,
    /// Nodes after.
    pub nodes_after: usize,
    /// What was done, and what was not and why.
    pub notes: Vec<String>,
}

/// What became of a composite.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fate {
    /// Recognised in a chain of simpler operations.
    Raised,
    /// Run by a kernel of the target.
    Native,
    /// Replaced by its decomposition.
    Decomposed {
        /// Why the target does not run it.
        reason: String,
    },
}

impl Fate {
    /// The word in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Fate::Raised => "raised",
            Fate::Native => "native",
            Fate::Decomposed { .. } => "decomposed",
        }
    }

    /// Why; empty where there is nothing to explain.
    pub fn reason(&self) -> &str {
        match self {
            Fate::Decomposed { reason } => reason,
            Fate::Raised | Fate::Native => "",
        }
    }
}

/// Composites of one name with one fate.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CompositeRecord {
    /// The composite's name.
    pub name: &'static str,
    /// What became of it.
    pub fate: Fate,
    /// How many there are, those in other composites' decompositions included.
    pub times: usize,
}

/// Everything the compiler has to say about one program.
#[derive(Clone, Debug, Default)]
pub struct CompileReport {
    /// The target's name.
    pub target: String,
    /// The passes in order.
    pub passes: Vec<PassRecord>,
    /// What became of composites, by name.
    pub composites: Vec<CompositeRecord>,
}

impl CompileReport {
    /// The time of all passes.
    pub fn time(&self) -> Duration {
        self.passes.iter().map(|p| p.time).sum()
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        let passes: Vec<Value> = self
            .passes
            .iter()
            .map(|p| {
                json!({
                    "name": p.name,
                    "ms": p.time.as_secs_f64() * 1e3,
                    "nodes_before": p.nodes_before,
                    "nodes_after": p.nodes_after,
                    "notes": p.notes,
                })
            })
            .collect();
        let composites: Vec<Value> = self
            .composites
            .iter()
            .map(|c| json!({ "name": c.name, "fate": c.fate.name(), "reason": c.fate.reason(), "times": c.times }))
            .collect();
        json!({ "target": self.target, "passes": passes, "composites": composites })
    }
}
