//! Cases of the SPD layers. Known eigensystems (rotations of diagonal matrices) and commuting matrices give the exact
//! results; properties of the affine-invariant metric judge the rest.

use crate::array::Array;
use crate::case::{Case, f64s, for_dtypes, literal, op_case};
use crate::golden::golden;
use crate::random::{Domain, Random};
use crate::tolerance::{Tolerance, epsilon};
use rlx_ir::{DType, Literal};

/// What outside references give; recorded by `references/cases/scipy_matrices.py`.
const RECORDED: &str = include_str!("../../golden/manifold.case");

const TYPES: &[DType] = &[DType::F32, DType::F64];

/// What eigendecompositions may be off, for results of about `size`.
fn stable(dtype: DType, size: f64) -> Tolerance {
    Tolerance::Within { absolute: 200.0 * epsilon(dtype) * size, relative: 0.0 }
}

fn product(x: &Array, y: &Array) -> Array {
    Array::from_fn([x.dims[0], y.dims[1]], |at| {
        (0..x.dims[1]).map(|k| x.at(&[at[0], k]) * y.at(&[k, at[1]])).sum()
    })
}

/// A rotation of three axes by fixed angles.
fn rotation() -> Array {
    let turn = |i: usize, j: usize, angle: f64| {
        Array::from_fn([3, 3], |at| match (at[0], at[1]) {
            (a, b) if a == b && (a == i || a == j) => angle.cos(),
            (a, b) if a == i && b == j => -angle.sin(),
            (a, b) if a == j && b == i => angle.sin(),
            (a, b) => f64::from(u8::from(a == b)),
        })
    };
    product(&product(&turn(0, 1, 0.7), &turn(1, 2, -1.1)), &turn(0, 2, 0.4))
}

/// U·diag(values)·Uᵀ with the rotation U: matrices of one basis, which commute.
fn in_basis(values: [f64; 3]) -> Array {
    let u = rotation();
    let scaled = Array::from_fn([3, 3], |at| u.at(at) * values[at[1]]);
    product(&scaled, &u.transpose(&[1, 0]))
}

/// Some matrices of one basis, one after the other.
fn stack(all: &[[f64; 3]]) -> Array {
    Array::new([all.len(), 3, 3], all.iter().flat_map(|v| in_basis(*v).data).collect::<Vec<_>>())
}

/// A positive definite matrix without a known basis.
fn positive(random: &mut Random) -> Array {
    let a = Array::from_fn([3, 3], |_| random.range(-1.0, 1.0));
    let square = product(&a, &a.transpose(&[1, 0]));
    Array::from_fn([3, 3], |at| square.at(at) + if at[0] == at[1] { 0.5 } else { 0.0 })
}

fn not_square(op: &str, attributes: &str) -> [Case; 2] {
    [
        op_case(op, "half_precision", attributes, "f16[3, 3]").fails_build("C1"),
        op_case(op, "not_square", attributes, "f32[3, 2]").fails_build("C2"),
    ]
}

/// Cases of `bi_map`.
pub(super) fn bi_map() -> Vec<Case> {
    let mut cases = for_dtypes(TYPES, |dtype| {
        op_case("bi_map", "batch", "", &format!("{dtype}[b, n, n], {dtype}[2, n]"))
            .sizes([("b", 2), ("n", 3)])
            .random(Domain::Range(-1.0, 1.0))
            .formula(|x| {
                Array::from_fn([2, 2, 2], |at| {
                    let mut sum = 0.0;
                    for i in 0..3 {
                        for j in 0..3 {
                            sum += x[1].at(&[at[1], i]) * x[0].at(&[at[0], i, j]) * x[1].at(&[at[2], j]);
                        }
                    }
                    sum
                })
            })
            .within(stable(dtype, 0.1))
    });
    cases.extend([
        op_case("bi_map", "mixed_types", "", "f32[3, 3], f64[2, 3]").fails_build("C1"),
        op_case("bi_map", "not_square", "", "f32[3, 2], f32[2, 3]").fails_build("C2"),
        op_case("bi_map", "wrong_columns", "", "f32[3, 3], f32[3, 2]").fails_build("C3"),
        op_case("bi_map", "batch_of_maps", "", "f32[3, 3], f32[1, 2, 3]").fails_build("C3"),
    ]);
    cases
}

