//! The handlers of operators, by family. A family file exports the list of its operators; [`FAMILIES`] is the table.
//!
//! To add an operator: write a handler `fn(&mut NodeContext) -> Handled` in its family's file, and a line in that
//! file's `OPERATORS` with the operator set versions that changed its schema. A new family is one line here.

mod cast;
mod control;
mod elementwise;
mod generate;
mod index;
mod logical;
mod matrix;
mod ngram;
mod order;
mod reduce;
mod sequence;
mod shape;
mod slice;
mod text;

use crate::registry::Operator;

/// Every family and its operators.
pub(crate) const FAMILIES: &[(&str, &[Operator])] = &[
    ("cast", cast::OPERATORS),
    ("control", control::OPERATORS),
    ("elementwise", elementwise::OPERATORS),
    ("generate", generate::OPERATORS),
    ("index", index::OPERATORS),
    ("logical", logical::OPERATORS),
    ("matrix", matrix::OPERATORS),
    ("ngram", ngram::OPERATORS),
    ("order", order::OPERATORS),
    ("reduce", reduce::OPERATORS),
    ("sequence", sequence::OPERATORS),
    ("shape", shape::OPERATORS),
    ("slice", slice::OPERATORS),
    ("text", text::OPERATORS),
];
