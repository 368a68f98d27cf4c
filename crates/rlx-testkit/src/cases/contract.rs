//! Cases of contractions: dot products.

use crate::Array;
use crate::array::for_each_index;
use crate::case::{
    Case, Cost, FLOATS, INTEGERS, Stage, case, f32s, for_dtypes, for_sizes, i32s, literal, op_case,
};
use crate::random::Domain;
use rlx_ir::DType;

/// The axes of a dot: batch and contracted ones of both sides.
#[derive(Clone, Copy)]
struct Axes {
    lhs_batch: &'static [usize],
    rhs_batch: &'static [usize],
    lhs_contract: &'static [usize],
    rhs_contract: &'static [usize],
}

const MATMUL: Axes = Axes { lhs_batch: &[], rhs_batch: &[], lhs_contract: &[1], rhs_contract: &[0] };
const BATCHED: Axes = Axes { lhs_batch: &[0], rhs_batch: &[0], lhs_contract: &[2], rhs_contract: &[1] };

impl Axes {
    fn attributes(&self) -> String {
        let Axes { lhs_batch, rhs_batch, lhs_contract, rhs_contract } = self;
        format!(
            "lhs_batch={lhs_batch:?}, rhs_batch={rhs_batch:?}, lhs_contract={lhs_contract:?}, rhs_contract={rhs_contract:?}"
        )
    }

    /// The sum over the contracted indices, for each index of the result.
    fn dot(self, x: &[Array]) -> Array {
        let (lhs, rhs) = (&x[0], &x[1]);
        let free = |t: &Array, batch: &[usize], contract: &[usize]| {
            (0..t.dims.len()).filter(|a| !batch.contains(a) && !contract.contains(a)).collect::<Vec<_>>()
        };
        let (lhs_free, rhs_free) =
            (free(lhs, self.lhs_batch, self.lhs_contract), free(rhs, self.rhs_batch, self.rhs_contract));
        let contracted: Vec<usize> = self.lhs_contract.iter().map(|a| lhs.dims[*a]).collect();
        let dims: Vec<usize> = self
            .lhs_batch
            .iter()
            .chain(&lhs_free)
            .map(|a| lhs.dims[*a])
            .chain(rhs_free.iter().map(|a| rhs.dims[*a]))
            .collect();
        let (batch, left) = (self.lhs_batch.len(), lhs_free.len());
        Array::from_fn(dims, |index| {
            let (mut l, mut r) = (vec![0; lhs.dims.len()], vec![0; rhs.dims.len()]);
            for (k, i) in index.iter().enumerate() {
                match k {
                    k if k < batch => (l[self.lhs_batch[k]], r[self.rhs_batch[k]]) = (*i, *i),
                    k if k < batch + left => l[lhs_free[k - batch]] = *i,
                    k => r[rhs_free[k - batch - left]] = *i,
                }
            }
            let mut sum = 0.0;
            for_each_index(&contracted, |inner| {
                for (k, i) in inner.iter().enumerate() {
                    (l[self.lhs_contract[k]], r[self.rhs_contract[k]]) = (*i, *i);
                }
                sum += lhs.at(&l) * rhs.at(&r);
            });
            sum
        })
    }
}

fn dot_case(name: &str, axes: Axes, more: &str, operands: &str) -> Case {
    op_case("dot", name, &format!("{}{more}", axes.attributes()), operands)
}

