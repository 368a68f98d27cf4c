//! The memory plan as a picture: steps from left to right, the arena from bottom to top, each temporary a rectangle.

use super::markup::Escaped;
use crate::units::bytes;
use rlx::report::SegmentMemory;
use std::fmt::Write;

const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 360.0;
/// Room for the numbers at the left.
const LEFT: f64 = 90.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 30.0;
/// Told apart on light and on dark ground.
const COLOURS: [&str; 9] =
    ["#5b8fd6", "#5fb38a", "#d98f5c", "#b07cc6", "#c9b458", "#d4708a", "#54b0bf", "#8c9a5b", "#9b8579"];

/// The arena of one segment as SVG.
pub(super) fn svg(segment: &SegmentMemory) -> String {
    let steps = segment.steps.len().max(1) as f64;
    let peak = segment.peak.max(1) as f64;
    let x = |step: usize| LEFT + (step - segment.steps.start.min(step)) as f64 / steps * (WIDTH - LEFT);
    let y = |offset: usize| TOP + HEIGHT - offset as f64 / peak * HEIGHT;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg class=\"plan\" viewBox=\"0 0 {WIDTH} {:.0}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" \
         aria-label=\"Memory over steps\">",
        TOP + HEIGHT + BOTTOM
    );
    for (i, block) in segment.blocks.iter().enumerate().filter(|(_, block)| block.bytes > 0) {
        let end = block.last.min(segment.steps.end.saturating_sub(1)) + 1;
        let (left, right) = (x(block.first), x(end));
        let (upper, lower) = (y(block.offset + block.bytes), y(block.offset));
        // Neighbours differ in colour.
        let colour = COLOURS[i % COLOURS.len()];
        let class = if block.scratch { "scratch" } else { "block" };
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{left:.2}\" y=\"{upper:.2}\" width=\"{:.2}\" height=\"{:.2}\" \
             fill=\"{colour}\"><title>{}\nsteps {} to {}\noffset {}, {}</title></rect>",
            (right - left).max(0.5),
            (lower - upper).max(0.5),
            Escaped(&block.what),
            block.first,
            block.last,
            block.offset,
            bytes(block.bytes)
        );
    }
    for (offset, what) in [(segment.peak, "peak"), (segment.lower_bound, "at least"), (0, "")] {
        let at = y(offset);
        let label = if offset == 0 { "0".to_string() } else { bytes(offset) };
        // Where the plan reaches the bound, one line is enough.
        if what == "at least" && segment.peak == segment.lower_bound {
            continue;
        }
        let _ = writeln!(
            out,
            "<line class=\"level\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"4\" y=\"{:.1}\">{what} {label}</text>",
            at + 4.0
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{:.1}\">step {}</text><text x=\"{WIDTH}\" y=\"{:.1}\" text-anchor=\"end\">step {}</text>",
        TOP + HEIGHT + 20.0,
        segment.steps.start,
        TOP + HEIGHT + 20.0,
        segment.steps.end.saturating_sub(1)
    );
    out.push_str("</svg>\n");
    out
}
