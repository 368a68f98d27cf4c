//! Tests of the oracle's numeric leaf functions: against recorded references (`references/numeric/`), against
//! plain formulas, and against the defining properties of decompositions.

mod fft;
mod linalg;
mod minifloat;
mod philox;
mod scalar;
mod special;

/// The records of a golden file: the words of each line.
fn records(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().map(|line| line.split(' ').collect())
}

/// The f64 whose bits a golden file gives in hexadecimal.
fn f64_of(word: &str) -> f64 {
    f64::from_bits(u64::from_str_radix(word, 16).expect("16 hexadecimal digits"))
}

/// A fixed sequence of numbers in [−1, 1).
fn numbers(count: usize) -> Vec<f64> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
        })
        .collect()
}
