//! The devices there are.

/// Where programs run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Device {
    /// The CPU, with this many threads; 0 means as many as this process may use at once.
    Cpu {
        /// The number of threads.
        threads: usize,
    },
}

impl Device {
    /// The CPU with all threads that this process may use.
    pub fn cpu() -> Device {
        Device::Cpu { threads: 0 }
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        match self {
            Device::Cpu { .. } => "cpu",
        }
    }
}
