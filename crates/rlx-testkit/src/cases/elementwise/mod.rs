//! Cases of the elementwise primitives.

mod binary;
mod cast;
mod unary;

use crate::case::{Case, FLOATS, INTEGERS, bools, f32s, for_dtypes, op_case};
use crate::random::Domain;
use rlx_ir::{DType, Literal};

pub(super) use binary::binary;
pub(super) use cast::{bitcast, cast};
pub(super) use unary::unary;

/// The elements of an integer or bool literal, of which no 64-bit one fits an f64.
pub(super) fn integers(literal: &Literal) -> Vec<i128> {
    match literal.dtype() {
        DType::U64 => literal.to_vec::<u64>().unwrap_or_default().into_iter().map(i128::from).collect(),
        _ => literal.to_i64_vec().unwrap_or_default().into_iter().map(i128::from).collect(),
    }
}

/// A literal of these numbers, each reduced modulo 2^bits: two's complement wrapping.
pub(super) fn wrapped(dtype: DType, dims: &[usize], values: &[i128]) -> Literal {
    let width = dtype.bits().map_or(0, |bits| bits as usize / 8);
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()[..width].to_vec()).collect();
    Literal::new(dtype, dims, bytes).expect("as many elements as the sizes say")
}

/// Expects the integers that `f` gives of the elements at the same index of all inputs, wrapped to `to`.
pub(super) fn integer_values(case: Case, to: DType, f: impl Fn(&[i128]) -> i128) -> Case {
    let inputs: Vec<Vec<i128>> = case.inputs.iter().map(integers).collect();
    let Some(first) = case.inputs.first() else { return case };
    let dims = first.dims().to_vec();
    let values: Vec<i128> = (0..first.element_count())
        .map(|i| f(&inputs.iter().map(|input| input[i]).collect::<Vec<_>>()))
        .collect();
    case.values([wrapped(to, &dims, &values)])
}

/// Cases of the comparisons.
pub(super) fn compare() -> Vec<Case> {
    let operations: [(&str, fn(f64, f64) -> bool); 6] = [
        ("eq", |x, y| x == y),
        ("ne", |x, y| x != y),
        ("lt", |x, y| x < y),
        ("le", |x, y| x <= y),
        ("gt", |x, y| x > y),
        ("ge", |x, y| x >= y),
    ];
    let mut cases = Vec::new();
    for (op, holds) in operations {
        let formula = move |x: &[crate::Array]| x[0].zip(&x[1], |x, y| f64::from(u8::from(holds(x, y))));
        // Few distinct values, so that many are equal; NaN among them.
        let narrow: &[DType] = &[DType::F8E4M3FN, DType::F8E5M2];
        cases.extend(for_dtypes(&[FLOATS, narrow].concat(), |dtype| {
            op_case(op, "with_nan", "", &format!("{dtype}[5, n], {dtype}[5, n]"))
                .sizes([("n", 13)])
                .random(Domain::Whole(-1, 1).special())
                .formula(formula)
        }));
        cases.extend(for_dtypes(&[INTEGERS, &[DType::Bool]].concat(), |dtype| {
            let case = op_case(op, "whole", "", &format!("{dtype}[33], {dtype}[33]"))
                .random(Domain::Whole(0, 2).special());
            integer_values(case, DType::Bool, |x| {
                i128::from(match op {
                    "eq" => x[0] == x[1],
                    "ne" => x[0] != x[1],
                    "lt" => x[0] < x[1],
                    "le" => x[0] <= x[1],
                    "gt" => x[0] > x[1],
                    _ => x[0] >= x[1],
                })
            })
        }));
        cases.push(op_case(op, "mixed_types", "", "f32[2], i32[2]").fails_build("C2"));
        cases.push(op_case(op, "sizes_differ", "", "f32[2], f32[3]").fails_build("C2"));
    }
    let complex = "c64[2], c64[2]";
    let (x, y) = (
        crate::literal(DType::C64, [2, 2], [1.0, 2.0, 3.0, 0.0]),
        crate::literal(DType::C64, [2, 2], [1.0, 2.0, 3.0, 1.0]),
    );
    cases.push(
        op_case("eq", "complex", "", complex)
            .inputs([x.clone(), y.clone()])
            .values([bools([2], [true, false])]),
    );
    cases.push(op_case("ne", "complex", "", complex).inputs([x, y]).values([bools([2], [false, true])]));
    cases.push(op_case("lt", "complex", "", complex).fails_build("C1"));
    cases
}

/// Cases of `select`.
pub(super) fn select() -> Vec<Case> {
    let all = [FLOATS, INTEGERS, &[DType::Bool, DType::F8E5M2]].concat();
    let mut cases = for_dtypes(&all, |dtype| {
        op_case("select", "mixed", "", &format!("bool[3, n], {dtype}[3, n], {dtype}[3, n]"))
            .sizes([("n", 7)])
            .random_input(Domain::Range(0.0, 1.0))
            .random(Domain::Range(-8.0, 8.0).special())
            .formula(|x| {
                let chosen = x[0].data.iter().zip(&x[1].data).zip(&x[2].data);
                crate::Array::new(
                    x[0].dims.clone(),
                    chosen.map(|((c, x), y)| if *c != 0.0 { *x } else { *y }).collect::<Vec<_>>(),
                )
            })
    });
    cases.push(
        // The condition is a transpose whose every element is true.
        crate::case(
            "select",
            "transposed_condition",
            "(%c: bool[2, 2], %x: f32[2, 2], %y: f32[2, 2]) {
            %t = transpose<perm=[1, 0]>(%c)
            %z = select(%t, %x, %y)
            return \"z\" = %z
        }",
        )
        .inputs([bools([2, 2], [true; 4]), f32s([2, 2], [0.0, 0.0, 0.0, 1.0]), f32s([2, 2], [0.0; 4])])
        .values([f32s([2, 2], [0.0, 0.0, 0.0, 1.0])]),
    );
    cases.push(
        op_case("select", "nan_that_is_not_chosen_stays_away", "", "bool[2], f32[2], f32[2]")
            .inputs([bools([2], [true, false]), f32s([2], [1.0, f32::NAN]), f32s([2], [f32::NAN, 2.0])])
            .values([f32s([2], [1.0, 2.0])]),
    );
    cases.extend([
        op_case("select", "number_as_condition", "", "i32[2], f32[2], f32[2]").fails_build("C1"),
        op_case("select", "mixed_types", "", "bool[2], f32[2], f16[2]").fails_build("C2"),
        op_case("select", "scalar_condition", "", "bool[], f32[2], f32[2]").fails_build("C3"),
    ]);
    cases
}

/// Cases of `complex`.
pub(super) fn make_complex() -> Vec<Case> {
    let mut cases = for_dtypes(&[DType::F32, DType::F64], |dtype| {
        op_case("complex", "parts", "", &format!("{dtype}[3, 5], {dtype}[3, 5]"))
            .random(Domain::Normal.special())
            .formula(|x| {
                let parts: Vec<f64> =
                    x[0].data.iter().zip(&x[1].data).flat_map(|(re, im)| [*re, *im]).collect();
                crate::Array::new([3, 5, 2], parts)
            })
    });
    cases.push(op_case("complex", "half", "", "f16[2], f16[2]").fails_build("C1"));
    cases.push(op_case("complex", "mixed_types", "", "f32[2], f64[2]").fails_build("C2"));
    cases
}
