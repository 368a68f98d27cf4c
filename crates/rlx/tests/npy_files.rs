//! Arrays to and from npy files: numpy's files, and files that must be refused.

use rlx::io::npy::{MAX_RANK, NpyArray, NpyError, NpyType, read_npy, write_npy};

/// An npy file of version 1.0 with this header and these elements.
fn file(header: &str, elements: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(elements);
    bytes
}

fn with(descr: &str, shape: &str, elements: &[u8]) -> Result<NpyArray, NpyError> {
    read_npy(&file(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"), elements))
}

fn written(array: &NpyArray) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_npy(array, &mut bytes).unwrap();
    bytes
}

#[test]
fn all_versions_scalars_and_empty_arrays_of_numpy_are_read() {
    let floats: Vec<u8> = [0.0f32, 1.0, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    for bytes in [include_bytes!("data/npy/version_2.npy"), include_bytes!("data/npy/version_3.npy")] {
        let array = read_npy(bytes).unwrap();
        assert_eq!((array.dtype(), array.shape(), array.bytes()), (NpyType::F32, [3].as_slice(), &*floats));
    }
    let scalar = read_npy(include_bytes!("data/npy/scalar.npy")).unwrap();
    assert_eq!((scalar.dtype(), scalar.shape(), scalar.bytes()), (NpyType::I16, [].as_slice(), &[7, 0][..]));
    let empty = read_npy(include_bytes!("data/npy/empty.npy")).unwrap();
    assert_eq!((empty.shape(), empty.bytes().len()), ([3, 0].as_slice(), 0));
}

#[test]
fn bfloat16_of_ml_dtypes_is_read_as_two_bytes_without_a_type() {
    let array = read_npy(include_bytes!("data/npy/bfloat16.npy")).unwrap();
    assert_eq!(array.dtype(), NpyType::Void2);
    assert_eq!(array.bytes(), [0x80, 0x3f, 0x00, 0x40, 0x40, 0x40]);
}

#[test]
fn written_files_are_byte_for_byte_those_of_numpy() {
    let scalar = include_bytes!("data/npy/scalar.npy");
    assert_eq!(written(&read_npy(scalar).unwrap()), scalar);
    let empty = include_bytes!("data/npy/empty.npy");
    assert_eq!(written(&read_npy(empty).unwrap()), empty);
}

#[test]
fn every_cut_of_a_file_and_every_trailing_byte_is_refused() {
    let whole = include_bytes!("data/npy/version_2.npy");
    for length in 0..whole.len() {
        assert!(read_npy(&whole[..length]).is_err(), "cut to {length}");
    }
    let mut longer = whole.to_vec();
    longer.push(0);
    assert!(matches!(read_npy(&longer), Err(NpyError::Length { expected: 12, found: 13 })));
}

#[test]
fn magic_and_version_are_checked() {
    assert!(matches!(read_npy(b""), Err(NpyError::Magic)));
    assert!(matches!(read_npy(b"PK\x03\x04 and so on"), Err(NpyError::Magic)));
    for (major, minor) in [(0, 0), (1, 1), (4, 0), (255, 255)] {
        let bytes = [b"\x93NUMPY", [major, minor].as_slice(), &[0; 80]].concat();
        assert!(matches!(read_npy(&bytes), Err(NpyError::Version { .. })), "{major}.{minor}");
    }
}

#[test]
fn header_lengths_beyond_the_file_are_refused() {
    let one = [b"\x93NUMPY\x01\x00".as_slice(), &u16::MAX.to_le_bytes(), b"{}"].concat();
    assert!(matches!(read_npy(&one), Err(NpyError::HeaderLength { length: 65535, left: 2 })));
    let two = [b"\x93NUMPY\x02\x00".as_slice(), &u32::MAX.to_le_bytes(), b"{}"].concat();
    assert!(matches!(read_npy(&two), Err(NpyError::HeaderLength { length: 4_294_967_295, left: 2 })));
}

#[test]
fn objects_are_refused_as_such() {
    assert!(matches!(read_npy(include_bytes!("data/npy/objects.npy")), Err(NpyError::Objects)));
    assert!(matches!(with("'|O'", "(2,)", &[0; 16]), Err(NpyError::Objects)));
}

#[test]
fn other_element_types_are_refused_by_name() {
    for descr in ["<U5", "|S3", "<M8[ns]", "<f16", "<V4", "<f1", "i4", "=i4", "<b4", "", "<", ">"] {
        let found = with(&format!("'{descr}'"), "(0,)", &[]);
        assert!(matches!(&found, Err(NpyError::ElementType(name)) if name == descr), "{descr}: {found:?}");
    }
    assert!(matches!(with("[('a', '<f4')]", "(0,)", &[]), Err(NpyError::ElementType(_))));
}

#[test]
fn overflowing_shapes_are_refused() {
    let cases = [
        "(4611686018427387904, 4)",
        "(1099511627776, 1099511627776)",
        "(1099511627776, 1099511627776, 0)",
        "(9223372036854775807,)",
        "(18446744073709551615,)",
    ];
    for shape in cases {
        assert!(matches!(with("'<f4'", shape, &[]), Err(NpyError::Overflow { .. })), "{shape}");
    }
    assert!(matches!(with("'<f4'", "(18446744073709551616,)", &[]), Err(NpyError::Header { .. })));
    assert!(matches!(with("'<f4'", "(-1,)", &[]), Err(NpyError::Header { .. })));
}

#[test]
fn shapes_that_the_file_does_not_back_are_refused() {
    let found = with("'|u1'", "(1152921504606846976,)", &[0; 8]);
    assert!(matches!(found, Err(NpyError::Length { expected: 1_152_921_504_606_846_976, found: 8 })));
    assert!(matches!(with("'<f4'", "(2,)", &[0; 7]), Err(NpyError::Length { expected: 8, found: 7 })));
    assert!(matches!(with("'<f4'", "(2, 0)", &[0; 8]), Err(NpyError::Length { expected: 0, found: 8 })));
}

#[test]
fn more_axes_than_numpy_has_are_refused() {
    let shape = |rank: usize| format!("({})", "1, ".repeat(rank));
    assert_eq!(with("'|u1'", &shape(MAX_RANK), &[9]).unwrap().shape().len(), MAX_RANK);
    assert!(matches!(with("'|u1'", &shape(MAX_RANK + 1), &[9]), Err(NpyError::Rank)));
    assert!(matches!(NpyArray::new(NpyType::U8, vec![1; MAX_RANK + 1], vec![9]), Err(NpyError::Rank)));
}

#[test]
fn headers_may_differ_in_what_python_allows() {
    for header in [
        "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<i2\"}",
        "{ 'shape' : ( 2 , 3 , ) , 'descr' : '<i2' , 'fortran_order' : False , }  \n",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2L, 3L), }",
    ] {
        assert_eq!(read_npy(&file(header, &[0; 12])).unwrap().shape(), [2, 3], "{header}");
    }
}

