//! The handlers of operators, by family. A family file exports the list of its operators; [`FAMILIES`] is the table.
//!
//! To add an operator: write a handler `fn(&mut NodeContext) -> Handled` in its family's file, and a line in that
//! file's `OPERATORS` with the operator set versions that changed its schema. A new family is one line here.

mod elementwise;

use crate::registry::Operator;

/// Every family and its operators.
pub(crate) const FAMILIES: &[(&str, &[Operator])] = &[
    ("elementwise", elementwise::OPERATORS), //
];