/// Cases of `log_eig`, `exp_eig`, `sqrt_eig` and `inverse_sqrt_eig`.
pub(super) fn spectral_map() -> Vec<Case> {
    type Map = (&'static str, fn(f64) -> f64);
    let maps: [Map; 4] = [
        ("log_eig", f64::ln),
        ("exp_eig", f64::exp),
        ("sqrt_eig", f64::sqrt),
        ("inverse_sqrt_eig", |x| 1.0 / x.sqrt()),
    ];
    let spectra = [[0.5, 1.0, 3.0], [2.0, 2.0, 2.0], [0.25, 4.0, 0.25]];
    let mut cases = Vec::new();
    for (op, f) in maps {
        cases.extend(for_dtypes(TYPES, |dtype| {
            op_case(op, "known_spectra", "", &format!("{dtype}[b, 3, 3]"))
                .input(stack(&spectra).to_literal(dtype))
                .formula(move |_| stack(&spectra.map(|values| values.map(f))))
                .within(stable(dtype, 40.0))
        }));
        cases.extend(not_square(op, ""));
    }
    cases.push(
        op_case("log_eig", "indefinite_gives_nan", "", "f64[2, 2]")
            .input(f64s([2, 2], [1.0, 0.0, 0.0, -1.0]))
            .property(
                |_, y| if y[0].data.iter().any(|x| x.is_nan()) { Ok(()) } else { Err(format!("{y:?}")) },
            ),
    );
    for op in ["log_eig", "exp_eig", "sqrt_eig", "inverse_sqrt_eig"] {
        cases.extend(golden(RECORDED, op));
    }
    cases
}

/// Cases of `re_eig`.
pub(super) fn re_eig() -> Vec<Case> {
    let mut cases = for_dtypes(TYPES, |dtype| {
        op_case("re_eig", "known_spectra", "eps=0.75", &format!("{dtype}[b, 3, 3]"))
            .input(stack(&[[0.5, 1.0, 3.0], [-2.0, 0.0, 0.25]]).to_literal(dtype))
            .formula(|_| stack(&[[0.75, 1.0, 3.0], [0.75, 0.75, 0.75]]))
            .within(stable(dtype, 4.0))
    });
    cases.extend(not_square("re_eig", "eps=0.1"));
    cases
}

/// Operands 0 and 1 of a pair that is not of one basis.
fn two_positive(dtype: DType) -> [Literal; 2] {
    let mut random = Random::named("two positive definite matrices");
    [positive(&mut random).to_literal(dtype), positive(&mut random).to_literal(dtype)]
}

/// Cases of `affine_invariant_distance`.
pub(super) fn affine_invariant_distance() -> Vec<Case> {
    let op = "affine_invariant_distance";
    let mut cases = for_dtypes(TYPES, |dtype| {
        op_case(op, "commuting", "", &format!("{dtype}[b, 3, 3], {dtype}[b, 3, 3]"))
            .input(stack(&[[0.5, 1.0, 3.0], [1.0, 1.0, 1.0]]).to_literal(dtype))
            .input(stack(&[[1.0, 4.0, 3.0], [1.0, 1.0, 1.0]]).to_literal(dtype))
            .formula(|_| Array::new([2], [(2f64.ln().powi(2) + 4f64.ln().powi(2)).sqrt(), 0.0]))
            .within(stable(dtype, 4.0))
    });
    let invariance = "(%x: f64[3, 3], %y: f64[3, 3], %w: f64[3, 3]) {
        %d = affine_invariant_distance(%x, %y)
        %wx = bi_map(%x, %w)
        %wy = bi_map(%y, %w)
        %e = affine_invariant_distance(%wx, %wy)
        %f = affine_invariant_distance(%y, %x)
        return \"d\" = %d, \"mapped\" = %e, \"exchanged\" = %f
    }";
    cases.push(
        crate::case::case(op, "invariant_and_symmetric", invariance)
            .inputs(two_positive(DType::F64))
            .input(f64s([3, 3], [2.0, 0.5, -1.0, 0.0, 1.0, 0.5, 1.0, 0.0, 1.5]))
            .property(|_, y| {
                let d = y[0].data[0];
                let fine = y.iter().all(|e| (e.data[0] - d).abs() < 1e-11) && d > 0.1;
                if fine { Ok(()) } else { Err(format!("{y:?}")) }
            })
            .within(Tolerance::Within { absolute: 1e-10, relative: 0.0 }),
    );
    cases.extend([
        op_case(op, "half_precision", "", "f16[3, 3], f16[3, 3]").fails_build("C1"),
        op_case(op, "not_square", "", "f32[3, 2], f32[3, 2]").fails_build("C2"),
        op_case(op, "other_type", "", "f32[3, 3], f64[3, 3]").fails_build("C3"),
        op_case(op, "not_positive_definite", "", "f64[1, 1], f64[1, 1]")
            .inputs([f64s([1, 1], [-1.0]), f64s([1, 1], [1.0])])
            .fails(crate::case::Stage::Run, "cholesky"),
    ]);
    cases.extend(golden(RECORDED, "affine_invariant_distance"));
    cases
}

