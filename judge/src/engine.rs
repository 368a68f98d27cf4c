//! A model made ready on a backend, and what one call of it gives.

use std::path::Path;

use anyhow::Context as _;
use rlx::eval::{EvalOptions, Oracle, Precision};
use rlx::ir::{Graph, Literal};
use rlx::{CompileOptions, Device, Executable, Model, ModelOptions, Session, Tensor};

/// A model made ready once, for calls with any sizes.
pub(crate) enum Engine {
    /// The oracle, which walks the graph.
    Oracle {
        /// The model.
        graph: Box<Graph>,
        /// What numbers are.
        precision: Precision,
    },
    /// The CPU, which runs what was compiled.
    Cpu(Box<Executable>),
}

impl Engine {
    /// The oracle with these numbers.
    pub(crate) fn oracle(model: &Path, precision: Precision) -> anyhow::Result<Engine> {
        let graph = Box::new(open(model)?);
        Ok(Engine::Oracle { graph, precision })
    }

    /// The CPU with this many threads.
    pub(crate) fn cpu(model: &Path, threads: usize) -> anyhow::Result<Engine> {
        let session = Session::new(Device::Cpu { threads })?;
        Ok(Engine::Cpu(Box::new(session.compile(&open(model)?, &CompileOptions::default())?)))
    }

    /// The names of the inputs, in order.
    pub(crate) fn inputs(&self) -> Vec<String> {
        match self {
            Engine::Oracle { graph, .. } => graph.input_types().map(|(name, _)| name.to_string()).collect(),
            Engine::Cpu(executable) => {
                executable.program().inputs.iter().map(|port| port.name.to_string()).collect()
            }
        }
    }

    /// The outputs by name.
    pub(crate) fn run(&self, inputs: &[(String, Literal)]) -> anyhow::Result<Vec<(String, Literal)>> {
        match self {
            Engine::Oracle { graph, precision } => {
                let options = EvalOptions { precision: *precision, ..EvalOptions::default() };
                let oracle = Oracle::new(graph, options)?;
                Ok(oracle.run_named(inputs)?.into_iter().collect())
            }
            Engine::Cpu(executable) => {
                let tensors: Vec<(&str, Tensor)> =
                    inputs.iter().map(|(name, literal)| (name.as_str(), literal.clone().into())).collect();
                let outputs = executable.run(&tensors)?;
                Ok(outputs.iter().map(|(name, tensor)| (name.to_string(), tensor.to_literal())).collect())
            }
        }
    }
}

/// The graph of an ONNX file.
pub(crate) fn open(model: &Path) -> anyhow::Result<Graph> {
    let opened = Model::open(model, &ModelOptions::default());
    Ok(opened.with_context(|| model.display().to_string())?.graph)
}
