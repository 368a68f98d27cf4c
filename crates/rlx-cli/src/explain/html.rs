//! The account as one HTML page that needs nothing else: no file, no network. It is written so that it is well-formed
//! XML as well.

use super::Account;
use super::markup::Escaped;
use super::{drawing, memory};
use crate::units::{bytes, millis, shortened};
use rlx::report::StepRecord;
use std::fmt::Write;
use std::time::Duration;

/// Of how many steps the times are drawn.
const BARS: usize = 40;

/// Colours follow the reader's choice of light or dark.
const STYLE: &str = "\
:root{--ink:#1c2430;--paper:#fff;--soft:#5b6675;--line:#c9d0d8;--kernel:#dbe9ff;--region:#d9f2de;--copy:#ffe9c9;\
--reference:#ffd9d9;--port:#ececf4}\
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ee;--paper:#151a21;--soft:#98a4b3;--line:#3c4654;--kernel:#1f3a63;\
--region:#1d4a2a;--copy:#5a4416;--reference:#5d2626;--port:#2d3040}}\
body{font:14px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:2rem auto;max-width:1280px;\
padding:0 1rem}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}table{border-collapse:collapse;width:100%}\
th,td{text-align:left;vertical-align:top;padding:.2rem .6rem .2rem 0;border-bottom:1px solid var(--line)}\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}code,pre,svg text{font-family:ui-monospace,monospace}\
code{font-size:12px;overflow-wrap:anywhere}pre{font-size:12px;overflow:auto}.soft{color:var(--soft)}\
svg{width:100%;border:1px solid var(--line);border-radius:6px}svg text{font-size:11px;fill:var(--ink)}\
svg .name{font-weight:600}.graph{height:70vh;cursor:grab;touch-action:none}.edge{fill:none;stroke:var(--soft);\
stroke-width:1.2;marker-end:url(#arrow)}#arrow path{fill:var(--soft)}.graph rect{stroke:var(--soft)}\
.kernel rect{fill:var(--kernel)}.region rect{fill:var(--region);stroke-width:2}.copy rect{fill:var(--copy)}\
.reference rect{fill:var(--reference)}.input rect,.output rect{fill:var(--port)}.block{stroke:var(--paper);\
stroke-width:.5}.scratch{opacity:.55}.level{stroke:var(--soft);stroke-dasharray:4 3}.bar{fill:var(--soft)}\
tr:target{background:var(--copy)}button{font:inherit}";

/// Drag moves the graph, the wheel and the buttons scale it. Holds no character that XML would need escaped.
const SCRIPT: &str = "\
(function(){\
var svg=document.getElementById('graph');if(!svg){return;}\
var box=svg.getAttribute('viewBox').split(' ').map(Number);var first=box.slice();var drag=null;\
function show(){svg.setAttribute('viewBox',box.join(' '));}\
function at(e){return new DOMPoint(e.clientX,e.clientY).matrixTransform(svg.getScreenCTM().inverse());}\
function zoom(x,y,k){box=[x-(x-box[0])*k,y-(y-box[1])*k,box[2]*k,box[3]*k];show();}\
svg.addEventListener('wheel',function(e){e.preventDefault();var p=at(e);zoom(p.x,p.y,e.deltaY>0?1.2:1/1.2);},{passive:false});\
svg.addEventListener('pointerdown',function(e){drag={p:at(e),moved:false};});\
window.addEventListener('pointermove',function(e){if(!drag){return;}var p=at(e);\
var dx=drag.p.x-p.x;var dy=drag.p.y-p.y;if(Math.abs(dx)+Math.abs(dy)>2){drag.moved=true;}\
box[0]+=dx;box[1]+=dy;show();});\
var moved=false;\
window.addEventListener('pointerup',function(){moved=drag!==null?drag.moved:false;drag=null;});\
svg.addEventListener('click',function(e){if(moved){e.preventDefault();}},true);\
svg.addEventListener('dragstart',function(e){e.preventDefault();});\
document.getElementById('whole').addEventListener('click',function(){box=svg.getAttribute('data-whole').split(' ').map(Number);show();});\
document.getElementById('start').addEventListener('click',function(){box=first.slice();show();});\
document.getElementById('nearer').addEventListener('click',function(){zoom(box[0]+box[2]/2,box[1]+box[3]/2,1/1.5);});\
document.getElementById('farther').addEventListener('click',function(){zoom(box[0]+box[2]/2,box[1]+box[3]/2,1.5);});\
})();";

