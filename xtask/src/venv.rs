//! Python environments for the outside references (onnx, onnxruntime, numpy, scipy).
//!
//! They lie in the cache, one for each set of pinned requirements, and are made once.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use sha2::{Digest, Sha256};

use crate::context::Context;
use crate::{process, system};

/// The pinned packages of the outside references.
pub(crate) const REQUIREMENTS: &str = "references/requirements.txt";

/// A Python environment that is ready for use.
pub(crate) struct Venv {
    interpreter: PathBuf,
}

impl Venv {
    /// The environment of `references/requirements.txt`, made when it is not in the cache.
    pub(crate) fn of_references(context: &Context) -> anyhow::Result<Self> {
        let path = context.file(REQUIREMENTS);
        let requirements = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        Self::ensure(context, &requirements, &["--requirement".as_ref(), path.as_os_str()])
    }

    /// An environment with nothing but pip, for downloads.
    pub(crate) fn with_pip_only(context: &Context) -> anyhow::Result<Self> {
        Self::ensure(context, b"", &[])
    }

    /// `python SCRIPT`, for a script of the repository given by its path from the root.
    pub(crate) fn script(&self, context: &Context, script: &str) -> Command {
        let mut command = self.python();
        command.arg(context.file(script));
        command
    }

    /// `python`, not reading the user's own packages.
    pub(crate) fn python(&self) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.env_remove("PYTHONPATH").env_remove("PYTHONHOME").env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// `python -m pip`, quiet and without questions.
    pub(crate) fn pip(&self) -> Command {
        let mut command = self.python();
        command.args(["-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]);
        command
    }

    /// The environment named by the hash of `requirements`; `install` are pip's arguments that fill it.
    fn ensure(context: &Context, requirements: &[u8], install: &[&std::ffi::OsStr]) -> anyhow::Result<Self> {
        let name = &crate::models::hex(&Sha256::digest(requirements))[..16];
        let _lock = context.cache.lock(&format!("venv-{name}"))?;
        let folder = context.cache.folder("venvs")?.join(name);
        let venv = Self { interpreter: interpreter_of(&folder) };
        // Written last: a folder without it was interrupted half-way.
        let complete = folder.join("complete");
        // A Python that was upgraded or removed leaves an interpreter that does not start.
        if complete.exists() && process::succeeds(venv.python().arg("--version")) {
            return Ok(venv);
        }
        eprintln!("making a Python environment in {}", folder.display());
        system::require("Python 3 with its venv module", "python3-venv", python_has_venv)?;
        process::run(system_python().args(["-m", "venv", "--clear"]).arg(&folder))?;
        if !install.is_empty() {
            process::run(venv.pip().arg("install").args(install))?;
        }
        std::fs::write(&complete, b"")?;
        Ok(venv)
    }
}

/// Makes the environment of the references and prints its interpreter.
pub(crate) fn run(context: &Context) -> anyhow::Result<()> {
    println!("{}", Venv::of_references(context)?.interpreter.display());
    Ok(())
}

fn interpreter_of(venv: &Path) -> PathBuf {
    if cfg!(windows) { venv.join("Scripts/python.exe") } else { venv.join("bin/python") }
}

fn system_python() -> Command {
    Command::new(if cfg!(windows) { "python" } else { "python3" })
}

/// Debian splits `ensurepip`, without which a venv has no pip, into a package of its own.
fn python_has_venv() -> bool {
    process::succeeds(system_python().args(["-c", "import venv, ensurepip"]))
}
