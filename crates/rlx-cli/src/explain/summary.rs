//! The account in the terminal.

use super::Account;
use crate::units::{bytes, millis, shortened};
use rlx::report::{MemoryReport, StepRecord};
use std::collections::BTreeMap;
use std::fmt::Write;

/// How many lines a list has before the rest is counted.
const LIST: usize = 12;

/// The account as text. `every_step` lists all steps.
pub(super) fn text(account: &Account, every_step: bool) -> String {
    let report = &account.report;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} on {}, {} threads: {} steps, compiled in {:.1} ms",
        report.graph,
        report.compile.target,
        report.threads,
        report.steps.len(),
        millis(account.compile_time)
    );
    for (title, ports) in [("input", &report.inputs), ("output", &report.outputs)] {
        for (name, ty) in ports {
            let _ = writeln!(out, "  {title} {name}: {ty}");
        }
    }
    passes(account, &mut out);
    composites(account, &mut out);
    kernels(account, &mut out);
    regions(account, &mut out);
    let copies: Vec<String> =
        report.copies().map(|step| format!("step {}: {}", step.index, step.reason)).collect();
    list(&mut out, "copies", &copies);
    for placement in &report.placement {
        let _ = writeln!(
            out,
            "\nplacement: {} steps on {}: {}",
            placement.steps, placement.device, placement.reason
        );
    }
    weights(account, &mut out);
    match &account.memory {
        Some(plan) => memory(plan, &mut out),
        None => {
            let _ = writeln!(out, "\nmemory plan: {}", account.memory_missing);
        }
    }
    if every_step {
        let _ = writeln!(out, "\nsteps");
        for step in &report.steps {
            let _ = writeln!(out, "  {}", line(step));
        }
    }
    out
}

fn line(step: &StepRecord) -> String {
    let why = if step.reason.is_empty() { String::new() } else { format!(": {}", step.reason) };
    let from = if step.locations.is_empty() {
        String::new()
    } else {
        format!(" (node {})", shortened(&step.locations.join(", "), 60))
    };
    format!("{:>4} {} -> {} by {}{why}{from}", step.index, step.title(), step.shape(), step.kernel)
}

/// A titled list, cut after [`LIST`] lines.
fn list(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}: {}", lines.len());
    for line in lines.iter().take(LIST) {
        let _ = writeln!(out, "  {}", shortened(line, 160));
    }
    if lines.len() > LIST {
        let _ = writeln!(out, "  … and {} more (--json and --html have all)", lines.len() - LIST);
    }
}

fn passes(account: &Account, out: &mut String) {
    let _ = writeln!(out, "\npasses");
    for pass in &account.report.compile.passes {
        let (before, after) = (pass.nodes_before, pass.nodes_after);
        let _ = writeln!(out, "  {:<20} {:>9.3} ms  {before} -> {after} nodes", pass.name, millis(pass.time));
        for note in pass.notes.iter().take(LIST) {
            let _ = writeln!(out, "      {}", shortened(note, 150));
        }
        if pass.notes.len() > LIST {
            let _ = writeln!(out, "      … and {} more notes", pass.notes.len() - LIST);
        }
    }
}

fn composites(account: &Account, out: &mut String) {
    let lines: Vec<String> = account
        .report
        .compile
        .composites
        .iter()
        .map(|c| {
            let why =
                if c.fate.reason().is_empty() { String::new() } else { format!(": {}", c.fate.reason()) };
            format!("{} × {} {}{why}", c.name, c.times, c.fate.name())
        })
        .collect();
    list(out, "composites", &lines);
}

fn kernels(account: &Account, out: &mut String) {
    let mut kernels: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for step in account.report.steps.iter().filter(|step| !step.copy) {
        *kernels.entry((&step.kernel, &step.reason)).or_default() += 1;
    }
    let mut kernels: Vec<_> = kernels.into_iter().collect();
    kernels.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    let lines: Vec<String> = kernels
        .into_iter()
        .map(|((kernel, reason), times)| {
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            format!("{times:>4} × {kernel}{why}")
        })
        .collect();
    list(out, "kernels", &lines);
}

fn regions(account: &Account, out: &mut String) {
    let lines: Vec<String> = account
        .report
        .regions()
        .map(|(step, region)| {
            format!(
                "step {}: {} nodes -> {}: {}",
                step.index,
                region.nodes,
                step.shape(),
                region.operations.join(", ")
            )
        })
        .collect();
    list(out, "regions", &lines);
}

fn weights(account: &Account, out: &mut String) {
    let weights = &account.report.weights;
    let _ = writeln!(out, "\nweights: {} constants, {}", weights.count, bytes(weights.bytes));
    for layout in &weights.layouts {
        let _ = writeln!(out, "  layout {}: {} copies, {}", layout.layout, layout.count, bytes(layout.bytes));
    }
    let _ = writeln!(
        out,
        "  computed at load: {} by {} steps",
        bytes(weights.derived_bytes),
        account.report.init_steps.len()
    );
}

fn memory(plan: &MemoryReport, out: &mut String) {
    let sizes: Vec<String> = plan.sizes.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let of = if sizes.is_empty() { String::new() } else { format!(" for {}", sizes.join(", ")) };
    let _ = writeln!(
        out,
        "\nmemory plan{of}: peak {}, at least {}, {:.1} % over",
        bytes(plan.peak()),
        bytes(plan.lower_bound()),
        plan.waste() * 100.0
    );
    for segment in &plan.segments {
        let _ = writeln!(
            out,
            "  steps {}..{}: {} in {} pieces",
            segment.steps.start,
            segment.steps.end,
            bytes(segment.peak),
            segment.blocks.len()
        );
    }
    if !plan.unknown.is_empty() {
        let _ = writeln!(out, "  later steps have sizes that depend on values: {}", plan.unknown.join(", "));
    }
}
