//! Cases of `random_bits`.

use super::elementwise::wrapped;
use crate::case::{Case, case, op_case};
use rlx_ir::{DType, Literal};

/// Philox 4×32-10 as its authors describe it (Salmon et al. 2011), written with 64-bit products.
fn block(mut counter: [u64; 4], mut key: [u64; 2]) -> [u64; 4] {
    const LOW: u64 = 0xffff_ffff;
    for _ in 0..10 {
        let (a, b) = (0xd251_1f53 * counter[0], 0xcd9e_8d57 * counter[2]);
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & LOW, (a >> 32) ^ counter[3] ^ key[1], a & LOW];
        key = [(key[0] + 0x9e37_79b9) & LOW, (key[1] + 0xbb67_ae85) & LOW];
    }
    counter
}

/// Word `counter + i` of the stream: word (position mod 4) of block (position div 4).
fn words(key: [u64; 2], counter: u64, count: usize) -> Vec<i128> {
    let split = |x: u64| [x & 0xffff_ffff, x >> 32];
    (0..count as u64)
        .map(|i| {
            let position = counter.wrapping_add(i);
            let ([c0, c1], [c2, c3]) = (split(position / 4), split(key[1]));
            i128::from(block([c0, c1, c2, c3], split(key[0]))[(position % 4) as usize])
        })
        .collect()
}

fn u64s(dims: &[usize], values: &[u64]) -> Literal {
    wrapped(DType::U64, dims, &values.iter().map(|v| i128::from(*v)).collect::<Vec<_>>())
}

/// Cases of `random_bits`.
pub(super) fn random_bits() -> Vec<Case> {
    let drawn = |name: &str, dims: &[usize], key: [u64; 2], counter: u64| {
        let count = dims.iter().product();
        op_case("random_bits", name, &format!("dims={dims:?}"), "u64[2], u64[]")
            .inputs([u64s(&[2], &key), u64s(&[], &[counter])])
            .values([wrapped(DType::U32, dims, &words(key, counter, count))])
            .without_views()
    };
    // The known answers of the authors' own library (Random123, kat_vectors): the counter's low half is position / 4.
    let known = |name: &str, key: [u64; 2], counter: u64, answer: [i128; 4]| {
        op_case("random_bits", name, "dims=[4]", "u64[2], u64[]")
            .inputs([u64s(&[2], &key), u64s(&[], &[counter])])
            .values([wrapped(DType::U32, &[4], &answer)])
    };
    vec![
        known("known_answer_of_zeros", [0, 0], 0, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
        drawn("one_block", &[4], [42, 0], 0),
        drawn("from_inside_a_block", &[3, 5], [u64::MAX, 1 << 40], 3),
        drawn("counter_beyond_32_bits", &[9], [7, 9], (1 << 34) + 2),
        drawn("counter_wraps", &[6], [1, 2], u64::MAX - 1),
        drawn("scalar", &[], [3, 4], 5),
        drawn("nothing", &[0, 3], [3, 4], 5),
        case(
            "random_bits",
            "symbolic",
            "(%key: u64[2], %c: u64[], %x: f32[n]) {
            %y = random_bits<dims=[n, 2]>(%key, %c)
            return \"y\" = %y
        }",
        )
        .inputs([u64s(&[2], &[1, 2]), u64s(&[], &[0]), crate::f32s([3], [0.0; 3])])
        .values([wrapped(DType::U32, &[3, 2], &words([1, 2], 0, 6))]),
        op_case("random_bits", "signed_key", "dims=[4]", "i64[2], u64[]").fails_build("C1"),
        op_case("random_bits", "key_of_three", "dims=[4]", "u64[3], u64[]").fails_build("C2"),
        op_case("random_bits", "counter_with_an_axis", "dims=[4]", "u64[2], u64[1]").fails_build("C2"),
        op_case("random_bits", "negative_size", "dims=[-4]", "u64[2], u64[]").fails_build("C2"),
    ]
}
