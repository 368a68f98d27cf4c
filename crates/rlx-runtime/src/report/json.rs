//! Reports as JSON.

use super::{MemoryReport, Origin, Report, StepRecord};
use serde_json::{Map, Value, json};

impl Report {
    /// The report as one JSON object. The keys are the names of the fields; times are in milliseconds.
    pub fn to_json(&self) -> Value {
        let ports = |ports: &[(String, String)]| {
            ports.iter().map(|(name, ty)| json!({ "name": name, "type": ty })).collect::<Vec<_>>()
        };
        let compile = self.compile.to_json();
        json!({
            "graph": self.graph,
            "device": self.compile.target,
            "threads": self.threads,
            "inputs": ports(&self.inputs),
            "outputs": ports(&self.outputs),
            "symbols": self.symbols,
            "passes": compile["passes"],
            "composites": compile["composites"],
            "placement": self.placement.iter().map(|p| json!({
                "device": p.device, "steps": p.steps, "reason": p.reason,
            })).collect::<Vec<_>>(),
            "init_steps": self.init_steps.iter().map(StepRecord::to_json).collect::<Vec<_>>(),
            "steps": self.steps.iter().map(StepRecord::to_json).collect::<Vec<_>>(),
            "weights": {
                "count": self.weights.count,
                "bytes": self.weights.bytes,
                "layouts": self.weights.layouts.iter().map(|l| json!({
                    "layout": l.layout, "count": l.count, "bytes": l.bytes,
                })).collect::<Vec<_>>(),
                "derived_bytes": self.weights.derived_bytes,
            },
            "memory": self.memory.as_ref().map(MemoryReport::to_json),
        })
    }
}

impl StepRecord {
    /// The record as a JSON object.
    pub fn to_json(&self) -> Value {
        let reads = |origin: &Origin| match origin {
            Origin::Input(input) => json!({ "input": input }),
            Origin::Step(step) => json!({ "step": step }),
            Origin::Constant => json!("constant"),
        };
        json!({
            "index": self.index,
            "op": self.op,
            "kernel": self.kernel,
            "reason": self.reason,
            "operands": self.operands,
            "reads": self.reads.iter().map(reads).collect::<Vec<_>>(),
            "results": self.results,
            "bound": self.bound,
            "outputs": self.outputs,
            "region": self.region.as_ref().map(|region| json!({
                "nodes": region.nodes, "operations": region.operations, "body": region.body,
            })),
            "copy": self.copy,
            "dynamic": self.dynamic,
            "binds": self.binds,
            "segment": self.segment,
            "bodies": self.bodies,
            "locations": self.locations,
        })
    }
}

impl MemoryReport {
    /// The report as a JSON object; sizes in bytes.
    pub fn to_json(&self) -> Value {
        let sizes: Map<String, Value> =
            self.sizes.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        json!({
            "sizes": sizes,
            "peak": self.peak(),
            "lower_bound": self.lower_bound(),
            "waste": self.waste(),
            "unknown": self.unknown,
            "segments": self.segments.iter().map(|segment| json!({
                "steps": [segment.steps.start, segment.steps.end],
                "peak": segment.peak,
                "lower_bound": segment.lower_bound,
                "blocks": segment.blocks.iter().map(|b| json!({
                    "what": b.what, "scratch": b.scratch, "offset": b.offset, "bytes": b.bytes,
                    "first": b.first, "last": b.last,
                })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        })
    }
}
