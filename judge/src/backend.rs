//! What computes: the choice that tasks take as `--backend`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendName {
    /// The oracle
    Eval,
    /// The CPU, through the whole compiler
    Cpu,
}

impl BackendName {
    /// As in options and in the names of files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            BackendName::Eval => "eval",
            BackendName::Cpu => "cpu",
        }
    }

    /// `results/TASK-BACKEND.EXTENSION` of the repository.
    pub(crate) fn results(self, repository: &Path, task: &str, extension: &str) -> PathBuf {
        repository.join(format!("results/{task}-{}.{extension}", self.name()))
    }
}
