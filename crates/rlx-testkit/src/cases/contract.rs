//! Cases of contractions: dot products and convolutions.

use crate::Array;
use crate::array::for_each_index;
use crate::case::{
    Case, Cost, FLOATS, INTEGERS, Stage, case, f32s, for_dtypes, for_sizes, i32s, literal, op_case,
};
use crate::golden::golden;
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

/// A convolution's attributes.
#[derive(Clone, Debug)]
struct Conv {
    strides: Vec<i64>,
    padding: Vec<(i64, i64)>,
    lhs_dilation: Vec<i64>,
    rhs_dilation: Vec<i64>,
    groups: usize,
}

impl Conv {
    fn plain(axes: usize) -> Conv {
        Conv {
            strides: vec![1; axes],
            padding: vec![(0, 0); axes],
            lhs_dilation: vec![1; axes],
            rhs_dilation: vec![1; axes],
            groups: 1,
        }
    }

    fn attributes(&self) -> String {
        let Conv { strides, padding, lhs_dilation, rhs_dilation, groups } = self;
        format!(
            "strides={strides:?}, padding={padding:?}, lhs_dilation={lhs_dilation:?}, rhs_dilation={rhs_dilation:?}, groups={groups}"
        )
    }

    /// The definition, index by index: an input position that falls between dilated elements or outside counts as 0.
    fn apply(&self, x: &[Array]) -> Array {
        let (x, w) = (&x[0], &x[1]);
        let axes = self.strides.len();
        let size = |axis: usize| {
            let (n, k) = (x.dims[axis + 2] as i64, w.dims[axis + 2] as i64);
            let dilated = if n == 0 { 0 } else { (n - 1) * self.lhs_dilation[axis] + 1 };
            let room = dilated + self.padding[axis].0 + self.padding[axis].1
                - ((k - 1) * self.rhs_dilation[axis] + 1);
            (room.div_euclid(self.strides[axis]) + 1) as usize
        };
        let (out_channels, group_channels) = (w.dims[0], w.dims[1]);
        let dims: Vec<usize> = [x.dims[0], out_channels].into_iter().chain((0..axes).map(size)).collect();
        let window: Vec<usize> = std::iter::once(group_channels).chain(w.dims[2..].iter().copied()).collect();
        Array::from_fn(dims, |index| {
            let first_channel = index[1] / (out_channels / self.groups) * group_channels;
            let mut sum = 0.0;
            for_each_index(&window, |inner| {
                let mut at = vec![index[0], first_channel + inner[0]];
                for axis in 0..axes {
                    let position = index[axis + 2] as i64 * self.strides[axis]
                        + inner[axis + 1] as i64 * self.rhs_dilation[axis]
                        - self.padding[axis].0;
                    let step = self.lhs_dilation[axis];
                    if position < 0 || position % step != 0 || position / step >= x.dims[axis + 2] as i64 {
                        return;
                    }
                    at.push((position / step) as usize);
                }
                let kernel: Vec<usize> = std::iter::once(index[1]).chain(inner.iter().copied()).collect();
                sum += x.at(&at) * w.at(&kernel);
            });
            sum
        })
    }
}

fn conv_case(name: &str, conv: &Conv, x: &str, w: &str, terms: usize) -> Case {
    let formula = conv.clone();
    op_case("conv", name, &conv.attributes(), &format!("{x}, {w}"))
        .random(Domain::Normal)
        .formula(move |x| formula.apply(x))
        .summed(terms)
}