/// Cases of `dot`.
pub(super) fn dot() -> Vec<Case> {
    let mut cases = Vec::new();
    let layouts = [
        ("matmul", MATMUL, [4, 7].as_slice(), [7, 5].as_slice(), 7),
        ("lhs_transposed", Axes { lhs_contract: &[0], ..MATMUL }, &[7, 4], &[7, 5], 7),
        ("rhs_transposed", Axes { rhs_contract: &[1], ..MATMUL }, &[4, 7], &[5, 7], 7),
        ("batched", BATCHED, &[3, 4, 7], &[3, 7, 5], 7),
        (
            "batch_inside",
            Axes { lhs_batch: &[1], rhs_batch: &[2], lhs_contract: &[0], rhs_contract: &[0] },
            &[7, 3, 4],
            &[7, 5, 3],
            7,
        ),
        (
            "two_contracted",
            Axes { lhs_contract: &[1, 2], rhs_contract: &[1, 0], ..MATMUL },
            &[4, 2, 3],
            &[3, 2, 5],
            6,
        ),
        (
            "two_batches",
            Axes { lhs_batch: &[0, 1], rhs_batch: &[1, 0], lhs_contract: &[3], rhs_contract: &[2] },
            &[2, 3, 4, 5],
            &[3, 2, 5, 2],
            5,
        ),
        ("outer", Axes { lhs_contract: &[], rhs_contract: &[], ..MATMUL }, &[3], &[4], 1),
        ("inner", Axes { lhs_contract: &[0], ..MATMUL }, &[7], &[7], 7),
        ("matrix_vector", MATMUL, &[4, 7], &[7], 7),
    ];
    for (name, axes, lhs, rhs, terms) in layouts {
        cases.extend(for_dtypes(
            &[FLOATS, &[DType::F8E4M3FN, DType::F8E5M2, DType::C64, DType::C128]].concat(),
            |dtype| {
                let case = dot_case(name, axes, "", &format!("{dtype}{lhs:?}, {dtype}{rhs:?}"))
                    .random(Domain::Normal);
                if dtype.is_complex() {
                    case.formula(move |x| complex_dot(axes, x))
                        .magnitudes(2 * terms, move |x| vec![complex_terms(axes, x)])
                } else {
                    case.formula(move |x| axes.dot(x)).summed(terms)
                }
            },
        ));
        cases.extend(for_dtypes(INTEGERS, |dtype| {
            // Small numbers, so that nothing wraps and the formula is exact.
            dot_case(
                name,
                axes,
                ", accum=WIDE, out=WIDE"
                    .replace("WIDE", if dtype.class() == rlx_ir::DTypeClass::Signed { "i64" } else { "u64" })
                    .as_str(),
                &format!("{dtype}{lhs:?}, {dtype}{rhs:?}"),
            )
            .random(Domain::Whole(-9, 9))
            .formula(move |x| axes.dot(x))
        }));
    }
    for m in [1, 2, 15, 16, 17, 33] {
        for n in [1, 16, 17] {
            cases.push(
                dot_case(&format!("rows_{m}_columns_{n}"), MATMUL, "", &format!("f32[m, 64], f32[64, {n}]"))
                    .sizes([("m", m)])
                    .random(Domain::Normal)
                    .formula(|x| MATMUL.dot(x))
                    .summed(64)
                    .without_views(),
            );
        }
    }
    cases.extend(for_sizes(32, |k| {
        dot_case("contracted", MATMUL, "", "f32[3, k], f32[k, 2]")
            .sizes([("k", k)])
            .random(Domain::Normal)
            .formula(|x| MATMUL.dot(x))
            .summed(k)
    }));
    for (name, m, n) in [("no_rows", 0, 3), ("no_columns", 3, 0)] {
        cases.push(
            dot_case(name, MATMUL, "", &format!("f32[{m}, 4], f32[4, {n}]"))
                .random(Domain::Normal)
                .formula(|x| MATMUL.dot(x)),
        );
    }
    cases.extend(rounding());
    cases.extend(dot_views());
    cases.extend(costly());
    cases.extend([
        dot_case("types_differ", MATMUL, "", "f32[2, 3], f16[3, 2]").fails_build("C1"),
        dot_case("bools", MATMUL, "", "bool[2, 3], bool[3, 2]").fails_build("C1"),
        dot_case("axis_counts_differ", Axes { rhs_contract: &[], ..MATMUL }, "", "f32[2, 3], f32[3, 2]")
            .fails_build("C2"),
        dot_case("axis_out_of_range", Axes { lhs_contract: &[2], ..MATMUL }, "", "f32[2, 3], f32[3, 2]")
            .fails_build("C2"),
        dot_case(
            "axis_used_twice",
            Axes { lhs_batch: &[1], rhs_batch: &[1], ..MATMUL },
            "",
            "f32[2, 3], f32[3, 3]",
        )
        .fails_build("C2"),
        dot_case("batch_sizes_differ", BATCHED, "", "f32[2, 3, 4], f32[3, 4, 3]").fails_build("C3"),
        dot_case("contracted_sizes_differ", MATMUL, "", "f32[2, 3], f32[4, 2]").fails_build("C4"),
        dot_case("symbolic_contracted_sizes_differ", MATMUL, "", "f32[2, n], f32[m, 2]")
            .sizes([("n", 3), ("m", 4)])
            .random(Domain::Normal)
            .fails(Stage::Run, "C4: contracted sizes differ"),
        dot_case("accumulator_of_another_class", MATMUL, ", accum=i32", "f32[2, 3], f32[3, 2]")
            .fails_build("C5"),
        dot_case("result_of_another_class", MATMUL, ", out=i32", "f32[2, 3], f32[3, 2]").fails_build("C5"),
    ]);
    cases
}