#[test]
fn malformed_headers_are_refused() {
    for header in [
        "",
        "{",
        "{}",
        "{'descr': '<i2'}",
        "{'descr': '<i2', 'fortran_order': False}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (6,)} x",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (6)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': [6]}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (6,,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (6",
        "{'descr': '<i2', 'fortran_order': 0, 'shape': (6,)}",
        "{'fortran_order': False, 'shape': (6,), 'descr': '<i2}",
        "{'descr': '\\x3ci2', 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<i2', 'descr': '<i2', 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (6,), 'more': 1}",
        "{'descr': '<i2' 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (six,)}",
    ] {
        let found = read_npy(&file(header, &[0; 12]));
        assert!(matches!(found, Err(NpyError::Header { .. })), "{header}: {found:?}");
    }
}

#[test]
fn booleans_other_than_0_and_1_are_refused() {
    assert!(with("'|b1'", "(3,)", &[0, 1, 1]).is_ok());
    let found = with("'|b1'", "(3,)", &[0, 1, 2]);
    assert!(matches!(found, Err(NpyError::Boolean { position: 2, value: 2 })));
}

#[test]
fn arrays_that_do_not_fit_their_shape_are_not_made() {
    assert!(matches!(
        NpyArray::new(NpyType::F32, vec![2], vec![0; 7]),
        Err(NpyError::Length { expected: 8, found: 7 })
    ));
    assert!(matches!(
        NpyArray::new(NpyType::F32, vec![usize::MAX, 2], vec![]),
        Err(NpyError::Overflow { .. })
    ));
}

#[test]
fn every_changed_byte_gives_an_array_or_an_error() {
    let whole = include_bytes!("data/npy/version_2.npy");
    for position in 0..whole.len() {
        for byte in 0..=255 {
            let mut bytes = whole.to_vec();
            bytes[position] = byte;
            if let Ok(array) = read_npy(&bytes) {
                assert_eq!(read_npy(&written(&array)).unwrap(), array);
            }
        }
    }
}
