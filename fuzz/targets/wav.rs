//! Bytes as a WAV file: whatever they are, the reader gives samples or an error.

#![no_main]

use rlx_fuzz as _;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(audio) = rlx::io::audio::decode_wav(bytes) {
        assert_eq!(audio.samples().len(), audio.frames() * usize::from(audio.channels()));
    }
});