fn complex_dot(axes: Axes, x: &[Array]) -> Array {
    let part = |x: &Array, k: usize| {
        Array::new(&x.dims[..x.dims.len() - 1], x.data.iter().skip(k).step_by(2).copied().collect::<Vec<_>>())
    };
    let product = |l: usize, r: usize| axes.dot(&[part(&x[0], l), part(&x[1], r)]);
    let re = product(0, 0).zip(&product(1, 1), |a, b| a - b);
    let im = product(0, 1).zip(&product(1, 0), |a, b| a + b);
    let dims: Vec<usize> = re.dims.iter().copied().chain([2]).collect();
    Array::new(dims, re.data.iter().zip(&im.data).flat_map(|(re, im)| [*re, *im]).collect::<Vec<_>>())
}

/// A bound of Σ|terms| of both parts: the sums of products of |re| + |im|.
fn complex_terms(axes: Axes, x: &[Array]) -> Array {
    let sizes = |x: &Array| {
        let sums = x.data.chunks(2).map(|c| c[0].abs() + c[1].abs());
        Array::new(&x.dims[..x.dims.len() - 1], sums.collect::<Vec<_>>())
    };
    let terms = axes.dot(&[sizes(&x[0]), sizes(&x[1])]);
    let dims: Vec<usize> = terms.dims.iter().copied().chain([2]).collect();
    Array::new(dims, terms.data.iter().flat_map(|t| [*t, *t]).collect::<Vec<_>>())
}

