//! `cargo xtask docs`: the pages that are made from the code's own tables.

use std::fmt::Write as _;

use anyhow::bail;
use clap::Args;

use crate::context::Context;
use rlx::ir::op::{OpInfo, OpKind, catalogue};

/// Options of `cargo xtask docs`.
#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing; fail if a page is not what the code says
    #[arg(long)]
    check: bool,
}

/// Every page, by its path from the root.
fn pages() -> Vec<(&'static str, String)> {
    vec![("docs/operations.md", operations())]
}

/// Writes the pages, or checks them.
pub(crate) fn run(context: &Context, options: &Options) -> anyhow::Result<()> {
    let mut stale = Vec::new();
    for (path, text) in pages() {
        let file = context.file(path);
        if std::fs::read_to_string(&file).is_ok_and(|old| old == text) {
            continue;
        }
        if options.check {
            stale.push(path);
        } else {
            std::fs::write(&file, text)?;
            eprintln!("wrote {path}");
        }
    }
    if !stale.is_empty() {
        bail!("out of date: {}; run `cargo xtask docs`", stale.join(", "));
    }
    Ok(())
}

/// One line of a documentation comment in the table: what it says, without the constraints.
fn sentence(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|")
}

fn row(page: &mut String, info: &OpInfo) {
    let fields: Vec<String> =
        info.fields.iter().map(|(name, ty, _)| format!("`{name}: {}`", ty.replace(' ', ""))).collect();
    let _ = writeln!(page, "| `{}` | {} | {} |", info.name, sentence(info.doc), fields.join(", "));
}

/// The table of operations.
fn operations() -> String {
    let all = catalogue();
    let (primitives, composites): (Vec<_>, Vec<_>) =
        all.iter().partition(|info| matches!(info.kind, OpKind::Primitive(_)));
    let mut page = String::from(
        "# Operations\n\nMade by `cargo xtask docs` from the operation table in `crates/rlx-ir/src/op`; do not edit.\n\n",
    );
    let _ = writeln!(
        page,
        "{} primitives, which every executor implements, and {} composites, which decompose into simpler operations \
         where an executor has no kernel of its own. `C0` (the number of operands) holds for all; the other constraints \
         are named with the labels that error messages carry.",
        primitives.len(),
        composites.len()
    );
    for (title, infos) in [("Primitives", primitives), ("Composites", composites)] {
        let _ = writeln!(page, "\n## {title}");
        let mut family = "";
        for info in infos {
            if info.family != family {
                family = info.family;
                let _ = writeln!(page, "\n### {family}\n\n| name | meaning | attributes |\n|---|---|---|");
            }
            row(&mut page, info);
        }
    }
    page
}
