//! Counter-based random bits: Philox 4×32-10.
//!
//! Source: Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. The
//! generator is a keyed bijection of a 128-bit counter, so any element of a random tensor can be computed
//! alone, in any order, on any device.
//!
//! # How `random_bits(key: u64[2], counter, dims)` uses it
//! - `key[0]` is the seed: its low and high halves are words 0 and 1 of the Philox key.
//! - `key[1]` is the stream: its low and high halves are words 2 and 3 of the Philox counter.
//! - Element `i` of the result, in row-major order, sits at position `p = counter + i` (modulo 2^64) of the
//!   stream. It is word `p mod 4` of the block whose Philox counter has the low and high halves of `p div 4`
//!   as words 0 and 1.
//!
//! So `counter` counts 32-bit words: a call that drew `n` words is continued by `counter + n`, and two calls
//! overlap exactly where their positions do.
//!
//! # What is built on the bits
//! - Uniform in [0, 1): `(bits >> 8) · 2^−24`, exact in f32 ([`uniform`]).
//! - Normal: Box–Muller on two words, `r = √(−2 ln u₁)`, `θ = 2π u₂`, giving `r cos θ` and `r sin θ`, where
//!   `u₁ = ((bits₁ >> 8) + 1) · 2^−24` lies in (0, 1] so that the logarithm is finite, and `u₂` is uniform
//!   ([`box_muller`]).

/// Rounds of the recommended variant.
const ROUNDS: u32 = 10;
/// Multipliers of the two lanes (Salmon et al., table 2).
const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
/// What each key word grows by between rounds: the golden ratio and √3 − 1 as 0.32 fixed-point numbers.
const KEY_STEPS: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
/// 2^−24: the spacing of uniform numbers.
const UNIFORM_STEP: f64 = 1.0 / 16_777_216.0;

/// One block of four random words: Philox 4×32 with ten rounds.
pub fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..ROUNDS {
        let (high0, low0) = split(u64::from(MULTIPLIERS[0]) * u64::from(c0));
        let (high1, low1) = split(u64::from(MULTIPLIERS[1]) * u64::from(c2));
        [c0, c1, c2, c3] = [high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0];
        k0 = k0.wrapping_add(KEY_STEPS[0]);
        k1 = k1.wrapping_add(KEY_STEPS[1]);
    }
    [c0, c1, c2, c3]
}

/// The high and the low half.
fn split(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

/// `count` random words of the stream `key` from position `counter` on, laid out as the module says.
///
/// ```
/// use rlx_eval::numeric::philox::random_bits;
/// let key = [42, 7];
/// assert_eq!(random_bits(key, 0, 10)[3..], random_bits(key, 3, 7));
/// ```
pub fn random_bits(key: [u64; 2], counter: u64, count: usize) -> Vec<u32> {
    let [seed, stream] = key;
    let (seed_high, seed_low) = split(seed);
    let (stream_high, stream_low) = split(stream);
    let block_at = |index: u64| {
        let (high, low) = split(index);
        philox4x32([low, high, stream_low, stream_high], [seed_low, seed_high])
    };
    let mut words = Vec::with_capacity(count);
    let mut position = counter;
    let mut block = block_at(position / 4);
    for _ in 0..count {
        words.push(block[(position % 4) as usize]);
        position = position.wrapping_add(1);
        if position.is_multiple_of(4) {
            block = block_at(position / 4);
        }
    }
    words
}

/// A uniform number in [0, 1) from the top 24 bits of a word; exact in f32.
pub fn uniform(bits: u32) -> f64 {
    f64::from(bits >> 8) * UNIFORM_STEP
}

/// Two independent standard normal numbers from two words, in f64: the values by which an f32 Box–Muller is
/// judged.
pub fn box_muller(bits: [u32; 2]) -> [f64; 2] {
    let radius = libm::sqrt(-2.0 * libm::log(uniform(bits[0]) + UNIFORM_STEP));
    let angle = std::f64::consts::TAU * uniform(bits[1]);
    [radius * libm::cos(angle), radius * libm::sin(angle)]
}
