//! Bytes as a PNG file: whatever they are, the reader gives pixels within the limit, or an error.

#![no_main]

use rlx_fuzz as _;

/// The most bytes that the pixels may take; past it the reader must refuse.
const BYTE_LIMIT: u64 = 1 << 20;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(image) = rlx::io::image::decode_png(bytes, BYTE_LIMIT) {
        let [height, width, channels] = image.shape();
        assert_eq!(image.to_f32().len(), height * width * channels);
    }
});