/// The page.
pub(super) fn page(account: &Account) -> String {
    let report = &account.report;
    let title = Escaped(&report.graph).to_string();
    let mut out = String::new();
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}: compiled by RLX</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<p>{} steps on {}, {} threads; compiled in {:.1} ms; {} regions; {} copies; weights {}.</p>\n",
        report.steps.len(),
        Escaped(&report.compile.target),
        report.threads,
        millis(account.compile_time),
        report.regions().count(),
        report.copies().count(),
        bytes(report.weights.bytes),
    );
    ports(account, &mut out);
    let _ = write!(
        out,
        "<h2>Graph</h2>\n<p class=\"soft\">Each box is a step; green ones are regions, with the operations fused in them; \
         yellow ones are copies; red ones run by the oracle's loops. Drag to move, turn the wheel to scale, click a box \
         for its line below.</p>\n<p><button id=\"start\">Start</button> <button id=\"whole\">Whole</button> \
         <button id=\"nearer\">+</button> <button id=\"farther\">−</button></p>\n{}",
        drawing::svg(account)
    );
    passes(account, &mut out);
    composites(account, &mut out);
    memory_plan(account, &mut out);
    weights(account, &mut out);
    times(account, &mut out);
    steps(account, &mut out);
    let _ = write!(out, "<script>{SCRIPT}</script>\n</body>\n</html>\n");
    out
}

fn cell(out: &mut String, text: &str) {
    let _ = write!(out, "<td>{}</td>", Escaped(text));
}

fn number(out: &mut String, value: impl std::fmt::Display) {
    let _ = write!(out, "<td class=\"n\">{value}</td>");
}

fn ports(account: &Account, out: &mut String) {
    out.push_str("<table>\n");
    for (title, ports) in [("input", &account.report.inputs), ("output", &account.report.outputs)] {
        for (name, ty) in ports {
            let _ = writeln!(
                out,
                "<tr><th>{title}</th><td>{}</td><td><code>{}</code></td></tr>",
                Escaped(name),
                Escaped(ty)
            );
        }
    }
    for placement in &account.report.placement {
        let _ = writeln!(
            out,
            "<tr><th>device</th><td>{}</td><td>{} steps: {}</td></tr>",
            Escaped(&placement.device),
            placement.steps,
            Escaped(&placement.reason)
        );
    }
    out.push_str("</table>\n");
}

fn passes(account: &Account, out: &mut String) {
    out.push_str(
        "<h2>Passes</h2>\n<table>\n<tr><th>pass</th><th class=\"n\">ms</th><th class=\"n\">nodes before</th>\
         <th class=\"n\">after</th><th>notes</th></tr>\n",
    );
    for pass in &account.report.compile.passes {
        out.push_str("<tr>");
        cell(out, pass.name);
        number(out, format!("{:.3}", millis(pass.time)));
        number(out, pass.nodes_before);
        number(out, pass.nodes_after);
        out.push_str("<td>");
        for note in &pass.notes {
            let _ = write!(out, "{}<br/>", Escaped(note));
        }
        out.push_str("</td></tr>\n");
    }
    out.push_str("</table>\n");
}

