//! The CPU as a backend: through the whole pipeline, with fusion on or off and a number of threads; with sentinels
//! behind all memory, inputs that must stay as they are, and, where asked for, the bits of one thread.

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
    /// What must give the same bits.
    twin: Option<Box<Cpu>>,
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
        Ok(Cpu {
            session,
            options: CompileOptions { fuse, verify: true, ..CompileOptions::default() },
            name,
            twin: None,
        })
    }
}

impl Cpu {
    /// The same; every result must have the bits that one thread gives.
    ///
    /// # Errors
    /// If the system gives no threads.
    pub fn with_the_bits_of_one_thread(mut self) -> Result<Cpu, Error> {
        self.twin = Some(Box::new(Cpu::new(1, self.options.fuse)?));
        self.name = format!("{} and 1", self.name);
        Ok(self)
    }

    fn compiled_and_run(&self, graph: &Graph, inputs: &[Literal]) -> Result<Vec<Literal>, BackendError> {
        let executable = self.session.compile(graph, &self.options).map_err(|e| match e {
            Error::Run(error) => failed(&error),
            error => BackendError { stage: Stage::Build, message: error.to_string() },
        })?;
        let before: Vec<Vec<u8>> = inputs.iter().map(|literal| literal.bytes().to_vec()).collect();
        let tensors: Vec<Tensor> = inputs.iter().cloned().map(Tensor::from).collect();
        let tensors: Vec<&Tensor> = tensors.iter().collect();
        let mut slots = Slots::watched();
        let options = RunOptions { sentinels: true, ..RunOptions::default() };
        executable.run_into(&tensors, &mut slots, &options).map_err(|e| failed(&e))?;
        let fault = |message: String| BackendError { stage: Stage::Run, message };
        if !slots.intact() {
            return Err(fault("something was written behind an output".to_string()));
        }
        if tensors.iter().zip(&before).any(|(tensor, before)| tensor.bytes() != before) {
            return Err(fault("an input was written to".to_string()));
        }
        (0..graph.outputs().len())
            .map(|i| {
                let (dtype, dims, bytes) = slots.output(i).ok_or_else(|| fault(format!("no output {i}")))?;
                Literal::new(dtype, dims, bytes.to_vec()).map_err(|e| fault(e.to_string()))
            })
            .collect()
    }
}

impl Backend for Cpu {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, graph: &Graph, inputs: &[Literal]) -> Result<Vec<Literal>, BackendError> {
        let found = self.compiled_and_run(graph, inputs)?;
        if let Some(twin) = &self.twin
            && twin.compiled_and_run(graph, inputs)? != found
        {
            let message = "one thread gives other bits".to_string();
            return Err(BackendError { stage: Stage::Run, message });
        }
        Ok(found)
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
