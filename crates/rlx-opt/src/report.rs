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

/// Everything the compiler has to say about one program.
#[derive(Clone, Debug, Default)]
pub struct CompileReport {
    /// The target's name.
    pub target: String,
    /// The passes in order.
    pub passes: Vec<PassRecord>,
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
        json!({ "target": self.target, "passes": passes })
    }
}
