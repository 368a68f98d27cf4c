//! Where a task runs: the repository's root, cargo's target folder, and the cache outside the clone.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The folders that every task works with.
pub(crate) struct Context {
    /// The root of the clone.
    pub(crate) repository: PathBuf,
    /// The target folder of the build that this program comes from.
    pub(crate) target: PathBuf,
    /// What outlives a clone.
    pub(crate) cache: Cache,
}

impl Context {
    /// `cache` names the cache folder; `None` means the user's cache folder of the system.
    pub(crate) fn new(cache: Option<PathBuf>) -> anyhow::Result<Self> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("the xtask package is not in a workspace")?
            .to_path_buf();
        // This program is TARGET/<profile>/xtask.
        let program = std::env::current_exe().context("where this program is")?;
        let target = program
            .ancestors()
            .nth(2)
            .with_context(|| format!("{} is not in a target folder", program.display()))?
            .to_path_buf();
        Ok(Self { repository, target, cache: Cache::new(cache)? })
    }

    /// A file of the repository, given by its path from the root.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.repository.join(path)
    }
}

/// A folder outside the clone for what is slow to fetch or make again: models, Python
/// environments, conformance tests, fuzzing corpora. Deleting it is always safe.
pub(crate) struct Cache {
    root: PathBuf,
}

impl Cache {
    fn new(root: Option<PathBuf>) -> anyhow::Result<Self> {
        let root = match root {
            // Made absolute, since the commands that get it run in folders of their own.
            Some(root) => std::path::absolute(root)?,
            None => user_cache()?.join("rlx"),
        };
        std::fs::create_dir_all(&root).with_context(|| format!("creating the cache {}", root.display()))?;
        Ok(Self { root })
    }

    /// A folder of the cache, made when it is not there. `name` may have several components.
    pub(crate) fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.root.join(name);
        std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(folder)
    }

    /// Keeps other processes out of the part `name` of the cache until the answer is dropped.
    pub(crate) fn lock(&self, name: &str) -> anyhow::Result<File> {
        let path = self.folder("locks")?.join(name);
        let lock = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
        lock.lock().with_context(|| format!("locking {}", path.display()))?;
        Ok(lock)
    }
}

/// `$XDG_CACHE_HOME` or `~/.cache`, as the XDG base directory specification has it.
fn user_cache() -> anyhow::Result<PathBuf> {
    // The specification tells to ignore a relative path here.
    if let Some(folder) = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from)
        && folder.is_absolute()
    {
        return Ok(folder);
    }
    let home = std::env::home_dir().context("no home folder for the cache: name one with --cache DIR")?;
    Ok(home.join(".cache"))
}
