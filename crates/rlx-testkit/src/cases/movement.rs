//! Cases of movement: the same elements in another arrangement, in every type.

use crate::Array;
use crate::case::{
    Case, FLOATS, INTEGERS, Stage, bools, case, f32s, for_dtypes, for_sizes, i32s, literal, op_case,
};
use crate::random::Domain;
use rlx_ir::DType;

/// Every type whose elements have at least 8 bits.
fn all_types() -> Vec<DType> {
    let rest = [DType::Bool, DType::C64, DType::C128, DType::F8E4M3FN, DType::F8E5M2FNUZ, DType::E8M0];
    [FLOATS, INTEGERS, &rest].concat()
}

/// The operation applied to the indices 0, 1, 2 … of an array of sizes `dims`, in every type: what goes wrong in one
/// element width shows there.
fn in_every_type(
    op: &str,
    attributes: &str,
    dims: &[usize],
    f: impl Fn(&Array) -> Array + Clone + Send + Sync + 'static,
) -> Vec<Case> {
    for_dtypes(&all_types(), |dtype| {
        let f = f.clone();
        op_case(op, "type", attributes, &format!("{dtype}{dims:?}"))
            .random(Domain::Range(0.0, 100.0))
            .formula(move |x| if dtype.is_complex() { complex_parts(&x[0], &f) } else { f(&x[0]) })
    })
}

/// A movement applied to real and imaginary parts.
fn complex_parts(x: &Array, f: &impl Fn(&Array) -> Array) -> Array {
    let part = |k: usize| {
        let dims = &x.dims[..x.dims.len() - 1];
        f(&Array::new(dims, x.data.iter().skip(k).step_by(2).copied().collect::<Vec<_>>()))
    };
    let (re, im) = (part(0), part(1));
    let dims: Vec<usize> = re.dims.iter().copied().chain([2]).collect();
    Array::new(dims, re.data.iter().zip(&im.data).flat_map(|(re, im)| [*re, *im]).collect::<Vec<_>>())
}

/// Cases of `reshape`.
pub(super) fn reshape() -> Vec<Case> {
    let mut cases = in_every_type("reshape", "dims=[3, 4]", &[2, 6], |x| x.reshape([3, 4]));
    cases.extend([
        op_case("reshape", "symbolic_split", "dims=[n, 3, 2]", "f32[n, 6]")
            .sizes([("n", 5)])
            .random(Domain::Normal)
            .formula(|x| x[0].reshape([5, 3, 2])),
        op_case("reshape", "symbolic_merge", "dims=[6*n]", "f32[n, 6]")
            .sizes([("n", 5)])
            .random(Domain::Normal)
            .formula(|x| x[0].reshape([30])),
        op_case("reshape", "to_scalar", "dims=[]", "f32[1, 1]")
            .random(Domain::Normal)
            .formula(|x| x[0].reshape([])),
        op_case("reshape", "empty", "dims=[0, 7]", "f32[3, 0]")
            .random(Domain::Normal)
            .formula(|x| x[0].reshape([0, 7])),
        op_case("reshape", "ones_in_and_out", "dims=[1, 3, 1, 2]", "f32[3, 1, 2]")
            .random(Domain::Normal)
            .formula(|x| x[0].reshape([1, 3, 1, 2])),
        op_case("reshape", "counts_differ", "dims=[2, 5]", "f32[2, 3]").fails_build("C2"),
        op_case("reshape", "negative", "dims=[-2, -3]", "f32[2, 3]").fails_build("C1"),
        op_case("reshape", "symbolic_counts_differ", "dims=[2, 5, s]", "f32[2, 3, s]")
            .sizes([("s", 4)])
            .random(Domain::Normal)
            .fails(Stage::Run, "C2: element counts differ"),
        op_case("reshape", "two_operands", "dims=[2]", "f32[2], f32[2]").fails_build("C0"),
        // Zero is the one size for which 6·s and 10·s agree.
        op_case("reshape", "symbolic_counts_agree_at_zero", "dims=[2, 5, s]", "f32[2, 3, s]")
            .sizes([("s", 0)])
            .random(Domain::Normal)
            .formula(|x| x[0].reshape([2, 5, 0])),
    ]);
    cases
}

