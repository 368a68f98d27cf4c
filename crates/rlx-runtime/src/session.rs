//! A session: a device, its threads, and the weights that its executables share.

use crate::device::Device;
use crate::error::Error;
use crate::executable::Executable;
use rlx_cpu::{Cpu, Loaded, Pool, WeightStore};
use rlx_ir::Graph;
use rlx_opt::{CompileOptions, compile};
use std::sync::Arc;

/// What the executables of a session share.
pub(crate) struct Shared {
    pub(crate) device: Device,
    pub(crate) pool: Pool,
    pub(crate) weights: WeightStore,
}

/// A device that graphs are compiled for and run on. Cloning shares it.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

impl Session {
    /// A session on `device`.
    ///
    /// # Errors
    /// If the system gives no threads.
    pub fn new(device: Device) -> Result<Session, Error> {
        let pool = match device {
            Device::Cpu { threads: 0 } => Pool::of_machine(),
            Device::Cpu { threads } => Pool::new(threads),
        }
        .map_err(|e| Error::Threads(e.to_string()))?;
        Ok(Session { shared: Arc::new(Shared { device, pool, weights: WeightStore::default() }) })
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.shared.device
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.shared.pool.threads()
    }

    /// Bytes of weights that are held in other layouts than the file's, by all executables together.
    pub fn weight_bytes(&self) -> usize {
        self.shared.weights.bytes()
    }

    /// Compiles `graph` and loads it: weights are packed, and what follows from constants only is computed.
    ///
    /// # Errors
    /// If a pass fails, memory is short, or a constant computation fails.
    pub fn compile(&self, graph: &Graph, options: &CompileOptions) -> Result<Executable, Error> {
        let compiled = compile(graph, &Cpu, options)?;
        let program = Arc::new(compiled.program.clone());
        let shared = &self.shared;
        let loaded = shared.pool.install(|| Loaded::new(&program, &shared.weights, &shared.pool))?;
        Ok(Executable::new(Arc::clone(shared), Arc::new(loaded), compiled))
    }
}
