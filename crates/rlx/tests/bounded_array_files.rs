//! Reading npy and npz files allocates no more than the file backs, whatever it claims.
//!
//! The allocator counts for the whole process, so this file has one test.

use rlx::io::npy::{NpyArray, NpyType, read_npy};
use rlx::io::npz::{NpzCompression, NpzError, NpzOptions, read_npz, write_npz};
use rlx_testkit::peak_allocation::{PeakAllocator, peak};

#[global_allocator]
static ALLOCATOR: PeakAllocator = PeakAllocator;

/// Names, tables and the decompressor's window.
const CONSTANT: usize = 128 << 10;

const SIZE: usize = 4 << 20;

fn npy(version: u8, length: &[u8], header: &str, elements: usize) -> Vec<u8> {
    let mut bytes = [b"\x93NUMPY".as_slice(), &[version, 0], length, header.as_bytes()].concat();
    bytes.resize(bytes.len() + elements, 0);
    bytes
}

#[test]
fn peak_allocation_is_what_the_file_backs() {
    let header = |shape: &str, fortran: &str| {
        let text = format!("{{'descr': '>f4', 'fortran_order': {fortran}, 'shape': {shape}, }}");
        npy(1, &(text.len() as u16).to_le_bytes(), &text, SIZE)
    };
    let hostile = [
        header("(1099511627776,)", "False"),
        header("(2147483648, 1073741824)", "True"),
        header(&format!("({})", "1, ".repeat(20_000)), "False"),
        npy(2, &u32::MAX.to_le_bytes(), "{'descr': '<f4', ", SIZE),
        // An element type of a million letters.
        npy(2, &1_000_018u32.to_le_bytes(), &format!("{{'descr': 'U{}'", "9".repeat(1_000_000)), SIZE),
    ];
    for file in &hostile {
        let (result, peak) = peak(|| read_npy(file).is_ok());
        assert!(!result);
        assert!(peak <= file.len() + CONSTANT, "{peak}");
    }
    for fortran in ["False", "True"] {
        let file = header("(1024, 1024)", fortran);
        let (result, peak) = peak(|| read_npy(&file));
        assert_eq!(result.unwrap().shape(), [1024, 1024]);
        assert!(peak <= file.len() + CONSTANT, "{peak}");
    }

    // Four thousand times smaller than what it holds, or than what it says it holds.
    let zeros = NpyArray::new(NpyType::U8, vec![SIZE], vec![0; SIZE]).unwrap();
    let mut file = Vec::new();
    write_npz([("a", &zeros), ("b", &zeros)], NpzCompression::Deflate, &mut file).unwrap();
    let (result, peak_bytes) = peak(|| read_npz(&file, &NpzOptions { max_bytes: SIZE as u64 }));
    assert!(matches!(result, Err(NpzError::TooLarge { .. })));
    assert!(peak_bytes <= CONSTANT, "{peak_bytes}");
    let (result, peak_bytes) = peak(|| read_npz(&file, &NpzOptions::default()));
    assert_eq!(result.unwrap().len(), 2);
    assert!((2 * SIZE..2 * SIZE + CONSTANT).contains(&peak_bytes), "{peak_bytes}");

    let mut claim = file.clone();
    let entry = claim.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    claim[entry + 24..entry + 28].copy_from_slice(&900_000_000u32.to_le_bytes());
    let (result, peak_bytes) = peak(|| read_npz(&claim, &NpzOptions::default()));
    assert!(matches!(result, Err(NpzError::Archive(_))));
    assert!(peak_bytes <= CONSTANT, "{peak_bytes}");
}
