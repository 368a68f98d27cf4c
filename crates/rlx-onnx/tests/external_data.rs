//! External data: what is read, and every way out of the model's folder.

use std::fs;
use std::path::{Path, PathBuf};

use prost::Message;
use rlx_onnx::external::ExternalError;
use rlx_onnx::file::FileError;
use rlx_onnx::load::{LoadError, LoadOptions, ModelFile, open};
use rlx_onnx::proto::{
    DataType, GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto, TensorProto,
};
use rlx_onnx::tensor::{RawTensor, TensorData, TensorProblem};
use rlx_onnx::{MemoryMode, load};

/// An empty folder of one test, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rlx-onnx-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("model")).unwrap();
        Self(path)
    }

    /// Writes a model with one tensor of two `u16`, kept as `entries` say, and opens it.
    fn open(&self, entries: &[(&str, &str)], options: &LoadOptions) -> ModelFile {
        let path = self.0.join("model/model.onnx");
        fs::write(&path, model(entries).encode_to_vec()).unwrap();
        open(&path, options).unwrap()
    }

    fn read(&self, entries: &[(&str, &str)]) -> Result<RawTensor, ExternalError> {
        read(&self.open(entries, &LoadOptions::default()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn model(entries: &[(&str, &str)]) -> ModelProto {
    let entry = |&(key, value): &(&str, &str)| StringStringEntryProto {
        key: Some(key.to_owned()),
        value: Some(value.to_owned()),
    };
    let tensor = TensorProto {
        name: Some("weights".to_owned()),
        data_type: Some(DataType::Uint16 as i32),
        dims: vec![2],
        data_location: Some(1),
        external_data: entries.iter().map(entry).collect(),
        ..TensorProto::default()
    };
    ModelProto {
        graph: Some(GraphProto { initializer: vec![tensor], ..GraphProto::default() }),
        opset_import: vec![OperatorSetIdProto::default()],
        ..ModelProto::default()
    }
}

fn read(model: &ModelFile) -> Result<RawTensor, ExternalError> {
    match model.tensor(&model.model().graph.as_ref().unwrap().initializer[0]) {
        Ok(tensor) => Ok(tensor),
        Err(error) => match error.problem {
            TensorProblem::External(problem) => Err(problem),
            other => panic!("{other}"),
        },
    }
}

fn bytes(tensor: &RawTensor) -> &[u8] {
    match &tensor.data {
        TensorData::Bytes(bytes) => bytes,
        TensorData::Strings(_) => panic!("text in place of numbers"),
    }
}

#[test]
fn elements_come_from_offset_and_length_in_both_memory_modes() {
    let folder = Folder::new("offset");
    fs::create_dir(folder.0.join("model/sub")).unwrap();
    fs::write(folder.0.join("model/sub/data.bin"), [9, 9, 1, 2, 3, 4, 9]).unwrap();
    let entries = [("location", "sub/data.bin"), ("offset", "2"), ("length", "4"), ("checksum", "unread")];
    for memory in [MemoryMode::Map, MemoryMode::Read] {
        let model = folder.open(&entries, &LoadOptions { memory, ..LoadOptions::default() });
        assert_eq!(bytes(&read(&model).unwrap()), [1, 2, 3, 4]);
    }
    let without_length = folder.read(&[("location", "./sub/data.bin"), ("offset", "3")]).unwrap();
    assert_eq!(bytes(&without_length), [2, 3, 4, 9]);
}

#[test]
fn a_file_is_opened_once_and_shared() {
    let folder = Folder::new("shared");
    fs::write(folder.0.join("model/data.bin"), [1, 2, 3, 4]).unwrap();
    let model = folder.open(&[("location", "data.bin")], &LoadOptions::default());
    let (first, second) = (read(&model).unwrap(), read(&model).unwrap());
    assert_eq!(bytes(&first).as_ptr(), bytes(&second).as_ptr());
}

#[test]
fn absolute_paths_and_parent_folders_are_refused() {
    let folder = Folder::new("paths");
    fs::write(folder.0.join("secret"), [0; 4]).unwrap();
    fs::write(folder.0.join("model/inside"), [0; 4]).unwrap();
    let absolute = folder.0.join("model/inside");
    let absolute = absolute.to_str().unwrap();
    assert!(matches!(folder.read(&[("location", absolute)]), Err(ExternalError::Absolute { .. })));
    for location in ["../secret", "../model/inside", "sub/../../secret", "inside/..", ".."] {
        let found = folder.read(&[("location", location)]);
        assert!(matches!(found, Err(ExternalError::ParentFolder { .. })), "{location}");
    }
}

#[cfg(unix)]
#[test]
fn symlinks_may_lead_within_the_folder_only() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new("symlinks");
    fs::write(folder.0.join("secret"), [1, 2, 3, 4]).unwrap();
    fs::write(folder.0.join("model/inside"), [5, 6, 7, 8]).unwrap();
    symlink("../secret", folder.0.join("model/out")).unwrap();
    symlink("..", folder.0.join("model/up")).unwrap();
    symlink("inside", folder.0.join("model/in")).unwrap();
    for location in ["out", "up/secret"] {
        let found = folder.read(&[("location", location)]);
        assert!(matches!(found, Err(ExternalError::Outside { .. })), "{location}");
    }
    assert_eq!(bytes(&folder.read(&[("location", "in")]).unwrap()), [5, 6, 7, 8]);
    // A folder beside the root whose name begins with the root's name is outside.
    fs::create_dir(folder.0.join("model-other")).unwrap();
    fs::write(folder.0.join("model-other/data"), [0; 4]).unwrap();
    symlink("../model-other/data", folder.0.join("model/beside")).unwrap();
    assert!(matches!(folder.read(&[("location", "beside")]), Err(ExternalError::Outside { .. })));
    // The option widens the folder.
    let options = LoadOptions { external_root: Some(folder.0.clone()), ..LoadOptions::default() };
    let model = folder.open(&[("location", "out")], &options);
    assert_eq!(bytes(&read(&model).unwrap()), [1, 2, 3, 4]);
}

#[test]
fn ranges_past_the_end_are_refused() {
    let folder = Folder::new("ranges");
    fs::write(folder.0.join("model/data.bin"), [0; 6]).unwrap();
    for offset in ["3", "6", "7", "18446744073709551615", "18446744073709551612"] {
        let found = folder.read(&[("location", "data.bin"), ("offset", offset)]);
        assert!(matches!(found, Err(ExternalError::PastEnd { length: 4, file_bytes: 6, .. })), "{offset}");
    }
    assert!(folder.read(&[("location", "data.bin"), ("offset", "2")]).is_ok());
}

#[test]
fn malformed_entries_are_refused() {
    let folder = Folder::new("entries");
    fs::write(folder.0.join("model/data.bin"), [0; 6]).unwrap();
    for value in ["", "-1", "+1", " 1", "0x1", "1.0", "18446744073709551616"] {
        for key in ["offset", "length"] {
            let found = folder.read(&[("location", "data.bin"), (key, value)]);
            assert!(matches!(found, Err(ExternalError::NotANumber { .. })), "{key} {value:?}");
        }
    }
    for length in ["0", "3", "5", "18446744073709551615"] {
        let found = folder.read(&[("location", "data.bin"), ("length", length)]);
        assert!(matches!(found, Err(ExternalError::WrongLength { expected: 4, .. })), "{length}");
    }
    assert!(matches!(folder.read(&[("offset", "0")]), Err(ExternalError::NoLocation)));
    assert!(matches!(folder.read(&[("location", "")]), Err(ExternalError::NoLocation)));
    let twice = folder.read(&[("location", "data.bin"), ("location", "other")]);
    assert!(matches!(twice, Err(ExternalError::DuplicateKey { key: "location" })));
}

#[test]
fn absent_files_folders_and_too_many_bytes_are_refused() {
    let folder = Folder::new("files");
    fs::write(folder.0.join("model/data.bin"), [0; 6]).unwrap();
    let absent = folder.read(&[("location", "absent")]);
    assert!(matches!(absent, Err(ExternalError::File(FileError::Io { .. }))));
    assert!(matches!(
        folder.read(&[("location", ".")]),
        Err(ExternalError::File(FileError::NotAFile { .. }))
    ));
    assert!(folder.read(&[("location", "data.bin\0")]).is_err());
    let options = LoadOptions { max_external_bytes: 5, ..LoadOptions::default() };
    let model = folder.open(&[("location", "data.bin")], &options);
    assert!(matches!(read(&model), Err(ExternalError::File(FileError::TooLarge { bytes: 6, limit: 5, .. }))));
}

#[test]
fn a_model_from_memory_has_no_external_data() {
    let bytes = model(&[("location", "data.bin")]).encode_to_vec();
    let model = load::from_bytes(bytes.into(), &LoadOptions::default()).unwrap();
    assert!(matches!(read(&model), Err(ExternalError::NoFolder)));
}

#[test]
fn models_that_are_no_files_or_too_large_are_refused() {
    let folder = Folder::new("model-files");
    let open = |path: &Path| open(path, &LoadOptions { max_bytes: 3, ..LoadOptions::default() });
    assert!(matches!(open(&folder.0), Err(LoadError::File(FileError::NotAFile { .. }))));
    assert!(matches!(open(&folder.0.join("absent")), Err(LoadError::File(FileError::Io { .. }))));
    fs::write(folder.0.join("large"), [0; 4]).unwrap();
    assert!(matches!(
        open(&folder.0.join("large")),
        Err(LoadError::File(FileError::TooLarge { bytes: 4, limit: 3, .. }))
    ));
    fs::write(folder.0.join("empty"), []).unwrap();
    assert!(matches!(open(&folder.0.join("empty")), Err(LoadError::Missing { field: "graph" })));
}

#[cfg(unix)]
#[test]
fn devices_are_refused() {
    let found = open(Path::new("/dev/zero"), &LoadOptions::default());
    assert!(matches!(found, Err(LoadError::File(FileError::NotAFile { .. }))));
}