fn composites(account: &Account, out: &mut String) {
    let composites = &account.report.compile.composites;
    if composites.is_empty() {
        return;
    }
    out.push_str(
        "<h2>Composites</h2>\n<table>\n<tr><th>composite</th><th class=\"n\">times</th><th>fate</th><th>why</th></tr>\n",
    );
    for composite in composites {
        out.push_str("<tr>");
        cell(out, composite.name);
        number(out, composite.times);
        cell(out, composite.fate.name());
        cell(out, composite.fate.reason());
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}

fn memory_plan(account: &Account, out: &mut String) {
    out.push_str("<h2>Memory over time</h2>\n");
    let Some(plan) = &account.memory else {
        let _ = writeln!(out, "<p class=\"soft\">{}</p>", Escaped(&account.memory_missing));
        return;
    };
    let sizes: Vec<String> = plan.sizes.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let of = if sizes.is_empty() { String::new() } else { format!("For {}: ", sizes.join(", ")) };
    let _ = writeln!(
        out,
        "<p>{}peak {}, at least {}, {:.1} % over.</p>",
        Escaped(&of),
        bytes(plan.peak()),
        bytes(plan.lower_bound()),
        plan.waste() * 100.0
    );
    for segment in &plan.segments {
        out.push_str(&memory::svg(segment));
    }
    if !plan.unknown.is_empty() {
        let _ = writeln!(
            out,
            "<p class=\"soft\">Later steps have sizes that depend on values: {}</p>",
            Escaped(&plan.unknown.join(", "))
        );
    }
}

fn weights(account: &Account, out: &mut String) {
    let weights = &account.report.weights;
    let _ = write!(
        out,
        "<h2>Weights</h2>\n<table>\n<tr><th>layout</th><th class=\"n\">count</th><th class=\"n\">bytes</th></tr>\n\
         <tr><td>as in the model</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
        weights.count,
        bytes(weights.bytes)
    );
    for layout in &weights.layouts {
        out.push_str("<tr>");
        cell(out, &layout.layout);
        number(out, layout.count);
        number(out, bytes(layout.bytes));
        out.push_str("</tr>\n");
    }
    let _ = writeln!(
        out,
        "<tr><td>computed at load</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n</table>",
        account.report.init_steps.len(),
        bytes(weights.derived_bytes)
    );
}

fn times(account: &Account, out: &mut String) {
    if account.times.is_empty() {
        return;
    }
    let total: Duration = account.times.iter().sum();
    let mut order: Vec<(usize, Duration)> = account.times.iter().copied().enumerate().collect();
    order.sort_by_key(|(step, time)| (std::cmp::Reverse(*time), *step));
    order.truncate(BARS);
    let longest = order.first().map_or(0.0, |(_, time)| millis(*time)).max(f64::MIN_POSITIVE);
    let height = order.len() as f64 * 18.0 + 6.0;
    let _ = writeln!(
        out,
        "<h2>Time of steps</h2>\n<p>{:.3} ms in all; the {} longest:</p>\n\
         <svg class=\"times\" viewBox=\"0 0 1200 {height:.0}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" \
         aria-label=\"Time of steps\">",
        millis(total),
        order.len()
    );
    for (i, (step, time)) in order.iter().enumerate() {
        let record = &account.report.steps[*step];
        let y = i as f64 * 18.0 + 4.0;
        let share = 100.0 * time.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
        let _ = writeln!(
            out,
            "<text x=\"4\" y=\"{:.0}\">{}</text><rect class=\"bar\" x=\"420\" y=\"{y:.0}\" width=\"{:.1}\" \
             height=\"14\"/><text x=\"{:.1}\" y=\"{:.0}\">{:.3} ms, {share:.1} %</text>",
            y + 11.0,
            Escaped(&shortened(&format!("{step} {}", record.title()), 60)),
            millis(*time) / longest * 640.0,
            millis(*time) / longest * 640.0 + 426.0,
            y + 11.0,
            millis(*time),
        );
    }
    out.push_str("</svg>\n");
}

fn steps(account: &Account, out: &mut String) {
    for (title, id, records) in
        [("At load", "init", &account.report.init_steps), ("Steps", "step", &account.report.steps)]
    {
        if records.is_empty() {
            continue;
        }
        let timed = id == "step" && !account.times.is_empty();
        let ms = if timed { "<th class=\"n\">ms</th>" } else { "" };
        let _ = writeln!(
            out,
            "<h2>{title}</h2>\n<table>\n<tr><th class=\"n\">#</th><th>operation</th>{ms}<th>kernel, and why</th>\
             <th>operands</th><th>results</th><th>from</th></tr>"
        );
        for record in records {
            let time = if timed { account.times.get(record.index) } else { None };
            row(record, id, time, out);
        }
        out.push_str("</table>\n");
    }
}

fn row(record: &StepRecord, id: &str, time: Option<&Duration>, out: &mut String) {
    let _ = write!(out, "<tr id=\"{id}-{}\"><td class=\"n\">{}</td><td>", record.index, record.index);
    match &record.region {
        Some(region) => {
            let _ = write!(
                out,
                "<details><summary>region of {}: {}</summary><pre>{}</pre></details>",
                region.nodes,
                Escaped(&region.operations.join(", ")),
                Escaped(&region.body)
            );
        }
        None => {
            let _ = write!(out, "{}", Escaped(&record.op));
        }
    }
    out.push_str("</td>");
    if let Some(time) = time {
        number(out, format!("{:.3}", millis(*time)));
    }
    let why = if record.reason.is_empty() { String::new() } else { format!(": {}", record.reason) };
    let binds =
        if record.binds.is_empty() { String::new() } else { format!("; gives {}", record.binds.join(", ")) };
    cell(out, &format!("{}{why}{binds}", record.kernel));
    for types in [&record.operands, &record.results] {
        let _ = write!(out, "<td><code>{}</code></td>", Escaped(&types.join(", ")));
    }
    cell(out, &record.locations.join(", "));
    out.push_str("</tr>\n");
}
