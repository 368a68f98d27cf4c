//! Arrays to and from npz files: numpy's files, and files that must be refused.

use rlx::io::npy::{NpyArray, NpyError, NpyType};
use rlx::io::npz::{ArchiveProblem, NpzCompression, NpzError, NpzOptions, read_npz, write_npz};

const STORED: &[u8] = include_bytes!("data/npy/arrays.npz");
const COMPRESSED: &[u8] = include_bytes!("data/npy/arrays_compressed.npz");

fn read(file: &[u8]) -> Result<Vec<(String, NpyArray)>, NpzError> {
    read_npz(file, &NpzOptions::default())
}

fn problem(file: &[u8]) -> ArchiveProblem {
    match read(file) {
        Err(NpzError::Archive(problem)) => problem,
        other => panic!("{other:?}"),
    }
}

fn write(arrays: &[(&str, NpyArray)], compression: NpzCompression) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_npz(arrays.iter().map(|(name, array)| (*name, array)), compression, &mut bytes).unwrap();
    bytes
}

fn bytes_array(bytes: &[u8]) -> NpyArray {
    NpyArray::new(NpyType::U8, vec![bytes.len()], bytes.to_vec()).unwrap()
}

/// The offset of the first `pattern` in `file` at or after `from`.
fn find(file: &[u8], pattern: &[u8], from: usize) -> usize {
    from + file[from..].windows(pattern.len()).position(|window| window == pattern).unwrap()
}

const DIRECTORY_ENTRY: &[u8] = b"PK\x01\x02";

#[test]
fn every_type_order_and_byte_order_of_numpy_is_read_to_the_same_bytes() {
    for file in [STORED, COMPRESSED] {
        let arrays = read(file).unwrap();
        let named = |name: &str| &arrays.iter().find(|(key, _)| key == name).unwrap().1;
        let types = [
            ("bool", NpyType::Bool),
            ("int8", NpyType::I8),
            ("int16", NpyType::I16),
            ("int32", NpyType::I32),
            ("int64", NpyType::I64),
            ("uint8", NpyType::U8),
            ("uint16", NpyType::U16),
            ("uint32", NpyType::U32),
            ("uint64", NpyType::U64),
            ("float16", NpyType::F16),
            ("float32", NpyType::F32),
            ("float64", NpyType::F64),
            ("complex64", NpyType::C64),
            ("complex128", NpyType::C128),
        ];
        assert_eq!(arrays.len(), 4 * types.len());
        for (name, dtype) in types {
            let array = named(name);
            assert_eq!((array.dtype(), array.shape()), (dtype, [2, 3, 2].as_slice()), "{name}");
            assert_eq!(array.bytes(), named(&format!("{name}.bytes")).bytes(), "{name}");
            assert_eq!(array, named(&format!("{name}.fortran")));
            assert_eq!(array, named(&format!("{name}.big")));
        }
    }
}

#[test]
fn written_arrays_are_read_back_in_order() {
    let arrays = [
        ("x", bytes_array(&[1, 2, 3])),
        ("läyer/weight", NpyArray::new(NpyType::F32, vec![], 1.5f32.to_le_bytes().to_vec()).unwrap()),
        ("zeros", bytes_array(&[0; 100_000])),
    ];
    for compression in [NpzCompression::Stored, NpzCompression::Deflate] {
        let file = write(&arrays, compression);
        let again = read(&file).unwrap();
        assert_eq!(again.len(), 3);
        for ((name, array), (read_name, read_array)) in arrays.iter().zip(&again) {
            assert_eq!((*name, array), (read_name.as_str(), read_array));
        }
        assert_eq!(file.len() < 10_000, compression == NpzCompression::Deflate);
    }
    assert!(read(&write(&[], NpzCompression::Stored)).unwrap().is_empty());
}

#[test]
fn every_cut_of_a_file_is_refused() {
    for file in [
        write(&[("x", bytes_array(&[1, 2, 3])), ("y", bytes_array(&[0; 50]))], NpzCompression::Deflate),
        write(&[("x", bytes_array(&[1, 2, 3]))], NpzCompression::Stored),
    ] {
        for length in 0..file.len() {
            assert!(read(&file[..length]).is_err(), "cut to {length} of {}", file.len());
        }
    }
}

#[test]
fn every_changed_byte_gives_arrays_or_an_error() {
    let file =
        write(&[("x", bytes_array(&[1, 2, 3])), ("y", bytes_array(&[0; 50]))], NpzCompression::Deflate);
    for position in 0..file.len() {
        for flipped in [0x01, 0x10, 0x80, 0xff] {
            let mut bytes = file.clone();
            bytes[position] ^= flipped;
            let _ = read(&bytes);
        }
    }
}

#[test]
fn arrays_above_the_limit_are_refused_before_they_unfold() {
    let file = write(&[("zeros", bytes_array(&[0; 100_000]))], NpzCompression::Deflate);
    assert!(read_npz(&file, &NpzOptions { max_bytes: 100_128 }).is_ok());
    let found = read_npz(&file, &NpzOptions { max_bytes: 100_127 });
    assert!(matches!(found, Err(NpzError::TooLarge { limit: 100_127 })));
}

