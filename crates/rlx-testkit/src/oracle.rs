//! The oracle as a backend, and as the judge in f64.

use crate::array::Array;
use crate::backend::{Backend, BackendError};
use crate::case::Stage;
use rlx_eval::{EvalError, EvalOptions, Oracle, Precision};
use rlx_ir::{Graph, Literal};

/// rlx-eval in the declared types.
#[derive(Clone, Copy, Debug, Default)]
pub struct Eval;

impl Backend for Eval {
    fn name(&self) -> &str {
        "eval"
    }

    fn run(&self, graph: &Graph, inputs: &[Literal]) -> Result<Vec<Literal>, BackendError> {
        evaluate(graph, inputs, Precision::Declared)
    }
}

fn evaluate(graph: &Graph, inputs: &[Literal], precision: Precision) -> Result<Vec<Literal>, BackendError> {
    let error = |stage, message: String| BackendError { stage, message };
    let options = EvalOptions { precision, ..EvalOptions::default() };
    let oracle = Oracle::new(graph, options).map_err(|e| error(Stage::Build, e.to_string()))?;
    oracle.run(inputs).map_err(|e| {
        let stage = match e {
            EvalError::Type(_) => Stage::Build,
            EvalError::Node { .. } => Stage::Run,
            EvalError::MissingInput { .. }
            | EvalError::UnknownInput { .. }
            | EvalError::InputType { .. }
            | EvalError::InputSize { .. } => Stage::Bind,
        };
        error(stage, e.to_string())
    })
}

/// The outputs in the declared types.
pub fn declared(graph: &Graph, inputs: &[Literal]) -> Result<Vec<Literal>, BackendError> {
    evaluate(graph, inputs, Precision::Declared)
}

/// The outputs with every float in f64 throughout; nothing is rounded to its declared type.
pub fn wide(graph: &Graph, inputs: &[Literal]) -> Result<Vec<Literal>, BackendError> {
    evaluate(graph, inputs, Precision::Wide)
}

/// The outputs of [`wide`] as numbers; block-quantised outputs have none.
pub fn wide_arrays(graph: &Graph, inputs: &[Literal]) -> Result<Vec<Array>, BackendError> {
    let outputs = wide(graph, inputs)?;
    outputs
        .iter()
        .map(|literal| {
            Array::from_literal(literal).ok_or_else(|| BackendError {
                stage: Stage::Run,
                message: format!("an output of type {} has no numbers", literal.dtype()),
            })
        })
        .collect()
}
