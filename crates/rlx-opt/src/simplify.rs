//! Simplify: constants folded below a size, equal nodes merged, identities and dead nodes dropped. The builder does the
//! work; this pass walks.

use crate::rewrite::rewrite;
use rlx_eval::OracleFolder;
use rlx_ir::{Builder, Graph, TypeError};
use std::sync::Arc;

/// The simplified graph. Constants of up to `fold_elements` elements are folded.
pub fn simplify(graph: &Graph, fold_elements: usize) -> Result<Graph, TypeError> {
    let mut builder = Builder::new(graph.name());
    builder.set_folder(Arc::new(OracleFolder { max_elements: fold_elements }));
    rewrite(graph, builder, &mut |g| simplify(g, fold_elements), &mut |_, _| Ok(None))
}
