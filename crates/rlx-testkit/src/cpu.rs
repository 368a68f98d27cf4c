//! The CPU as a backend: through the whole pipeline, with fusion on or off and a number of threads.

use crate::backend::{Backend, BackendError};
use crate::case::Stage;
use rlx_eval::EvalError;
use rlx_ir::{Graph, Literal};
use rlx_runtime::{CompileOptions, Device, Error, RunError, RunOptions, Session, Slots, Tensor};

/// The CPU in one configuration.
pub struct Cpu {
    session: Session,
    options: CompileOptions,
    name: String,
}

impl Cpu {
    /// With this many threads, and with or without fusion.
    ///
    /// # Errors
    /// If the system gives no threads.
    pub fn new(threads: usize, fuse: bool) -> Result<Cpu, Error> {
        let session = Session::new(Device::Cpu { threads })?;
        let name = format!("cpu, {threads} thread{}", if threads == 1 { "" } else { "s" });
        let name = if fuse { name } else { format!("{name}, unfused") };
        Ok(Cpu { session, options: CompileOptions { fuse, verify: true, ..CompileOptions::default() }, name })
    }
}

impl Backend for Cpu {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, graph: &Graph, inputs: &[Literal]) -> Result<Vec<Literal>, BackendError> {
        let executable = self.session.compile(graph, &self.options).map_err(|e| match e {
            Error::Run(error) => failed(&error),
            error => BackendError { stage: Stage::Build, message: error.to_string() },
        })?;
        let inputs: Vec<Tensor> = inputs.iter().cloned().map(Tensor::from).collect();
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let mut slots = Slots::default();
        executable.run_into(&inputs, &mut slots, &RunOptions::default()).map_err(|e| failed(&e))?;
        (0..graph.outputs().len())
            .map(|i| {
                let missing = || BackendError { stage: Stage::Run, message: format!("no output {i}") };
                let (dtype, dims, bytes) = slots.output(i).ok_or_else(missing)?;
                Literal::new(dtype, dims, bytes.to_vec())
                    .map_err(|e| BackendError { stage: Stage::Run, message: e.to_string() })
            })
            .collect()
    }
}

fn failed(error: &RunError) -> BackendError {
    let stage = match error {
        RunError::Failed(EvalError::Type(_)) => Stage::Build,
        RunError::Failed(
            EvalError::MissingInput { .. }
            | EvalError::UnknownInput { .. }
            | EvalError::InputType { .. }
            | EvalError::InputSize { .. },
        ) => Stage::Bind,
        _ => Stage::Run,
    };
    BackendError { stage, message: error.to_string() }
}