/// Cases of `spd_geodesic`.
pub(super) fn spd_geodesic() -> Vec<Case> {
    let mut cases = Vec::new();
    for t in [0.0, 0.25, 1.0] {
        cases.extend(for_dtypes(TYPES, |dtype| {
            op_case(
                "spd_geodesic",
                &format!("commuting_{}", 100.0 * t),
                &format!("t={t:?}"),
                &format!("{dtype}[b, 3, 3], {dtype}[b, 3, 3]"),
            )
            .input(stack(&[[0.5, 1.0, 3.0]]).to_literal(dtype))
            .input(stack(&[[8.0, 16.0, 3.0]]).to_literal(dtype))
            .formula(move |_| stack(&[[0.5 * 16f64.powf(t), 16f64.powf(t), 3.0]]))
            .within(stable(dtype, 16.0))
        }));
    }
    let middle = "(%x: f64[3, 3], %y: f64[3, 3]) {
        %m = spd_geodesic<t=0.5>(%x, %y)
        %dx = affine_invariant_distance(%x, %m)
        %dy = affine_invariant_distance(%m, %y)
        %d = affine_invariant_distance(%x, %y)
        return \"dx\" = %dx, \"dy\" = %dy, \"d\" = %d
    }";
    cases.push(
        crate::case::case("spd_geodesic", "middle_is_halfway", middle)
            .inputs(two_positive(DType::F64))
            .property(|_, y| {
                let (dx, dy, d) = (y[0].data[0], y[1].data[0], y[2].data[0]);
                let fine = (dx - d / 2.0).abs() < 1e-11 && (dy - d / 2.0).abs() < 1e-11;
                if fine { Ok(()) } else { Err(format!("{dx} and {dy} of {d}")) }
            })
            .within(Tolerance::Within { absolute: 1e-10, relative: 0.0 }),
    );
    cases.extend([
        op_case("spd_geodesic", "half_precision", "t=0.5", "f16[3, 3], f16[3, 3]").fails_build("C1"),
        op_case("spd_geodesic", "not_square", "t=0.5", "f32[3, 2], f32[3, 2]").fails_build("C2"),
        op_case("spd_geodesic", "other_size", "t=0.5", "f32[3, 3], f32[2, 2]").fails_build("C3"),
    ]);
    cases.extend(golden(RECORDED, "spd_geodesic"));
    cases
}

/// Cases of `karcher_mean`.
pub(super) fn karcher_mean() -> Vec<Case> {
    let op = "karcher_mean";
    let mut cases = for_dtypes(TYPES, |dtype| {
        op_case(op, "commuting_gives_geometric_mean", "iterations=12", &format!("{dtype}[k, 3, 3]"))
            .input(stack(&[[1.0, 2.0, 3.0], [4.0, 2.0, 0.75]]).to_literal(dtype))
            .formula(|_| in_basis([2.0, 2.0, 1.5]))
            .within(stable(dtype, 8.0))
    });
    cases.extend(for_dtypes(TYPES, |dtype| {
        op_case(op, "weights", "iterations=12", &format!("{dtype}[k, b, 3, 3], {dtype}[k]"))
            .input(stack(&[[1.0, 2.0, 3.0], [16.0, 2.0, 48.0]]).reshape([2, 1, 3, 3]).to_literal(dtype))
            .input(literal(dtype, [2], [0.75, 0.25]))
            .formula(|_| in_basis([2.0, 2.0, 6.0]).reshape([1, 3, 3]))
            .within(stable(dtype, 50.0))
    }));
    cases.push(
        op_case(op, "no_iterations_give_arithmetic_mean", "iterations=0", "f64[2, 1, 1]")
            .input(f64s([2, 1, 1], [1.0, 4.0]))
            .values([f64s([1, 1], [2.5])]),
    );
    let critical = "(%x: f64[2, 3, 3]) {
        %m = karcher_mean<iterations=20>(%x)
        return \"m\" = %m
    }";
    cases.push(
        crate::case::case(op, "mean_of_two_is_their_middle", critical)
            .input(
                Array::new(
                    [2, 3, 3],
                    two_positive(DType::F64)
                        .iter()
                        .flat_map(|l| l.to_vec::<f64>().unwrap_or_default())
                        .collect::<Vec<_>>(),
                )
                .to_literal(DType::F64),
            )
            .property(|x, y| {
                // M is the middle of X and Y exactly if M·X⁻¹·M = Y, that is, if M solves this Riccati equation.
                let (a, b) = (Array::new([3, 3], &x[0].data[..9]), Array::new([3, 3], &x[0].data[9..]));
                let inverse = inverse(&a);
                let found = product(&product(&y[0], &inverse), &y[0]);
                let off = found.data.iter().zip(&b.data).map(|(f, b)| (f - b).abs()).fold(0.0, f64::max);
                if off < 1e-11 { Ok(()) } else { Err(format!("off by {off}")) }
            })
            .within(Tolerance::Within { absolute: 1e-11, relative: 0.0 }),
    );
    cases.extend([
        op_case(op, "half_precision", "iterations=1", "f16[2, 3, 3]").fails_build("C1"),
        op_case(op, "not_square", "iterations=1", "f32[2, 3, 2]").fails_build("C2"),
        op_case(op, "one_matrix", "iterations=1", "f32[3, 3]").fails_build("C3"),
        op_case(op, "wrong_weights", "iterations=1", "f32[2, 3, 3], f32[3]").fails_build("C4"),
        op_case(op, "too_many_iterations", "iterations=65", "f32[2, 3, 3]").fails_build("C5"),
    ]);
    cases.extend(golden(RECORDED, "karcher_mean"));
    cases
}

