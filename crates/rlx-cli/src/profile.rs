//! The time of each step: recorded, as a table, and as a trace for Chrome's and Perfetto's viewers.

use crate::units::{millis, shortened};
use rlx::report::StepRecord;
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One run of one step.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// The step's index.
    pub(crate) step: usize,
    /// When it began, from the recorder's start.
    pub(crate) start: Duration,
    /// How long it took.
    pub(crate) time: Duration,
}

/// Collects samples of a run.
pub(crate) struct Recorder {
    start: Instant,
    samples: Mutex<Vec<Sample>>,
}

impl Recorder {
    /// A recorder whose time begins now.
    pub(crate) fn new() -> Recorder {
        Recorder { start: Instant::now(), samples: Mutex::default() }
    }

    /// A step that took `time` has just ended.
    pub(crate) fn record(&self, step: usize, time: Duration) {
        let start = self.start.elapsed().saturating_sub(time);
        self.samples.lock().unwrap_or_else(PoisonError::into_inner).push(Sample { step, start, time });
    }

    /// The samples in the order of time.
    pub(crate) fn into_samples(self) -> Vec<Sample> {
        self.samples.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Steps that are alike, together.
struct Row<'a> {
    step: &'a StepRecord,
    title: String,
    time: Duration,
    times: usize,
}

/// A table of steps by time: those of one operation, kernel and shape in one line.
pub(crate) fn table(samples: &[Sample], steps: &[StepRecord]) -> String {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for sample in samples {
        let Some(step) = steps.get(sample.step) else { continue };
        let title = step.title();
        let alike = |row: &&mut Row<'_>| {
            row.title == title && row.step.kernel == step.kernel && row.step.shape() == step.shape()
        };
        match rows.iter_mut().find(alike) {
            Some(row) => {
                row.time += sample.time;
                row.times += 1;
            }
            None => rows.push(Row { step, title, time: sample.time, times: 1 }),
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.time));
    let total: Duration = rows.iter().map(|row| row.time).sum();
    let mut text = format!(
        "{:>10}  {:>6}  {:>5}  {:<16}  {:<32}  {}\n",
        "ms", "%", "times", "kernel", "shape", "operation"
    );
    for row in &rows {
        let share = 100.0 * row.time.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
        text.push_str(&format!(
            "{:>10.3}  {share:>6.2}  {:>5}  {:<16}  {:<32}  {}\n",
            millis(row.time),
            row.times,
            row.step.kernel,
            shortened(row.step.shape(), 32),
            shortened(&row.title, 60),
        ));
    }
    text.push_str(&format!("{:>10.3}  total of {} steps\n", millis(total), samples.len()));
    text
}

/// The samples as JSON: one object a step, in order.
pub(crate) fn to_json(samples: &[Sample], steps: &[StepRecord]) -> Vec<Value> {
    let row = |sample: &Sample| {
        let step = steps.get(sample.step)?;
        Some(json!({
            "step": sample.step,
            "op": step.op,
            "kernel": step.kernel,
            "shape": step.shape(),
            "ms": millis(sample.time),
        }))
    };
    samples.iter().filter_map(row).collect()
}

/// The samples as a trace in the JSON object format of Chrome's trace viewer ("Trace Event Format", complete events).
pub(crate) fn trace(samples: &[Sample], steps: &[StepRecord]) -> Value {
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let event = |sample: &Sample| {
        let step = steps.get(sample.step)?;
        Some(json!({
            "name": step.title(),
            "cat": step.kernel,
            "ph": "X",
            "ts": micros(sample.start),
            "dur": micros(sample.time),
            "pid": 1,
            "tid": 1,
            "args": {
                "step": sample.step,
                "operands": step.operands,
                "results": step.results,
                "reason": step.reason,
                "locations": step.locations,
            },
        }))
    };
    let events: Vec<Value> = samples.iter().filter_map(event).collect();
    json!({ "traceEvents": events, "displayTimeUnit": "ms" })
}
