//! Bytes as an npz file: arrays or an error, and arrays survive being written.

#![no_main]

use rlx_fuzz as _;

use rlx::io::npz::{NpzCompression, NpzOptions, read_npz, write_npz};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let options = NpzOptions { max_bytes: 16 << 20 };
    if let Ok(arrays) = read_npz(bytes, &options) {
        let named = arrays.iter().map(|(name, array)| (name.as_str(), array));
        let mut written = Vec::new();
        write_npz(named, NpzCompression::Stored, &mut written).expect("what was read fits");
        assert_eq!(read_npz(&written, &NpzOptions::default()).expect("what was read once is sound"), arrays);
    }
});