/// The inverse of a 3 × 3 matrix by cofactors.
fn inverse(a: &Array) -> Array {
    let minor = |i: usize, j: usize| {
        let at = |r: usize, c: usize| a.at(&[(i + r) % 3, (j + c) % 3]);
        at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1)
    };
    let det: f64 = (0..3).map(|j| a.at(&[0, j]) * minor(0, j)).sum();
    Array::from_fn([3, 3], |at| minor(at[1], at[0]) / det)
}

/// Cases of `spd_batch_norm`.
pub(super) fn spd_batch_norm() -> Vec<Case> {
    let op = "spd_batch_norm";
    let operands = |dtype: DType| format!("{dtype}[b, 3, 3], {dtype}[3, 3], {dtype}[3, 3]");
    let inputs = |dtype: DType| {
        [
            stack(&[[1.0, 2.0, 3.0], [4.0, 2.0, 0.75]]).to_literal(dtype),
            in_basis([9.0, 1.0, 0.25]).to_literal(dtype),
            in_basis([4.0, 1.0, 16.0]).to_literal(dtype),
        ]
    };
    let mut cases = for_dtypes(TYPES, |dtype| {
        op_case(op, "inference", "momentum=0.9, iterations=0", &operands(dtype))
            .inputs(inputs(dtype))
            .formula(|_| stack(&[[9.0 / 4.0, 2.0, 0.75 / 16.0], [9.0, 2.0, 0.1875 / 16.0]]))
            .within(stable(dtype, 10.0))
    });
    cases.extend(for_dtypes(TYPES, |dtype| {
        op_case(op, "training", "training=true, momentum=0.75, iterations=12", &operands(dtype))
            .inputs(inputs(dtype))
            .formulas(|_| {
                // The batch's mean is (2, 2, 1.5); the running mean moves a quarter of the way to it.
                let toward = |r: f64, m: f64| r * (m / r).powf(0.25);
                let y = stack(&[[4.5, 1.0, 0.5], [18.0, 1.0, 0.125]]);
                vec![y, in_basis([toward(4.0, 2.0), toward(1.0, 2.0), toward(16.0, 1.5)])]
            })
            .within(stable(dtype, 40.0))
    }));
    cases.extend([
        op_case(op, "mixed_types", "momentum=0.9, iterations=1", "f32[2, 3, 3], f64[3, 3], f32[3, 3]")
            .fails_build("C1"),
        op_case(op, "no_batch", "momentum=0.9, iterations=1", "f32[3, 3], f32[3, 3], f32[3, 3]")
            .fails_build("C2"),
        op_case(op, "wrong_bias", "momentum=0.9, iterations=1", "f32[2, 3, 3], f32[2, 2], f32[3, 3]")
            .fails_build("C3"),
        op_case(
            op,
            "too_many_iterations",
            "momentum=0.9, iterations=100",
            "f32[2, 3, 3], f32[3, 3], f32[3, 3]",
        )
        .fails_build("C4"),
    ]);
    cases
}
