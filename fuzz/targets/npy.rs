//! Bytes as an npy file: an array or an error, and an array survives being written.

#![no_main]

use rlx_fuzz as _;

use rlx::io::npy::{read_npy, write_npy};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(array) = read_npy(bytes) {
        let mut written = Vec::new();
        write_npy(&array, &mut written).expect("memory takes everything");
        assert_eq!(read_npy(&written).expect("what was read once is sound"), array);
    }
});