/// Cases of `transpose`.
pub(super) fn transpose() -> Vec<Case> {
    let mut cases = in_every_type("transpose", "perm=[2, 0, 1]", &[2, 3, 5], |x| x.transpose(&[2, 0, 1]));
    cases.extend(for_sizes(32, |n| {
        op_case("transpose", "matrix", "perm=[1, 0]", "f32[n, 33]")
            .sizes([("n", n)])
            .random(Domain::Normal)
            .formula(|x| x[0].transpose(&[1, 0]))
    }));
    cases.extend(for_dtypes(&[DType::I4, DType::U2], |dtype| {
        op_case("transpose", "sub_byte", "perm=[1, 0]", &format!("{dtype}[3, 5]"))
            .random(Domain::Range(0.0, 4.0))
            .formula(|x| x[0].transpose(&[1, 0]))
    }));
    cases.extend([
        op_case("transpose", "scalar", "perm=[]", "f32[]").random(Domain::Normal).formula(|x| x[0].clone()),
        op_case("transpose", "five_axes", "perm=[4, 2, 0, 3, 1]", "f32[2, 3, 1, 4, 2]")
            .random(Domain::Normal)
            .formula(|x| x[0].transpose(&[4, 2, 0, 3, 1])),
        op_case("transpose", "repeated_axis", "perm=[0, 0]", "f32[2, 3]").fails_build("C1"),
        op_case("transpose", "too_short", "perm=[0]", "f32[2, 3]").fails_build("C1"),
        op_case("transpose", "axis_out_of_range", "perm=[0, 2]", "f32[2, 3]").fails_build("C1"),
    ]);
    cases
}

/// Cases of `broadcast`.
pub(super) fn broadcast() -> Vec<Case> {
    let of_unknown_sizes = "(%x: f32[n], %y: f32[m]) {
            %b = broadcast<dims=[bcast(n, m)]>(%x)
            %c = broadcast<dims=[bcast(n, m)]>(%y)
            %z = add(%b, %c)
            return \"z\" = %z
        }";
    let mut cases = in_every_type("broadcast", "dims=[4, 2, 3]", &[2, 1], |x| x.broadcast([4, 2, 3]));
    let square = |x: &[Array]| x[0].broadcast([1, 1, 13, 13]);
    cases.extend([
        op_case("broadcast", "scalar", "dims=[2, n]", "f32[]")
            .random(Domain::Normal)
            .fails(Stage::Run, "not bound"),
        op_case("broadcast", "nothing_to_repeat", "dims=[2, 3]", "f32[2, 3]")
            .random(Domain::Normal)
            .formula(|x| x[0].clone()),
        op_case("broadcast", "to_zero", "dims=[0, 3]", "f32[1, 3]")
            .random(Domain::Normal)
            .formula(|x| x[0].broadcast([0, 3])),
        op_case("broadcast", "column_to_square", "dims=[1, 1, 13, 13]", "f32[13, 1]")
            .random(Domain::Normal)
            .formula(square),
        op_case("broadcast", "square_to_square", "dims=[1, 1, 13, 13]", "f32[13, 13]")
            .random(Domain::Normal)
            .formula(square),
        case(
            "cast",
            "of_a_broadcast_column",
            "(%x: f32[13, 1]) {
            %b = broadcast<dims=[1, 1, 13, 13]>(%x)
            %y = cast<to=f64>(%b)
            return \"y\" = %y
        }",
        )
        .random(Domain::Normal)
        .formula(square),
        case("broadcast", "unknown_sizes_that_agree", of_unknown_sizes)
            .inputs([f32s([1], [10.0]), f32s([3], [1.0, 2.0, 3.0])])
            .values([f32s([3], [11.0, 12.0, 13.0])]),
        case("broadcast", "unknown_sizes_that_differ", of_unknown_sizes)
            .inputs([f32s([2], [10.0; 2]), f32s([3], [1.0, 2.0, 3.0])])
            .fails(Stage::Run, "do not broadcast"),
        op_case("broadcast", "rank_shrinks", "dims=[3]", "f32[1, 3]").fails_build("C1"),
        op_case("broadcast", "sizes_do_not_meet", "dims=[2, 4]", "f32[3]").fails_build("C2"),
        op_case("broadcast", "size_shrinks_to_one", "dims=[1]", "f32[3]").fails_build("C2"),
    ]);
    cases
}

