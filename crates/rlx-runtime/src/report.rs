//! What an executable is: everything that was decided on the way from the graph to the program, and why.
//!
//! [`Executable::report`](crate::Executable::report) makes a [`Report`]; `rlx explain` shows it. How memory is laid out
//! depends on sizes: [`Executable::plan_memory`](crate::Executable::plan_memory) tells for given ones.

mod json;
mod steps;

pub(crate) use steps::{init_steps, memory, steps};

use rlx_opt::CompileReport;
use std::ops::Range;

/// The full account of an executable.
#[derive(Clone, Debug)]
pub struct Report {
    /// The graph's name.
    pub graph: String,
    /// The number of threads that steps share.
    pub threads: usize,
    /// Inputs: names and types.
    pub inputs: Vec<(String, String)>,
    /// Outputs: names and types.
    pub outputs: Vec<(String, String)>,
    /// The symbols in the inputs' sizes: what has to be known to plan memory.
    pub symbols: Vec<String>,
    /// The passes, and what became of composites.
    pub compile: CompileReport,
    /// Where steps run.
    pub placement: Vec<Placement>,
    /// What runs once, at load.
    pub init_steps: Vec<StepRecord>,
    /// What runs each time.
    pub steps: Vec<StepRecord>,
    /// Constants in memory.
    pub weights: WeightReport,
    /// The memory of the last run that ended well, if there was one.
    pub memory: Option<MemoryReport>,
}

/// Which steps run on a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The device's name.
    pub device: String,
    /// How many of the program's steps.
    pub steps: usize,
    /// Why there.
    pub reason: String,
}

/// One step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepRecord {
    /// Its index among the steps (or the init steps).
    pub index: usize,
    /// The operation's name; `region` for a fused one, `copy` for a copy.
    pub op: String,
    /// The kernel.
    pub kernel: String,
    /// Why this kernel; of a copy, who needs it.
    pub reason: String,
    /// The operands' types.
    pub operands: Vec<String>,
    /// Where each operand comes from.
    pub reads: Vec<Origin>,
    /// The results' types.
    pub results: Vec<String>,
    /// The results' types with the sizes of the last run; empty if there was none.
    pub bound: Vec<String>,
    /// The outputs of the program that it writes.
    pub outputs: Vec<String>,
    /// What a region computes.
    pub region: Option<RegionRecord>,
    /// Whether it is a copy that the layout asked for.
    pub copy: bool,
    /// Whether the sizes of its results are known only when it has run.
    pub dynamic: bool,
    /// The symbols that have values once it has run.
    pub binds: Vec<String>,
    /// The segment that it belongs to: steps whose sizes are known together.
    pub segment: usize,
    /// The steps of its subgraphs, in order.
    pub bodies: Vec<usize>,
    /// Which nodes of the model it comes from.
    pub locations: Vec<String>,
}

/// A fused body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegionRecord {
    /// The operations in order, inputs and constants left out.
    pub operations: Vec<String>,
    /// How many nodes the body has.
    pub nodes: usize,
    /// The body in the text form.
    pub body: String,
}

/// Where an operand comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The input at this index.
    Input(usize),
    /// The step at this index, which wrote the memory last.
    Step(usize),
    /// A constant of the model, or what follows from constants.
    Constant,
}

/// Constants in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WeightReport {
    /// How many constants the program reads.
    pub count: usize,
    /// Their bytes, as the model holds them.
    pub bytes: usize,
    /// Copies in other layouts, shared by all executables of the session.
    pub layouts: Vec<LayoutRecord>,
    /// Bytes that init steps computed.
    pub derived_bytes: usize,
}

/// Copies of weights in one layout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayoutRecord {
    /// The layout's name.
    pub layout: String,
    /// How many weights.
    pub count: usize,
    /// Their bytes.
    pub bytes: usize,
}

/// Where temporaries lie, for some sizes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryReport {
    /// The values of the inputs' symbols.
    pub sizes: Vec<(String, i64)>,
    /// The arenas, one a segment, as far as sizes are known.
    pub segments: Vec<SegmentMemory>,
    /// The symbols without which later segments cannot be planned: their sizes depend on values.
    pub unknown: Vec<String>,
}

/// The arena of the steps whose sizes are known together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentMemory {
    /// The steps.
    pub steps: Range<usize>,
    /// The arena's size.
    pub peak: usize,
    /// The largest sum of what is live at once.
    pub lower_bound: usize,
    /// What lies in it.
    pub blocks: Vec<Block>,
}

/// A temporary, or the scratch of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// What it is.
    pub what: String,
    /// Whether it is scratch of one step.
    pub scratch: bool,
    /// Where it begins in the arena.
    pub offset: usize,
    /// Its size.
    pub bytes: usize,
    /// The first step that needs it.
    pub first: usize,
    /// The last step that needs it.
    pub last: usize,
}

impl Report {
    /// The steps that are regions.
    pub fn regions(&self) -> impl Iterator<Item = (&StepRecord, &RegionRecord)> {
        self.steps.iter().filter_map(|step| step.region.as_ref().map(|region| (step, region)))
    }

    /// The copies that layouts asked for, each with who needs it as the reason.
    pub fn copies(&self) -> impl Iterator<Item = &StepRecord> {
        self.steps.iter().filter(|step| step.copy)
    }
}

impl StepRecord {
    /// The operation in one line; of a region, what it computes.
    pub fn title(&self) -> String {
        match &self.region {
            Some(region) => format!("region ({})", region.operations.join(", ")),
            None => self.op.clone(),
        }
    }

    /// The type of the first result, with the sizes of the last run if there was one.
    pub fn shape(&self) -> &str {
        self.bound.first().or(self.results.first()).map_or("", String::as_str)
    }
}

impl MemoryReport {
    /// The bytes of all arenas.
    pub fn peak(&self) -> usize {
        self.segments.iter().map(|s| s.peak).sum()
    }

    /// The largest sums of what is live at once, of all arenas.
    pub fn lower_bound(&self) -> usize {
        self.segments.iter().map(|s| s.lower_bound).sum()
    }

    /// The part of the arenas that the plan takes beyond the lower bound: 0 where it reaches it.
    pub fn waste(&self) -> f64 {
        match self.lower_bound() {
            0 => 0.0,
            bound => self.peak() as f64 / bound as f64 - 1.0,
        }
    }
}
