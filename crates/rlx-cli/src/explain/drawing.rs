//! The graph of steps as a drawing: inputs above, outputs below, each step a box, each region a box with what it computes.

use super::Account;
use super::layered::{Diagram, Placed, place};
use super::markup::Escaped;
use crate::units::shortened;
use rlx::report::{Origin, Report, StepRecord};
use std::fmt::Write;

/// How many operations of a region are listed in its box.
const LISTED: usize = 7;
/// The most characters of a line in a box.
const LINE: usize = 34;
/// Width of a character at the font size of the drawing.
const CHARACTER: f64 = 6.7;
const LINE_HEIGHT: f64 = 15.0;
const PADDING: f64 = 8.0;

/// A box.
struct Shape {
    class: &'static str,
    /// The step that it links to.
    step: Option<usize>,
    lines: Vec<String>,
    tooltip: String,
}

impl Shape {
    fn size(&self) -> (f64, f64) {
        let longest = self.lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        (longest as f64 * CHARACTER + 2.0 * PADDING, self.lines.len() as f64 * LINE_HEIGHT + 2.0 * PADDING)
    }
}

/// The drawing as SVG.
pub(super) fn svg(account: &Account) -> String {
    let report = &account.report;
    let (shapes, edges) = shapes(report);
    let diagram = Diagram { sizes: shapes.iter().map(Shape::size).collect(), edges };
    let placed = place(&diagram);
    let (width, height) = placed.size;
    // The first view is as wide as boxes can be read in, around the first box; the whole may be much larger.
    let (view_width, view_height) = (width.min(1600.0), height.min(900.0));
    let first = placed.centres.first().map_or(0.0, |(x, _)| *x);
    let left = (first - view_width / 2.0).clamp(0.0, width - view_width);
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg id=\"graph\" class=\"graph\" viewBox=\"{left:.0} 0 {view_width:.0} {view_height:.0}\" \
         data-whole=\"0 0 {width:.0} {height:.0}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" \
         aria-label=\"Graph of steps\">\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n"
    );
    arrows(&placed, &mut out);
    for (shape, centre) in shapes.iter().zip(&placed.centres) {
        draw(shape, *centre, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

/// Boxes for inputs, steps and outputs, in this order, and the edges between them.
fn shapes(report: &Report) -> (Vec<Shape>, Vec<(usize, usize)>) {
    let (inputs, steps) = (report.inputs.len(), report.steps.len());
    let port = |class, (name, ty): &(String, String)| Shape {
        class,
        step: None,
        lines: vec![shortened(name, LINE), shortened(ty, LINE)],
        tooltip: format!("{name}: {ty}"),
    };
    let mut shapes: Vec<Shape> = report.inputs.iter().map(|p| port("input", p)).collect();
    shapes.extend(report.steps.iter().map(step_shape));
    shapes.extend(report.outputs.iter().map(|p| port("output", p)));
    let mut edges: Vec<(usize, usize)> = Vec::new();
    for step in &report.steps {
        for origin in &step.reads {
            match origin {
                Origin::Input(input) => edges.push((*input, inputs + step.index)),
                Origin::Step(from) => edges.push((inputs + from, inputs + step.index)),
                Origin::Constant => {}
            }
        }
        for (i, (name, _)) in report.outputs.iter().enumerate() {
            if step.outputs.contains(name) {
                edges.push((inputs + step.index, inputs + steps + i));
            }
        }
    }
    edges.sort_unstable();
    edges.dedup();
    (shapes, edges)
}

fn step_shape(step: &StepRecord) -> Shape {
    let mut lines = vec![shortened(&format!("{} {}", step.index, step.op), LINE)];
    let class = match &step.region {
        Some(region) => {
            lines.extend(
                region.operations.iter().take(LISTED).map(|op| format!("· {}", shortened(op, LINE - 2))),
            );
            if region.operations.len() > LISTED {
                lines.push(format!("· and {} more", region.operations.len() - LISTED));
            }
            "region"
        }
        None if step.copy => "copy",
        None if step.kernel == "reference" => "reference",
        None => "kernel",
    };
    lines.push(shortened(step.shape(), LINE));
    let why = if step.reason.is_empty() { String::new() } else { format!("\nwhy: {}", step.reason) };
    let from = if step.locations.is_empty() {
        String::new()
    } else {
        format!("\nnode: {}", step.locations.join(", "))
    };
    let tooltip = format!(
        "step {}: {}\n{} -> {}\nkernel: {}{why}{from}",
        step.index,
        step.title(),
        step.operands.join(", "),
        step.results.join(", "),
        step.kernel
    );
    Shape { class, step: Some(step.index), lines, tooltip }
}

fn arrows(placed: &Placed, out: &mut String) {
    for route in &placed.routes {
        let [first, rest @ ..] = route.as_slice() else { continue };
        let _ = write!(out, "<path class=\"edge\" d=\"M{:.1} {:.1}", first.0, first.1);
        let mut from = *first;
        for to in rest {
            // Curves that leave and arrive upright.
            let middle = (from.1 + to.1) / 2.0;
            let _ = write!(out, "C{:.1} {middle:.1} {:.1} {middle:.1} {:.1} {:.1}", from.0, to.0, to.0, to.1);
            from = *to;
        }
        out.push_str("\"/>\n");
    }
}

fn draw(shape: &Shape, (x, y): (f64, f64), out: &mut String) {
    let (width, height) = shape.size();
    let (left, top) = (x - width / 2.0, y - height / 2.0);
    if let Some(step) = shape.step {
        let _ = write!(out, "<a href=\"#step-{step}\">");
    }
    let _ = write!(
        out,
        "<g class=\"{}\"><title>{}</title><rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\" rx=\"5\"/>",
        shape.class,
        Escaped(&shape.tooltip)
    );
    for (i, line) in shape.lines.iter().enumerate() {
        let at = top + PADDING + LINE_HEIGHT * (i as f64 + 0.75);
        let class = if i == 0 { " class=\"name\"" } else { "" };
        let _ =
            write!(out, "<text x=\"{:.1}\" y=\"{at:.1}\"{class}>{}</text>", left + PADDING, Escaped(line));
    }
    out.push_str("</g>");
    if shape.step.is_some() {
        out.push_str("</a>");
    }
    out.push('\n');
}