#[test]
fn sizes_that_the_compressed_bytes_cannot_unfold_to_are_refused() {
    let file = write(&[("x", bytes_array(&[1; 50]))], NpzCompression::Deflate);
    let entry = find(&file, DIRECTORY_ENTRY, 0);
    for size in [0u32, 1, 177, 179, 500_000_000] {
        let mut bytes = file.clone();
        bytes[entry + 24..entry + 28].copy_from_slice(&size.to_le_bytes());
        assert_eq!(
            problem(&bytes),
            ArchiveProblem::Unfold { name: "x.npy".to_owned(), size: u64::from(size) }
        );
    }
}

#[test]
fn checksums_are_checked() {
    for compression in [NpzCompression::Stored, NpzCompression::Deflate] {
        let mut file = write(&[("x", bytes_array(&[1; 50]))], compression);
        let entry = find(&file, DIRECTORY_ENTRY, 0);
        file[entry + 16] ^= 1;
        assert!(matches!(problem(&file), ArchiveProblem::Unfold { size: 178, .. }));
    }
}

#[test]
fn contents_that_overlap_or_leave_the_file_are_refused() {
    let file = write(&[("x", bytes_array(&[1; 50])), ("x2", bytes_array(&[1; 50]))], NpzCompression::Stored);
    let first = find(&file, DIRECTORY_ENTRY, 0);
    // The first entry claims to reach into the second, and beyond the file.
    for size in [200u32, 1_000_000] {
        let mut bytes = file.clone();
        bytes[first + 20..first + 24].copy_from_slice(&size.to_le_bytes());
        assert!(matches!(problem(&bytes), ArchiveProblem::Content { .. }), "{size}");
    }
    // The second entry leads to the first one's header, whose name differs.
    let second = find(&file, DIRECTORY_ENTRY, first + 4);
    let mut bytes = file.clone();
    bytes[second + 42..second + 46].copy_from_slice(&[0; 4]);
    assert_eq!(problem(&bytes), ArchiveProblem::LocalName { name: "x2.npy".to_owned() });
}

#[test]
fn entry_counts_that_lie_are_refused() {
    let file = write(&[("x", bytes_array(&[1; 50]))], NpzCompression::Stored);
    let end = find(&file, b"PK\x05\x06", 0);
    for (count, expected) in [(0u16, ArchiveProblem::Directory), (60_000, ArchiveProblem::Directory)] {
        let mut bytes = file.clone();
        bytes[end + 8..end + 10].copy_from_slice(&count.to_le_bytes());
        bytes[end + 10..end + 12].copy_from_slice(&count.to_le_bytes());
        assert_eq!(problem(&bytes), expected);
    }
    let mut parts = file.clone();
    parts[end + 4] = 1;
    assert_eq!(problem(&parts), ArchiveProblem::SeveralParts);
    let mut wide = file.clone();
    wide[end + 8..end + 12].fill(0xff);
    assert!(matches!(problem(&wide), ArchiveProblem::Record { record: "locator", .. }));
}

#[test]
fn encrypted_and_otherwise_compressed_entries_are_refused() {
    let file = write(&[("x", bytes_array(&[1; 50]))], NpzCompression::Deflate);
    let entry = find(&file, DIRECTORY_ENTRY, 0);
    let mut encrypted = file.clone();
    encrypted[entry + 8] |= 1;
    assert_eq!(problem(&encrypted), ArchiveProblem::Method { name: "x.npy".to_owned(), method: 8 });
    let mut other = file.clone();
    other[entry + 10] = 93;
    assert_eq!(problem(&other), ArchiveProblem::Method { name: "x.npy".to_owned(), method: 93 });
}

#[test]
fn entries_that_are_no_arrays_and_repeated_names_are_refused() {
    let file = write(&[("x", bytes_array(&[1])), ("y", bytes_array(&[2]))], NpzCompression::Stored);
    let renamed = |from: &[u8], to: &[u8]| {
        let mut bytes = file.clone();
        while let Some(position) = bytes.windows(from.len()).position(|window| window == from) {
            bytes[position..position + to.len()].copy_from_slice(to);
        }
        read(&bytes)
    };
    assert!(matches!(renamed(b"y.npy", b"y.txt"), Err(NpzError::NotAnArray { name }) if name == "y.txt"));
    assert!(matches!(renamed(b"y.npy", b"x.npy"), Err(NpzError::DuplicateName { name }) if name == "x"));
    assert!(matches!(renamed(b"y.npy", b"\xff.npy"), Err(NpzError::Archive(ArchiveProblem::Name))));
    let broken = renamed(b"NUMPY", b"NUMPI");
    assert!(matches!(broken, Err(NpzError::Archive(ArchiveProblem::Unfold { .. }))));
}

#[test]
fn an_array_that_is_malformed_is_named() {
    match read(include_bytes!("data/npy/objects.npz")) {
        Err(NpzError::Array { name, source: NpyError::Objects }) => assert_eq!(name, "lists"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_are_written_once() {
    let array = bytes_array(&[1]);
    let found = write_npz([("x", &array), ("x", &array)], NpzCompression::Stored, Vec::new());
    assert!(matches!(found, Err(NpzError::DuplicateName { .. })));
    let long = "x".repeat(65_532);
    let found = write_npz([(long.as_str(), &array)], NpzCompression::Stored, Vec::new());
    assert!(matches!(found, Err(NpzError::TooLargeToWrite)));
}