/// y[i] = x[start + step·i].
fn sliced(x: &Array, starts: &[i64], sizes: &[usize], steps: &[i64]) -> Array {
    Array::from_fn(sizes, |index| {
        let at: Vec<usize> = index
            .iter()
            .zip(starts)
            .zip(steps)
            .map(|((i, start), step)| (start + step * *i as i64) as usize)
            .collect();
        x.at(&at)
    })
}

/// Cases of `slice`.
pub(super) fn slice() -> Vec<Case> {
    let mut cases = in_every_type("slice", "starts=[1, 5], sizes=[2, 3], steps=[1, -2]", &[4, 7], |x| {
        sliced(x, &[1, 5], &[2, 3], &[1, -2])
    });
    let whole = "starts=[0, n - 1], sizes=[2, n], steps=[1, -1]";
    cases.extend(for_sizes(16, |n| {
        op_case("slice", "reversed", whole, "f32[2, n]")
            .sizes([("n", n)])
            .random(Domain::Normal)
            .formula(move |x| sliced(&x[0], &[0, n as i64 - 1], &[2, n], &[1, -1]))
    }));
    cases.extend(for_dtypes(&[DType::I4, DType::U2], |dtype| {
        op_case("slice", "sub_byte", "starts=[1, 1], sizes=[2, 3], steps=[1, 2]", &format!("{dtype}[3, 7]"))
            .random(Domain::Range(0.0, 4.0))
            .formula(|x| sliced(&x[0], &[1, 1], &[2, 3], &[1, 2]))
    }));
    cases.extend([
        op_case("slice", "symbolic_half", "starts=[0], sizes=[floor_div(n, 2)], steps=[2]", "f32[n]")
            .sizes([("n", 9)])
            .random(Domain::Normal)
            .formula(|x| sliced(&x[0], &[0], &[4], &[2])),
        op_case("slice", "empty_reads_nothing", "starts=[99], sizes=[0], steps=[1]", "f32[3]")
            .random(Domain::Normal)
            .formula(|_| Array::new([0], [])),
        op_case("slice", "one_beyond_the_end", "starts=[1], sizes=[3], steps=[1]", "f32[3]")
            .fails_build("C2"),
        op_case("slice", "before_the_start", "starts=[1], sizes=[3], steps=[-1]", "f32[3]").fails_build("C2"),
        op_case("slice", "symbolic_beyond_the_end", "starts=[2], sizes=[3], steps=[1]", "f32[n]")
            .sizes([("n", 4)])
            .random(Domain::Normal)
            .fails(Stage::Run, "C2"),
        op_case("slice", "step_zero", "starts=[0], sizes=[1], steps=[0]", "f32[3]").fails_build("C1"),
        op_case("slice", "too_few_starts", "starts=[0], sizes=[1, 1], steps=[1, 1]", "f32[3, 3]")
            .fails_build("C1"),
        op_case("slice", "negative_size", "starts=[0], sizes=[-1], steps=[1]", "f32[3]").fails_build("C2"),
    ]);
    cases
}

/// Cases of `pad`.
pub(super) fn pad() -> Vec<Case> {
    let padded = |x: &Array, value: f64, low: &[usize], dims: &[usize]| {
        let low = low.to_vec();
        Array::from_fn(dims, |index| {
            let at: Option<Vec<usize>> = index
                .iter()
                .zip(&low)
                .zip(&x.dims)
                .map(|((i, l), n)| i.checked_sub(*l).filter(|i| i < n))
                .collect();
            at.map_or(value, |at| x.at(&at))
        })
    };
    let mut cases = for_dtypes(&[FLOATS, INTEGERS, &[DType::Bool, DType::F8E5M2]].concat(), |dtype| {
        op_case("pad", "both_sides", "low=[1, 0], high=[2, 3]", &format!("{dtype}[2, 3], {dtype}[]"))
            .random(Domain::Range(0.0, 50.0))
            .formula(move |x| padded(&x[0], x[1].data[0], &[1, 0], &[5, 6]))
    });
    cases.extend([
        op_case("pad", "infinity", "low=[1], high=[1]", "f32[2], f32[]")
            .inputs([f32s([2], [1.0, 2.0]), f32s([], [f32::NEG_INFINITY])])
            .values([f32s([4], [f32::NEG_INFINITY, 1.0, 2.0, f32::NEG_INFINITY])]),
        op_case("pad", "empty_becomes_padding", "low=[2], high=[1]", "f32[0], f32[]")
            .inputs([f32s([0], []), f32s([], [7.0])])
            .values([f32s([3], [7.0; 3])]),
        op_case("pad", "symbolic", "low=[n], high=[1]", "f32[n], f32[]")
            .sizes([("n", 3)])
            .random(Domain::Normal)
            .formula(move |x| padded(&x[0], x[1].data[0], &[3], &[7])),
        op_case("pad", "complex", "low=[1], high=[0]", "c64[1], c64[]")
            .inputs([literal(DType::C64, [1, 2], [1.0, 2.0]), literal(DType::C64, [2], [3.0, 4.0])])
            .values([literal(DType::C64, [2, 2], [3.0, 4.0, 1.0, 2.0])]),
        op_case("pad", "value_of_another_type", "low=[1], high=[1]", "f32[2], i32[]").fails_build("C1"),
        op_case("pad", "value_with_an_axis", "low=[1], high=[1]", "f32[2], f32[1]").fails_build("C1"),
        op_case("pad", "negative", "low=[-1], high=[1]", "f32[2], f32[]").fails_build("C2"),
        op_case("pad", "too_few_counts", "low=[1], high=[1]", "f32[2, 2], f32[]").fails_build("C2"),
    ]);
    cases
}

