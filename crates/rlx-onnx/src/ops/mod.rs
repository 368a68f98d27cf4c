//! The handlers of operators, by family. A family file exports the list of its operators; [`FAMILIES`] is the table.
//!
//! To add an operator: write a handler `fn(&mut NodeContext) -> Handled` in its family's file, and a line in that
//! file's `OPERATORS` with the operator set versions that changed its schema. A new family is one line here.

mod activation;
mod algebra;
mod attention;
mod attention_contrib;
mod cast;
mod control;
mod convolution;
mod elementwise;
mod fused;
mod generate;
mod index;
mod logical;
mod loss;
mod matrix;
mod ml;
mod ngram;
mod norm;
mod order;
mod pool;
mod quantise;
mod quantised_contrib;
mod random;
mod recurrent;
mod reduce;
mod resize;
mod sequence;
mod shape;
mod signal;
mod slice;
mod softmax;
mod text;
mod training;
mod tree;
mod vision;
mod window;

use crate::registry::Operator;

/// Every family and its operators.
pub(crate) const FAMILIES: &[(&str, &[Operator])] = &[
    ("activation", activation::OPERATORS),
    ("algebra", algebra::OPERATORS),
    ("attention", attention::OPERATORS),
    ("attention_contrib", attention_contrib::OPERATORS),
    ("cast", cast::OPERATORS),
    ("control", control::OPERATORS),
    ("convolution", convolution::OPERATORS),
    ("elementwise", elementwise::OPERATORS),
    ("fused", fused::OPERATORS),
    ("generate", generate::OPERATORS),
    ("index", index::OPERATORS),
    ("logical", logical::OPERATORS),
    ("loss", loss::OPERATORS),
    ("matrix", matrix::OPERATORS),
    ("ml", ml::OPERATORS),
    ("ngram", ngram::OPERATORS),
    ("norm", norm::OPERATORS),
    ("order", order::OPERATORS),
    ("pool", pool::OPERATORS),
    ("quantise", quantise::OPERATORS),
    ("quantised_contrib", quantised_contrib::OPERATORS),
    ("random", random::OPERATORS),
    ("recurrent", recurrent::OPERATORS),
    ("reduce", reduce::OPERATORS),
    ("resize", resize::OPERATORS),
    ("sequence", sequence::OPERATORS),
    ("shape", shape::OPERATORS),
    ("signal", signal::OPERATORS),
    ("slice", slice::OPERATORS),
    ("softmax", softmax::OPERATORS),
    ("text", text::OPERATORS),
    ("training", training::OPERATORS),
    ("tree", tree::OPERATORS),
    ("vision", vision::OPERATORS),
];