/// How products and sums are rounded.
fn rounding() -> Vec<Case> {
    // 1 + 2^-10 squared is 1 + 2^-9 + 2^-20; if each product were rounded to f16, the sum of 64 such less 64·(1 + 2^-9)
    // would be 0.
    let x = 1.0 + 2f64.powi(-10);
    let products = (0..64).map(|_| x).chain([8.0]).collect::<Vec<f64>>();
    let other = (0..64).map(|_| x).chain([-8.015625]).collect::<Vec<f64>>();
    vec![
        op_case(
            "dot",
            "half_products_are_not_rounded",
            "lhs_contract=[0], rhs_contract=[0]",
            "f16[65], f16[65]",
        )
        .inputs([literal(DType::F16, [65], products), literal(DType::F16, [65], other)])
        .formula(move |x| Array::scalar(x[0].data.iter().zip(&x[1].data).map(|(a, b)| a * b).sum()))
        .summed(65),
        op_case(
            "dot",
            "half_accumulates_in_f32",
            "lhs_contract=[0], rhs_contract=[0], out=f32",
            "f16[4096], f16[4096]",
        )
        .random(Domain::Constant(1.0))
        .formula(|_| Array::scalar(4096.0)),
        op_case(
            "dot",
            "half_accumulates_in_f16_if_told_so",
            "lhs_contract=[0], rhs_contract=[0], accum=f16",
            "f16[40], f16[40]",
        )
        .random(Domain::Normal)
        .formula(|x| Array::scalar(x[0].data.iter().zip(&x[1].data).map(|(a, b)| a * b).sum()))
        .summed(40)
        .accumulates_in(DType::F16),
        op_case(
            "dot",
            "i8_accumulates_in_i32_and_wraps_to_i8",
            "lhs_contract=[0], rhs_contract=[0]",
            "i8[3], i8[3]",
        )
        .inputs([literal(DType::I8, [3], [100.0, 100.0, 1.0]), literal(DType::I8, [3], [3.0, -2.0, 1.0])])
        .values([literal(DType::I8, [], [101.0])]),
        op_case("dot", "i32_wraps", "lhs_contract=[0], rhs_contract=[0]", "i32[1], i32[1]")
            .inputs([i32s([1], [1 << 30]), i32s([1], [4])])
            .values([i32s([], [0])]),
        op_case("dot", "infinity_times_zero", "lhs_contract=[0], rhs_contract=[0]", "f32[2], f32[2]")
            .inputs([f32s([2], [f32::INFINITY, 1.0]), f32s([2], [0.0, 1.0])])
            .values([f32s([], [f32::NAN])]),
    ]
}

/// Operands that are views inside the graph.
fn dot_views() -> Vec<Case> {
    vec![
        case(
            "dot",
            "last_row_with_a_transpose",
            "(%x: f32[1, 8, 64], %w: f32[32, 64]) {
            %r = slice<starts=[0, 7, 0], sizes=[1, 1, 64], steps=[1, 1, 1]>(%x)
            %q = reshape<dims=[1, 64]>(%r)
            %t = transpose<perm=[1, 0]>(%w)
            %y = dot<lhs_contract=[1], rhs_contract=[0]>(%q, %t)
            return \"y\" = %y
        }",
        )
        .random(Domain::Normal)
        .formula(|x| {
            Array::from_fn([1, 32], |i| (0..64).map(|k| x[0].at(&[0, 7, k]) * x[1].at(&[i[1], k])).sum())
        })
        .summed(64),
        case(
            "dot",
            "lhs_row_stride_above_its_width",
            "(%x: f32[16, 112], %w: f32[16, 16]) {
            %s = slice<starts=[0, 16], sizes=[16, 16], steps=[1, 1]>(%x)
            %t = transpose<perm=[1, 0]>(%w)
            %y = dot<lhs_contract=[1], rhs_contract=[0]>(%s, %t)
            return \"y\" = %y
        }",
        )
        .random(Domain::Normal)
        .formula(|x| {
            Array::from_fn([16, 16], |i| {
                (0..16).map(|k| x[0].at(&[i[0], 16 + k]) * x[1].at(&[i[1], k])).sum()
            })
        })
        .summed(16),
        case(
            "dot",
            "every_second_row_of_the_weight",
            "(%x: f32[3, 8], %w: f32[12, 8]) {
            %s = slice<starts=[0, 0], sizes=[6, 8], steps=[2, 1]>(%w)
            %y = dot<lhs_contract=[1], rhs_contract=[1]>(%x, %s)
            return \"y\" = %y
        }",
        )
        .random(Domain::Normal)
        .formula(|x| {
            Array::from_fn([3, 6], |i| (0..8).map(|k| x[0].at(&[i[0], k]) * x[1].at(&[2 * i[1], k])).sum())
        })
        .summed(8),
        case(
            "dot",
            "overlapping_rows_of_stride_zero",
            "(%x: f32[1, 9, 8], %w: f32[4, 8]) {
            %b = broadcast<dims=[5, 9, 8]>(%x)
            %y = dot<lhs_contract=[2], rhs_contract=[1]>(%b, %w)
            return \"y\" = %y
        }",
        )
        .random(Domain::Normal)
        .formula(|x| {
            Array::from_fn([5, 9, 4], |i| (0..8).map(|k| x[0].at(&[0, i[1], k]) * x[1].at(&[i[2], k])).sum())
        })
        .summed(8),
    ]
}