/// Cases of `conv`.
pub(super) fn conv() -> Vec<Case> {
    let plain = Conv::plain;
    let mut cases = Vec::new();
    let layouts = [
        ("one_axis", plain(1), [2, 3, 9].as_slice(), [4, 3, 3].as_slice()),
        ("two_axes", plain(2), &[2, 3, 6, 5], &[4, 3, 3, 2]),
        (
            "three_axes_padded",
            Conv { padding: vec![(1, 1); 3], ..plain(3) },
            &[1, 2, 3, 4, 3],
            &[2, 2, 3, 3, 3],
        ),
        ("no_axes", plain(0), &[2, 3], &[4, 3]),
        ("strides_differ", Conv { strides: vec![2, 3], ..plain(2) }, &[1, 2, 7, 8], &[2, 2, 3, 2]),
        (
            "padding_differs_on_each_side",
            Conv { padding: vec![(0, 2), (3, 1)], ..plain(2) },
            &[1, 2, 4, 3],
            &[2, 2, 3, 3],
        ),
        ("negative_padding_crops", Conv { padding: vec![(-1, -2)], ..plain(1) }, &[1, 1, 9], &[1, 1, 3]),
        ("kernel_dilation", Conv { rhs_dilation: vec![2, 3], ..plain(2) }, &[1, 2, 7, 8], &[2, 2, 3, 2]),
        (
            "input_dilation",
            Conv { lhs_dilation: vec![3, 2], padding: vec![(2, 3), (1, 1)], ..plain(2) },
            &[1, 2, 3, 4],
            &[2, 2, 3, 2],
        ),
        (
            "all_at_once",
            Conv {
                strides: vec![2],
                padding: vec![(2, 1)],
                lhs_dilation: vec![3],
                rhs_dilation: vec![2],
                groups: 2,
            },
            &[2, 4, 5],
            &[6, 2, 3],
        ),
        ("groups", Conv { groups: 3, ..plain(1) }, &[2, 6, 5], &[9, 2, 2]),
        ("depthwise", Conv { groups: 4, padding: vec![(1, 1); 2], ..plain(2) }, &[2, 4, 5, 5], &[4, 1, 3, 3]),
        ("kernel_as_large_as_the_input", plain(2), &[1, 2, 3, 4], &[2, 2, 3, 4]),
    ];
    for (name, conv, x, w) in &layouts {
        let terms = w[1..].iter().product();
        cases.extend(for_dtypes(FLOATS, |dtype| {
            conv_case(name, conv, &format!("{dtype}{x:?}"), &format!("{dtype}{w:?}"), terms)
        }));
        cases.push(
            op_case("conv", &format!("{name}_i32"), &conv.attributes(), &format!("i32{x:?}, i32{w:?}"))
                .random(Domain::Whole(-9, 9))
                .formula({
                    let conv = conv.clone();
                    move |x| conv.apply(x)
                }),
        );
    }
    for batch in [2, 3, 16] {
        let conv = Conv { groups: 8, ..plain(2) };
        cases.push(
            conv_case(
                &format!("long_kernel_in_8_groups_batch_{batch}"),
                &conv,
                &format!("f32[{batch}, 8, 260, 1]"),
                "f32[16, 1, 256, 1]",
                256,
            )
            .without_views(),
        );
    }
    let strided = Conv { strides: vec![2], padding: vec![(0, 0)], ..plain(1) };
    cases.extend([
        conv_case("channels_57_to_20", &strided, "f32[1, 57, 40]", "f32[20, 57, 3]", 171),
        conv_case(
            "channels_8_in_3d",
            &Conv { padding: vec![(1, 1); 3], ..plain(3) },
            "f32[1, 8, 3, 4, 3]",
            "f32[8, 8, 3, 3, 3]",
            216,
        )
        .without_views(),
        conv_case(
            "symbolic",
            &Conv { padding: vec![(1, 1)], strides: vec![2], ..plain(1) },
            "f32[b, 2, n]",
            "f32[3, 2, 3]",
            6,
        ),
        conv_case("empty_batch", &plain(1), "f32[0, 2, 5]", "f32[3, 2, 3]", 6),
        conv_case("no_channels", &plain(1), "f32[2, 0, 5]", "f32[3, 0, 3]", 0),
        conv_case(
            "patches_of_16",
            &Conv { strides: vec![16; 2], ..plain(2) },
            "f32[1, 3, 32, 48]",
            "f32[4, 3, 16, 16]",
            768,
        )
        .without_views(),
    ]);
    let symbolic = Conv { padding: vec![(1, 1)], strides: vec![2], ..plain(1) };
    cases.retain(|case| case.name != "symbolic");
    cases.push(
        op_case("conv", "symbolic", &symbolic.attributes(), "f32[b, 2, n], f32[3, 2, 3]")
            .sizes([("b", 2), ("n", 7)])
            .random(Domain::Normal)
            .formula(move |x| symbolic.apply(x))
            .summed(6),
    );
    cases.extend(conv_given());
    cases.extend(conv_wrong());
    cases.extend(golden(include_str!("../../golden/contract.case"), "conv"));
    cases
}

