//! `cargo xtask docs`: the pages that are made from the code's own tables.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::bail;
use clap::Args;

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
    vec![("docs/operations.md", operations()), ("docs/onnx-coverage.md", onnx_coverage())]
}

/// Writes the pages, or checks them.
pub(crate) fn run(repository: &Path, options: &Options) -> anyhow::Result<()> {
    let mut stale = Vec::new();
    for (path, text) in pages() {
        let file = repository.join(path);
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
    if options.check {
        eprintln!("in step: {}", pages().into_iter().map(|(path, _)| path).collect::<Vec<_>>().join(", "));
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

/// The table of ONNX operators.
fn onnx_coverage() -> String {
    let all = rlx::onnx::coverage();
    let mut page = String::from(
        "# ONNX operators\n\nMade by `cargo xtask docs` from the importer's own table in `crates/rlx-onnx/src/ops`; \
         do not edit.\n\n",
    );
    let _ = writeln!(
        page,
        "{} operators import, in operator sets up to {}. An operator that is not listed is refused when a model is \
         opened; all such operators of a model are named at once, with the nodes that use them. Where an attribute or \
         a type of a listed operator cannot be honoured, that node is refused by name.",
        all.len(),
        rlx::onnx::NEWEST_OPSET
    );
    let mut domains: Vec<&str> = all.iter().map(|c| c.domain).collect();
    domains.sort_unstable();
    domains.dedup();
    for domain in domains {
        let title = if domain.is_empty() { "ai.onnx" } else { domain };
        let _ = writeln!(page, "\n## {title}\n\n| operator | family | versions that differ |\n|---|---|---|");
        let mut rows: Vec<_> = all.iter().filter(|c| c.domain == domain).collect();
        rows.sort_by_key(|c| c.operator);
        for row in rows {
            let since: Vec<String> = row.since.iter().map(i64::to_string).collect();
            let _ = writeln!(page, "| {} | {} | {} |", row.operator, row.family, since.join(", "));
        }
    }
    page
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
