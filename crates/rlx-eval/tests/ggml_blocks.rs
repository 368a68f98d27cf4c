//! The block decoder against ggml itself: goldens recorded by `references/ggml_blocks.py`, bit for bit.

use rlx_eval::quant::{DequantiseError, dequantise};
use rlx_ir::block::BlockFormat;

/// What the golden file says about one format.
struct Golden {
    name: &'static str,
    ggml_id: u32,
    block_len: usize,
    block_bytes: usize,
    /// The bytes of a block and the bits of its f32 values.
    blocks: Vec<(Vec<u8>, Vec<u32>)>,
    sweep: Sweep,
}

/// Many blocks of random bytes, with a hash of their values.
struct Sweep {
    seed: u64,
    blocks: usize,
    hash: u64,
}

fn goldens() -> Vec<Golden> {
    let mut lines =
        include_str!("golden/ggml_blocks.txt").lines().filter(|line| !line.starts_with('#')).peekable();
    let mut goldens = Vec::new();
    while let Some(line) = lines.next() {
        let fields: Vec<&'static str> = line.split(' ').collect();
        let ["format", name, ggml_id, block_len, block_bytes] = fields[..] else { panic!("{line}") };
        let mut blocks = Vec::new();
        while let Some(block) = lines.next_if(|line| line.starts_with("block ")) {
            let (bytes, values) = block["block ".len()..].split_once(" / ").expect("bytes / values");
            let bytes = hex_words(bytes, 2).map(|byte| byte as u8).collect();
            blocks.push((bytes, hex_words(values, 8).collect()));
        }
        let sweep: Vec<&str> = lines.next().expect("a sweep line").split(' ').collect();
        let ["sweep", seed, count, hash] = sweep[..] else { panic!("{sweep:?}") };
        goldens.push(Golden {
            name,
            ggml_id: ggml_id.parse().expect("a number"),
            block_len: block_len.parse().expect("a number"),
            block_bytes: block_bytes.parse().expect("a number"),
            blocks,
            sweep: Sweep {
                seed: seed.parse().expect("a number"),
                blocks: count.parse().expect("a number"),
                hash: u64::from_str_radix(hash, 16).expect("a hash"),
            },
        });
    }
    goldens
}

/// The numbers of a string of hexadecimal words of the same width.
fn hex_words(text: &str, width: usize) -> impl Iterator<Item = u32> {
    (0..text.len()).step_by(width).map(move |at| u32::from_str_radix(&text[at..at + width], 16).expect("hex"))
}

/// The first bytes of the SplitMix64 generator.
fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed;
    let words = std::iter::repeat_with(|| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    });
    words.flat_map(u64::to_le_bytes).take(count).collect()
}

/// The bits of a value, with one pattern for every NaN.
fn canonical_bits(value: f32) -> u32 {
    if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() }
}

fn format_of(golden: &Golden) -> BlockFormat {
    BlockFormat::from_name(golden.name).unwrap_or_else(|| panic!("{} is missing", golden.name))
}

#[test]
fn the_formats_are_those_of_ggml_with_its_numbers_and_sizes() {
    let goldens = goldens();
    for golden in &goldens {
        let format = format_of(golden);
        let ours = (format.ggml_id(), format.block_len(), format.block_bytes());
        assert_eq!(ours, (golden.ggml_id, golden.block_len, golden.block_bytes), "{format}");
    }
    assert_eq!(goldens.len(), BlockFormat::ALL.len());
}

#[test]
fn blocks_decode_to_the_same_bits_as_in_ggml() {
    for golden in goldens() {
        let format = format_of(&golden);
        assert!(!golden.blocks.is_empty(), "{format}");
        for (bytes, expected) in &golden.blocks {
            let mut values = vec![0.0; golden.block_len];
            dequantise(format, bytes, &mut values).expect("one whole block");
            assert_eq!(values.len(), expected.len());
            for (index, (value, &bits)) in values.iter().zip(expected).enumerate() {
                let expected = f32::from_bits(bits);
                assert_eq!(value.to_bits(), bits, "{format}, element {index}: {value:e} for {expected:e}");
            }
        }
    }
}

/// Reaches every point of the code books, and scales that are infinite, NaN, subnormal or zero.
#[test]
fn any_bytes_decode_to_the_same_bits_as_in_ggml() {
    for golden in goldens() {
        let (format, sweep) = (format_of(&golden), &golden.sweep);
        let bytes = random_bytes(sweep.seed, sweep.blocks * golden.block_bytes);
        let mut values = vec![0.0; sweep.blocks * golden.block_len];
        dequantise(format, &bytes, &mut values).expect("whole blocks");
        let hash = values.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &value| {
            (hash ^ u64::from(canonical_bits(value))).wrapping_mul(0x100_0000_01b3)
        });
        assert_eq!(hash, sweep.hash, "{format}");
    }
}

#[test]
fn blocks_of_one_repeated_byte_decode_and_fill_the_output() {
    const UNTOUCHED: u32 = 0x7fc1_2345;
    for &format in BlockFormat::ALL {
        for byte in 0..=u8::MAX {
            let bytes = vec![byte; 2 * format.block_bytes()];
            let mut values = vec![f32::from_bits(UNTOUCHED); 2 * format.block_len()];
            dequantise(format, &bytes, &mut values).expect("two whole blocks");
            assert!(values.iter().all(|value| value.to_bits() != UNTOUCHED), "{format}, bytes {byte:#x}");
        }
    }
}

#[test]
fn no_blocks_fill_an_empty_output() {
    for &format in BlockFormat::ALL {
        assert_eq!(dequantise(format, &[], &mut []), Ok(()));
    }
}

#[test]
fn bytes_that_end_inside_a_block_are_an_error() {
    for &format in BlockFormat::ALL {
        for count in (1..format.block_bytes()).chain([format.block_bytes() + 1]) {
            let mut values = vec![7.0; format.block_len()];
            let result = dequantise(format, &vec![0; count], &mut values);
            assert_eq!(result, Err(DequantiseError::PartialBlock { format, bytes: count }));
            assert!(values.iter().all(|&value| value == 7.0), "{format}: the output was touched");
        }
    }
}

#[test]
fn an_output_of_another_length_is_an_error() {
    for &format in BlockFormat::ALL {
        let len = format.block_len();
        for elements in [0, 1, len, 2 * len - 1, 2 * len + 1, 3 * len] {
            let mut values = vec![7.0; elements];
            let result = dequantise(format, &vec![0; 2 * format.block_bytes()], &mut values);
            assert_eq!(result, Err(DequantiseError::OutputLength { format, blocks: 2, elements }));
            assert!(values.iter().all(|&value| value == 7.0), "{format}: the output was touched");
        }
    }
}

#[test]
fn errors_name_the_format_and_the_sizes() {
    let partial = dequantise(BlockFormat::Q4_0, &[0; 19], &mut [0.0; 32]).expect_err("19 bytes");
    assert_eq!(partial.to_string(), "q4_0: 19 bytes are not a whole number of blocks of 18 bytes");
    let length = dequantise(BlockFormat::Q4_0, &[0; 36], &mut [0.0; 32]).expect_err("one block too few");
    assert_eq!(
        length.to_string(),
        "q4_0: 2 blocks of 32 elements do not fill an output of 32 elements exactly"
    );
}
