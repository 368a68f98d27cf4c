//! Cases of Fourier transforms: by their definition, and as numpy gives them.

use crate::Array;
use crate::case::{Case, Stage, for_dtypes, literal, op_case};
use crate::golden::golden;
use crate::random::Domain;
use rlx_ir::DType;
use std::f64::consts::TAU;

/// Σ x[n] e^(±2πi·kn/N) over an axis of an array of complex numbers.
fn transformed(x: &Array, axis: usize, inverse: bool) -> Array {
    let length = x.dims[axis];
    let sign = if inverse { 1.0 } else { -1.0 };
    Array::from_fn(x.dims.clone(), |index| {
        let (k, part) = (index[axis], index[index.len() - 1]);
        let mut at = index.to_vec();
        let mut sum = 0.0;
        for n in 0..length {
            at[axis] = n;
            let mut pick = |part: usize| {
                *at.last_mut().expect("a complex array ends in its parts") = part;
                x.at(&at)
            };
            let (re, im) = (pick(0), pick(1));
            // Reduced modulo N first, so that the angle stays exact.
            let (sine, cosine) = (sign * TAU * ((k * n) % length) as f64 / length as f64).sin_cos();
            sum += if part == 0 { re * cosine - im * sine } else { re * sine + im * cosine };
        }
        if inverse { sum / length as f64 } else { sum }
    })
}

/// Real numbers as complex ones.
fn complex(x: &Array) -> Array {
    let dims: Vec<usize> = x.dims.iter().copied().chain([2]).collect();
    Array::new(dims, x.data.iter().flat_map(|re| [*re, 0.0]).collect::<Vec<_>>())
}

/// Elements 0 … count of an axis.
fn first(x: &Array, axis: usize, count: usize) -> Array {
    let mut dims = x.dims.clone();
    dims[axis] = count;
    Array::from_fn(dims, |index| x.at(index))
}

/// Cases of the transforms.
pub(super) fn fft() -> Vec<Case> {
    let mut cases = Vec::new();
    // Sums of normal numbers: no term is above 4, and there are n of them.
    let judged = |case: Case, n: usize| {
        case.within(crate::Tolerance::Accumulated {
            terms: n,
            magnitude: crate::Magnitude::Fixed(8.0 * n as f64),
        })
    };
    for (op, inverse) in [("fft", false), ("ifft", true)] {
        for n in [1, 2, 3, 4, 7, 12, 13, 16, 17, 32] {
            cases.extend(for_dtypes(&[DType::C64, DType::C128], |dtype| {
                judged(
                    op_case(op, &format!("length_{n}"), "axis=1", &format!("{dtype}[2, n]"))
                        .sizes([("n", n)])
                        .random(Domain::Range(-4.0, 4.0))
                        .formula(move |x| transformed(&x[0], 1, inverse)),
                    n,
                )
            }));
        }
        cases.push(judged(
            op_case(op, "inner_axis", "axis=1", "c64[2, 6, 3]")
                .random(Domain::Range(-4.0, 4.0))
                .formula(move |x| transformed(&x[0], 1, inverse)),
            6,
        ));
        cases.extend([
            op_case(op, "no_rows", "axis=1", "c64[0, 4]").random(Domain::Normal).formula(|x| x[0].clone()),
            op_case(op, "real_numbers", "axis=0", "f32[4]").fails_build("C1"),
            op_case(op, "bad_axis", "axis=1", "c64[4]").fails_build("C2"),
            op_case(op, "length_given", "axis=0, length=4", "c64[4]").fails_build("C3"),
        ]);
    }
    for n in [1, 2, 3, 4, 7, 16, 17] {
        cases.extend(for_dtypes(&[DType::F32, DType::F64], |dtype| {
            judged(
                op_case("rfft", &format!("length_{n}"), "axis=1", &format!("{dtype}[2, n]"))
                    .sizes([("n", n)])
                    .random(Domain::Range(-4.0, 4.0))
                    .formula(move |x| first(&transformed(&complex(&x[0]), 1, false), 1, n / 2 + 1)),
                n,
            )
        }));
        cases.extend(for_dtypes(&[DType::C64, DType::C128], |dtype| {
            // The spectrum of real numbers: imaginary parts of the ends do not count, so they are left random.
            judged(
                op_case(
                    "irfft",
                    &format!("length_{n}"),
                    &format!("axis=1, length={n}"),
                    &format!("{dtype}[2, {}]", n / 2 + 1),
                )
                .random(Domain::Range(-4.0, 4.0))
                .formula(move |x| {
                    let half = &x[0];
                    let whole = Array::from_fn([2, n, 2], |i| {
                        let (k, mirrored) = if i[1] <= n / 2 { (i[1], false) } else { (n - i[1], true) };
                        let own_mirror = k == 0 || 2 * k == n;
                        match (i[2], own_mirror) {
                            (0, _) => half.at(&[i[0], k, 0]),
                            (_, true) => 0.0,
                            _ => half.at(&[i[0], k, 1]) * if mirrored { -1.0 } else { 1.0 },
                        }
                    });
                    let back = transformed(&whole, 1, true);
                    Array::from_fn([2, n], |i| back.at(&[i[0], i[1], 0]))
                }),
                n,
            )
        }));
    }
    cases.extend([
        op_case("fft", "impulse", "axis=0", "c64[4]")
            .input(literal(DType::C64, [4, 2], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
            .values([literal(DType::C64, [4, 2], [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0])])
            .accumulated(4),
        op_case("irfft", "symbolic", "axis=0, length=2*n - 2", "c64[n]")
            .sizes([("n", 3)])
            .random(Domain::Normal)
            .accumulated(4),
        op_case("irfft", "symbolic_length_that_does_not_fit", "axis=0, length=n", "c64[n]")
            .sizes([("n", 4)])
            .random(Domain::Normal)
            .fails(Stage::Run, "C3"),
        op_case("rfft", "half", "axis=0", "f16[4]").fails_build("C1"),
        op_case("rfft", "complex", "axis=0", "c64[4]").fails_build("C1"),
        op_case("rfft", "bad_axis", "axis=1", "f32[4]").fails_build("C2"),
        op_case("irfft", "without_length", "axis=0", "c64[3]").fails_build("C3"),
        op_case("irfft", "length_that_does_not_fit", "axis=0, length=6", "c64[3]").fails_build("C3"),
        op_case("irfft", "length_zero", "axis=0, length=0", "c64[1]").fails_build("C3"),
        op_case("irfft", "real_numbers", "axis=0, length=4", "f32[3]").fails_build("C1"),
    ]);
    for op in ["fft", "ifft", "rfft", "irfft"] {
        cases.extend(golden(include_str!("../../golden/spectral.case"), op));
    }
    cases
}
