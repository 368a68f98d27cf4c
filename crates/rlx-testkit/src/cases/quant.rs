//! Cases of `dequantise`: the numbers that ggml's own Python package gives, and hand-written ones for the formats that
//! it does not read.

use crate::Array;
use crate::case::{Case, f32s, op_case};
use crate::golden::golden;
use crate::random::Random;
use rlx_ir::{BlockFormat, DType, Literal};

/// The bits of 0.5 as f16, and of 0.25 as f32, little-endian.
const HALF_F16: [u8; 2] = [0x00, 0x38];
const QUARTER_F32: [u8; 4] = [0x00, 0x00, 0x80, 0x3e];

/// One block: these bytes at the start, then random ones.
fn block(format: BlockFormat, start: &[u8]) -> Vec<u8> {
    let mut random = Random::named(format.name());
    let mut bytes = start.to_vec();
    bytes.extend((start.len()..format.block_bytes()).map(|_| random.bits() as u8));
    bytes
}

/// A case of one block whose element i is `value(codes, i)`, `codes` being what follows the start.
fn by_definition(format: BlockFormat, start: &[u8], value: fn(&[u8], usize) -> f64) -> Case {
    let bytes = block(format, start);
    let codes = bytes[start.len()..].to_vec();
    let n = format.block_len();
    let literal = Literal::new(DType::Block(format), [n], bytes).expect("one block");
    let values: Vec<f64> = (0..n).map(|i| value(&codes, i)).collect();
    op_case(
        "dequantise",
        &format!("definition_{}", format.name()),
        "to=f32",
        &format!("{}[{n}]", format.name()),
    )
    .input(literal)
    .values([Array::new([n], values).to_literal(DType::F32)])
}

/// Cases of `dequantise`.
pub(super) fn dequantise() -> Vec<Case> {
    let mut cases = golden(include_str!("../../golden/quant.case"), "dequantise");
    // The same blocks to the narrower floats: rounded once from f32.
    for to in [DType::F16, DType::BF16, DType::F64] {
        let recorded = golden(include_str!("../../golden/quant.case"), "dequantise");
        cases.extend(recorded.into_iter().filter_map(|case| {
            let t = case.graph.as_ref().ok()?.input_types().next()?.1.clone();
            let crate::Expect::Values(values) = &case.expect else { return None };
            let values = Array::from_literal(values.first()?)?.to_literal(to);
            let name = format!("{}_to_{to}", case.name);
            Some(
                op_case("dequantise", &name, &format!("to={to}"), &t.to_string())
                    .inputs(case.inputs.clone())
                    .values([values]),
            )
        }));
    }
    let sum_of_q8_1: Vec<u8> = HALF_F16.into_iter().chain([0xaa, 0x3c]).collect();
    cases.extend([
        by_definition(BlockFormat::Q8_1, &sum_of_q8_1, |codes, i| 0.5 * f64::from(codes[i] as i8)),
        by_definition(BlockFormat::Q8_K, &QUARTER_F32, |codes, i| 0.25 * f64::from(codes[i] as i8)),
        by_definition(BlockFormat::Q1_0, &HALF_F16, |codes, i| {
            if codes[i / 8] >> (i % 8) & 1 == 1 { 0.5 } else { -0.5 }
        }),
        by_definition(BlockFormat::Q2_0, &HALF_F16, |codes, i| {
            0.5 * (f64::from(codes[i / 4] >> (2 * (i % 4)) & 3) - 1.0)
        }),
        op_case("dequantise", "no_rows", "to=f32", "q4_0[0, 32]")
            .input(
                Literal::new(DType::Block(BlockFormat::Q4_0), [0, 32], Vec::<u8>::new()).expect("no bytes"),
            )
            .values([f32s([0, 32], [])]),
        op_case("dequantise", "plain_type", "to=f32", "i8[32]").fails_build("C1"),
        op_case("dequantise", "to_integers", "to=i32", "q8_0[32]").fails_build("C2"),
    ]);
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_format_has_a_case() {
        let names: Vec<String> = dequantise().iter().map(|case| case.name.clone()).collect();
        for format in BlockFormat::ALL {
            let covered = names
                .iter()
                .any(|n| n.strip_prefix("golden_").or(n.strip_prefix("definition_")) == Some(format.name()));
            assert!(covered, "{}", format.name());
        }
    }
}