/// The arrays one after the other.
fn concatenated(x: &[Array], axis: usize) -> Array {
    let mut dims = x[0].dims.clone();
    dims[axis] = x.iter().map(|x| x.dims[axis]).sum();
    Array::from_fn(dims, |index| {
        let mut at = index.to_vec();
        for part in x {
            if at[axis] < part.dims[axis] {
                return part.at(&at);
            }
            at[axis] -= part.dims[axis];
        }
        f64::NAN
    })
}

/// Cases of `concat`.
pub(super) fn concat() -> Vec<Case> {
    let mut cases = Vec::new();
    for axis in 0..3 {
        let mut second = [2, 3, 4];
        second[axis] = 5;
        let name = format!("axis_{axis}");
        let types = [FLOATS, INTEGERS, &[DType::Bool, DType::F8E4M3FN]].concat();
        cases.extend(for_dtypes(&types, |dtype| {
            op_case(
                "concat",
                &name,
                &format!("axis={axis}"),
                &format!("{dtype}[2, 3, 4], {dtype}{second:?}, {dtype}[2, 3, 4]"),
            )
            .random(Domain::Range(0.0, 50.0))
            .formula(move |x| concatenated(x, axis))
        }));
    }
    for n in [1, 31, 32, 100, 200] {
        let operands = vec!["f32[2, 3]"; n].join(", ");
        cases.push(
            op_case("concat", &format!("operands_{n}"), "axis=1", &operands)
                .random(Domain::Normal)
                .formula(|x| concatenated(x, 1))
                .without_views(),
        );
        // The same inputs, each with a new axis, stacked; and summed one after the other.
        let inputs: Vec<String> = (0..n).map(|i| format!("%x{i}: f32[3]")).collect();
        let rows: Vec<String> = (0..n).map(|i| format!("%r{i} = reshape<dims=[1, 3]>(%x{i})\n")).collect();
        let names: Vec<String> = (0..n).map(|i| format!("%r{i}")).collect();
        let stacked = format!(
            "({}) {{\n{}%y = concat<axis=0>({})\nreturn \"y\" = %y }}",
            inputs.join(", "),
            rows.concat(),
            names.join(", ")
        );
        cases.push(
            case("concat", &format!("stack_of_{n}"), &stacked)
                .random(Domain::Normal)
                .without_views()
                .formula(move |x| {
                    Array::new([n, 3], x.iter().flat_map(|x| x.data.clone()).collect::<Vec<_>>())
                }),
        );
        let sums: Vec<String> = (1..n)
            .map(|i| {
                format!("%s{i} = add(%{}, %x{i})\n", if i == 1 { "x0".into() } else { format!("s{}", i - 1) })
            })
            .collect();
        let last = if n == 1 { "x0".to_string() } else { format!("s{}", n - 1) };
        let summed =
            format!("({}) {{\n{}%y = neg(%{last})\nreturn \"y\" = %y }}", inputs.join(", "), sums.concat());
        cases.push(
            case("neg", &format!("of_the_sum_of_{n}"), &summed)
                .random(Domain::Normal)
                .without_views()
                .summed(n)
                .formula(|x| Array::from_fn([3], |i| -x.iter().map(|x| x.at(i)).sum::<f64>())),
        );
    }
    cases.extend([
        // Even and odd elements, as rotary embeddings take them apart.
        case(
            "concat",
            "even_and_odd_elements",
            "(%x: f32[2, 8]) {
            %e = slice<starts=[0, 0], sizes=[2, 4], steps=[1, 2]>(%x)
            %o = slice<starts=[0, 1], sizes=[2, 4], steps=[1, 2]>(%x)
            %y = concat<axis=1>(%o, %e)
            %ec = reshape<dims=[2, 4, 1]>(%e)
            %oc = reshape<dims=[2, 4, 1]>(%o)
            %z = concat<axis=2>(%oc, %ec)
            return \"y\" = %y, \"z\" = %z
        }",
        )
        .random(Domain::Normal)
        .formulas(|x| {
            vec![
                Array::from_fn([2, 8], |i| {
                    x[0].at(&[i[0], if i[1] < 4 { 2 * i[1] + 1 } else { 2 * (i[1] - 4) }])
                }),
                Array::from_fn([2, 4, 2], |i| x[0].at(&[i[0], 2 * i[1] + 1 - i[2]])),
            ]
        }),
        op_case("concat", "with_empty", "axis=0", "f32[0, 2], f32[1, 2], f32[0, 2]")
            .random(Domain::Normal)
            .formula(|x| x[1].clone()),
        op_case("concat", "symbolic", "axis=0", "f32[n], f32[m]")
            .sizes([("n", 2), ("m", 3)])
            .random(Domain::Normal)
            .formula(|x| concatenated(x, 0)),
        op_case("concat", "bools", "axis=0", "bool[1], bool[2]")
            .inputs([bools([1], [true]), bools([2], [false, true])])
            .values([bools([3], [true, false, true])]),
        // A stand-in for the array whose index leaves 31 bits: rows beyond 2^16, whose product with the row is far on.
        op_case("concat", "rows_beyond_16_bits", "axis=1", "i8[65537, 3], i8[65537, 2]")
            .inputs([
                literal(DType::I8, [65537, 3], vec![1.0; 65537 * 3]),
                literal(DType::I8, [65537, 2], vec![2.0; 65537 * 2]),
            ])
            .formula(|_| Array::from_fn([65537, 5], |i| if i[1] < 3 { 1.0 } else { 2.0 }))
            .without_views(),
        op_case("concat", "nothing", "axis=0", "").fails_build("C0"),
        op_case("concat", "bad_axis", "axis=2", "f32[2, 2], f32[2, 2]").fails_build("C1"),
        op_case("concat", "types_differ", "axis=0", "f32[2], i32[2]").fails_build("C2"),
        op_case("concat", "sizes_differ", "axis=0", "f32[2, 3], f32[2, 4]").fails_build("C3"),
        op_case("concat", "ranks_differ", "axis=0", "f32[2, 3], f32[3]").fails_build("C3"),
    ]);
    cases
}

/// Cases of `reverse`.
pub(super) fn reverse() -> Vec<Case> {
    let reversed = |x: &Array, axes: &[usize]| {
        Array::from_fn(x.dims.clone(), |index| {
            let at: Vec<usize> = index
                .iter()
                .enumerate()
                .map(|(axis, i)| if axes.contains(&axis) { x.dims[axis] - 1 - i } else { *i })
                .collect();
            x.at(&at)
        })
    };
    let mut cases = in_every_type("reverse", "axes=[0, 2]", &[2, 3, 5], move |x| reversed(x, &[0, 2]));
    cases.extend(for_sizes(16, |n| {
        op_case("reverse", "last", "axes=[1]", "f32[2, n]")
            .sizes([("n", n)])
            .random(Domain::Normal)
            .formula(move |x| reversed(&x[0], &[1]))
    }));
    cases.extend([
        op_case("reverse", "nothing", "", "i32[2]").input(i32s([2], [1, 2])).values([i32s([2], [1, 2])]),
        op_case("reverse", "bad_axis", "axes=[2]", "f32[2, 3]").fails_build("C1"),
        op_case("reverse", "axes_out_of_order", "axes=[1, 0]", "f32[2, 3]").fails_build("C1"),
    ]);
    cases
}