fn conv_given() -> Vec<Case> {
    let dilated = Conv { padding: vec![(0, 0); 2], lhs_dilation: vec![9; 2], ..Conv::plain(2) };
    vec![
        // Group 0 sees channels 0 and 1 only, group 1 channels 2 and 3.
        op_case("conv", "groups_keep_apart", &Conv { groups: 2, ..Conv::plain(2) }.attributes(), "f32[1, 4, 1, 1], f32[16, 2, 1, 1]")
            .inputs([f32s([1, 4, 1, 1], [0.0, 0.0, 0.0, 1.0]), f32s([16, 2, 1, 1], [1.0; 32])])
            .formula(|_| Array::from_fn([1, 16, 1, 1], |i| if i[1] < 8 { 0.0 } else { 1.0 })),
        // Ones at multiples of 9.
        op_case("conv", "input_dilation_of_ones", &dilated.attributes(), "f16[29, 1, 8, 8], f16[1, 1, 1, 1]")
            .random(Domain::Constant(1.0))
            .formula(|_| Array::from_fn([29, 1, 64, 64], |i| f64::from(u8::from(i[2] % 9 == 0 && i[3] % 9 == 0))))
            .without_views(),
        // A weight that is one plane of a larger array.
        case("conv", "weight_is_a_plane_of_five_axes", "(%x: f32[2, 8, 6, 9], %w: f32[3, 8, 3, 3, 3]) {
            %s = slice<starts=[0, 0, 1, 0, 0], sizes=[3, 8, 1, 3, 3], steps=[1, 1, 1, 1, 1]>(%w)
            %p = reshape<dims=[3, 8, 3, 3]>(%s)
            %y = conv<strides=[1, 1], padding=[(0, 0), (0, 0)], lhs_dilation=[1, 1], rhs_dilation=[1, 1], groups=1>(%x, %p)
            return \"y\" = %y
        }")
        .random(Domain::Normal)
        .formula(|x| {
            let plane = Array::from_fn([3, 8, 3, 3], |i| x[1].at(&[i[0], i[1], 1, i[2], i[3]]));
            Conv::plain(2).apply(&[x[0].clone(), plane])
        })
        .summed(72),
        // A sum as long as 2^16 of ones, exact in f32.
        op_case("conv", "kernel_of_65536_ones", &Conv::plain(1).attributes(), "f32[1, 1, 65540], f32[1, 1, 65536]")
            .random(Domain::Constant(1.0))
            .formula(|_| Array::new([1, 1, 5], [65536.0; 5]))
            .without_views(),
        op_case("conv", "positions_beyond_16_bits", &Conv::plain(1).attributes(), "f32[1, 4, 66000], f32[1, 4, 10]")
            .random(Domain::Constant(1.0))
            .formula(|_| Array::new([1, 1, 65991], vec![40.0; 65991]))
            .without_views()
            .cost(Cost::Medium)
            .twin(op_case("conv", "positions_beyond_16_bits_twin", &Conv::plain(1).attributes(), "f32[1, 4, 660], f32[1, 4, 10]").random(Domain::Constant(1.0)).formula(|_| Array::new([1, 1, 651], vec![40.0; 651]))),
        op_case("conv", "output_channels_beyond_16_bits", &Conv::plain(1).attributes(), "f32[1, 1, 1], f32[65537, 1, 1]")
            .input(f32s([1, 1, 1], [2.0]))
            .input(f32s([65537, 1, 1], (0..65537).map(|i| i as f32).collect::<Vec<_>>()))
            .formula(|_| Array::from_fn([1, 65537, 1], |i| 2.0 * i[1] as f64))
            .without_views(),
        op_case("conv", "half_gives_f32", &format!("{}, out=f32", Conv::plain(1).attributes()), "f16[1, 2, 8], f16[2, 2, 3]").random(Domain::Normal).formula(|x| Conv::plain(1).apply(x)).summed(6),
    ]
}

fn conv_wrong() -> Vec<Case> {
    let wrong = |name: &str, conv: Conv, operands: &str, label: &str| {
        op_case("conv", name, &conv.attributes(), operands).fails_build(label)
    };
    let plain = Conv::plain;
    vec![
        wrong("types_differ", plain(1), "f32[1, 1, 4], f16[1, 1, 2]", "C1"),
        wrong("bool", plain(1), "bool[1, 1, 4], bool[1, 1, 2]", "C1"),
        wrong("ranks_differ", plain(1), "f32[1, 1, 4], f32[1, 1, 2, 2]", "C2"),
        wrong("one_axis_only", plain(0), "f32[4], f32[2]", "C2"),
        wrong(
            "too_many_strides",
            Conv { strides: vec![1, 1], ..plain(1) },
            "f32[1, 1, 4], f32[1, 1, 2]",
            "C3",
        ),
        wrong("stride_zero", Conv { strides: vec![0], ..plain(1) }, "f32[1, 1, 4], f32[1, 1, 2]", "C4"),
        wrong(
            "dilation_zero",
            Conv { rhs_dilation: vec![0], ..plain(1) },
            "f32[1, 1, 4], f32[1, 1, 2]",
            "C4",
        ),
        wrong("channels_differ", plain(1), "f32[1, 3, 4], f32[1, 2, 2]", "C5"),
        wrong("groups_do_not_divide", Conv { groups: 2, ..plain(1) }, "f32[1, 4, 4], f32[3, 2, 2]", "C5"),
        wrong("no_groups", Conv { groups: 0, ..plain(1) }, "f32[1, 4, 4], f32[3, 2, 2]", "C5"),
        wrong("kernel_larger_than_the_input", plain(1), "f32[1, 1, 4], f32[1, 1, 6]", "C6"),
    ]
}