/// Index widths and long sums, with small twins.
fn costly() -> Vec<Case> {
    let batches = |n: usize, cost: Cost| {
        dot_case(&format!("batches_{n}"), BATCHED, "", "f16[b, 2, 2], f16[b, 2, 2]")
            .sizes([("b", n)])
            .random(Domain::Normal)
            .formula(|x| BATCHED.dot(x))
            .summed(2)
            .without_views()
            .cost(cost)
    };
    let square = |m: usize, k: usize, cost: Cost| {
        dot_case(&format!("tile_{m}_{k}"), MATMUL, "", &format!("f32[{m}, {k}], f32[{k}, {m}]"))
            .random(Domain::Normal)
            .formula(|x| MATMUL.dot(x))
            .summed(k)
            .without_views()
            .cost(cost)
    };
    let mut cases = vec![batches(65552, Cost::Medium).twin(batches(300, Cost::Small))];
    for m in [35, 63, 64, 65] {
        cases.push(square(m, 256, Cost::Medium).twin(square(m, 16, Cost::Small)));
    }
    for m in [500, 535, 1024] {
        cases.push(square(m, 1024, Cost::Expensive));
    }
    cases
}

/// Cases of `integer_dot`.
pub(super) fn integer_dot() -> Vec<Case> {
    let mut cases = Vec::new();
    for lhs in [DType::I8, DType::U8] {
        for rhs in [DType::I8, DType::U8] {
            let ends = Domain::Extreme.special();
            let case = |name: &str, axes: Axes, operands: String| {
                op_case("integer_dot", &format!("{name}_{lhs}_{rhs}"), &axes.attributes(), &operands)
                    .random(ends.clone())
                    .formula(move |x| axes.dot(x))
            };
            cases.push(case("matmul", MATMUL, format!("{lhs}[4, k], {rhs}[k, 5]").replace('k', "33")));
            cases.push(case("batched", BATCHED, format!("{lhs}[3, 2, 7], {rhs}[3, 7, 4]")));
        }
    }
    cases.extend([
        op_case("integer_dot", "empty_sum", &MATMUL.attributes(), "i8[2, 0], u8[0, 2]")
            .random(Domain::Normal)
            .formula(|_| Array::new([2, 2], [0.0; 4])),
        // 255 · 127 · 66311 leaves 31 bits and wraps.
        op_case("integer_dot", "wraps", "lhs_contract=[0], rhs_contract=[0]", "u8[66400], i8[66400]")
            .inputs([
                literal(DType::U8, [66400], vec![255.0; 66400]),
                literal(DType::I8, [66400], vec![127.0; 66400]),
            ])
            .values([i32s([], [(255i64 * 127 * 66400) as i32])])
            .without_views(),
        op_case("integer_dot", "wider", &MATMUL.attributes(), "i16[2, 2], i8[2, 2]").fails_build("C1"),
        op_case("integer_dot", "contracted_sizes_differ", &MATMUL.attributes(), "i8[2, 2], i8[3, 2]")
            .fails_build("C4"),
        op_case("integer_dot", "batch_sizes_differ", &BATCHED.attributes(), "i8[2, 2, 2], i8[3, 2, 2]")
            .fails_build("C3"),
        op_case(
            "integer_dot",
            "axis_out_of_range",
            "lhs_contract=[5], rhs_contract=[0]",
            "i8[2, 2], i8[2, 2]",
        )
        .fails_build("C2"),
    ]);
    cases
}
