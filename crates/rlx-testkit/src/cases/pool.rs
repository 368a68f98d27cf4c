//! Cases of pooling and unfolding. Recorded ones by onnxruntime, and by numpy for gradients.

use crate::array::Array;
use crate::case::{Case, FLOATS, Stage, f32s, for_dtypes, i64s, op_case};
use crate::golden::{golden, symbolic_golden};
use crate::random::Domain;

const RECORDED: &str = include_str!("../../golden/pool.case");

/// What PyTorch gives; recorded by `references/cases/pytorch.py`.
const PYTORCH: &str = include_str!("../../golden/pytorch/pool.case");

fn recorded(op: &str) -> Vec<Case> {
    [golden(RECORDED, op), symbolic_golden(RECORDED, op)].concat()
}

/// Windows of three by two along one axis.
const ONE_AXIS: &str = "window=[3], strides=[2], dilations=[1], padding=[(1, 1)], ceil_mode=false";

/// What `combine` makes of each window of [`ONE_AXIS`] of x \[n, c, s\], in order.
fn windows(x: &Array, combine: impl Fn(&[f64]) -> f64) -> Array {
    x.map_rows(2, |row| {
        let count = (row.len() + 2 - 3) / 2 + 1;
        let window = |o: usize| (2 * o).saturating_sub(1)..(2 * o + 2).min(row.len());
        (0..count).map(|o| combine(&row[window(o)])).collect()
    })
}

fn greatest(row: &[f64]) -> f64 {
    row.iter().fold(f64::NEG_INFINITY, |m, x| if m.is_nan() || x.is_nan() { f64::NAN } else { m.max(*x) })
}

pub(super) fn max_pool() -> Vec<Case> {
    let mut cases = recorded("max_pool");
    cases.extend(golden(PYTORCH, "max_pool"));
    cases.extend(for_dtypes(FLOATS, |dtype| {
        op_case("max_pool", "types", ONE_AXIS, &format!("{dtype}[n, 2, s]"))
            .sizes([("n", 2), ("s", 11)])
            .random(Domain::Normal.special())
            .formula(|x| windows(&x[0], greatest))
    }));
    let nan = [1.0, f32::NAN, 3.0, f32::NAN, 2.0];
    cases.extend([
        op_case("max_pool", "first_nan_is_chosen", &format!("{ONE_AXIS}, indices=row_major"), "f32[1, 1, 5]")
            .input(f32s([1, 1, 5], nan))
            .values([f32s([1, 1, 3], [f32::NAN; 3]), i64s([1, 1, 3], [1, 1, 3])]),
        op_case("max_pool", "no_images", ONE_AXIS, "f32[0, 2, 5]")
            .random(Domain::Normal)
            .values([f32s([0, 2, 3], [])]),
        op_case("max_pool", "truth_values", ONE_AXIS, "bool[1, 1, 5]").fails_build("C1"),
        op_case("max_pool", "no_channels", ONE_AXIS, "f32[5]").fails_build("C1"),
        op_case("max_pool", "attributes", ONE_AXIS, "f32[1, 1, 5, 5]").fails_build("C2"),
        op_case("max_pool", "large", &ONE_AXIS.replace("[3]", "[13]"), "f32[1, 1, 5]").fails_build("C3"),
        op_case("max_pool", "large_late", &ONE_AXIS.replace("[3]", "[13]"), "f32[1, 1, s]")
            .input(f32s([1, 1, 5], [0.0; 5]))
            .fails(Stage::Run, "the window is larger than the padded axis"),
    ]);
    cases
}

pub(super) fn max_pool_grad() -> Vec<Case> {
    let mut cases = recorded("max_pool_grad");
    cases.extend(golden(PYTORCH, "max_pool_grad"));
    cases.push(op_case("max_pool_grad", "sizes", ONE_AXIS, "f32[1, 1, 5], f32[1, 1, 4]").fails_build("C4"));
    cases
}

pub(super) fn max_unpool() -> Vec<Case> {
    let mut cases = recorded("max_unpool");
    cases.extend(golden(PYTORCH, "max_unpool"));
    let outside = op_case("max_unpool", "outside", "dims=[1, 1, 3]", "f32[1, 1, 2], i64[1, 1, 2]")
        .inputs([f32s([1, 1, 2], [1.0, 2.0]), i64s([1, 1, 2], [0, 3])]);
    cases.push(outside.fails(Stage::Run, "index"));
    cases
}

pub(super) fn lp_pool() -> Vec<Case> {
    let mut cases = recorded("lp_pool");
    cases.extend(golden(PYTORCH, "lp_pool"));
    cases.extend(for_dtypes(FLOATS, |dtype| {
        op_case("lp_pool", "types", &format!("p=2.0, {ONE_AXIS}"), &format!("{dtype}[1, 2, s]"))
            .sizes([("s", 7)])
            .random(Domain::Range(-2.0, 2.0))
            .formula(|x| windows(&x[0], |w| w.iter().map(|v| v * v).sum::<f64>().sqrt()))
            .accumulated(6)
    }));
    let no_exponent = format!("p=0.0, {ONE_AXIS}");
    cases.push(op_case("lp_pool", "exponent", &no_exponent, "f32[1, 1, 5]").fails_build("C4"));
    cases
}

pub(super) fn average_pool() -> Vec<Case> {
    let mut cases = recorded("average_pool");
    cases.extend(golden(PYTORCH, "average_pool"));
    cases.extend(for_dtypes(FLOATS, |dtype| {
        op_case(
            "average_pool",
            "types",
            &format!("{ONE_AXIS}, count_include_pad=false"),
            &format!("{dtype}[1, c, s]"),
        )
        .sizes([("c", 3), ("s", 7)])
        .random(Domain::Range(-2.0, 2.0))
        .formula(|x| windows(&x[0], |w| w.iter().sum::<f64>() / w.len() as f64))
        .accumulated(4)
    }));
    let included = format!("{ONE_AXIS}, count_include_pad=true");
    cases.push(op_case("average_pool", "integers", &included, "i32[1, 1, 5]").fails_build("C1"));
    cases
}

pub(super) fn average_pool_grad() -> Vec<Case> {
    let mut cases = recorded("average_pool_grad");
    cases.extend(golden(PYTORCH, "average_pool_grad"));
    let attributes = format!("dims=[5], {ONE_AXIS}, count_include_pad=true");
    cases.push(op_case("average_pool_grad", "sizes", &attributes, "f32[1, 1, 4]").fails_build("C4"));
    cases
}

pub(super) fn global_pool() -> Vec<Case> {
    let mut cases = [recorded("global_max_pool"), recorded("global_average_pool")].concat();
    cases.extend(for_dtypes(FLOATS, |dtype| {
        op_case("global_average_pool", "types", "", &format!("{dtype}[n, 3, s]"))
            .sizes([("n", 2), ("s", 13)])
            .random(Domain::Range(-2.0, 2.0))
            .formula(|x| x[0].map_rows(2, |row| vec![row.iter().sum::<f64>() / row.len() as f64]))
            .accumulated(14)
    }));
    cases.extend([
        op_case("global_average_pool", "no_elements", "", "f32[1, 1, 0]")
            .random(Domain::Normal)
            .values([f32s([1, 1, 1], [f32::NAN])]),
        op_case("global_average_pool", "integers", "", "i32[1, 1, 5]").fails_build("C1"),
    ]);
    cases
}

pub(super) fn global_lp_pool() -> Vec<Case> {
    let mut cases = recorded("global_lp_pool");
    cases.push(op_case("global_lp_pool", "exponent", "p=-1.0", "f32[1, 1, 5]").fails_build("C4"));
    cases
}

pub(super) fn adaptive_pool() -> Vec<Case> {
    let mut cases = [recorded("adaptive_max_pool"), recorded("adaptive_average_pool")].concat();
    cases.extend(golden(PYTORCH, "adaptive_max_pool"));
    cases.extend(golden(PYTORCH, "adaptive_average_pool"));
    cases.extend([
        op_case("adaptive_average_pool", "sizes", "sizes=[2]", "f32[1, 1, 5, 5]").fails_build("C2"),
        op_case("adaptive_max_pool", "nan_stays_in_its_window", "sizes=[2]", "f32[1, 1, 4]")
            .input(f32s([1, 1, 4], [1.0, f32::NAN, -5.0, -4.0]))
            .values([f32s([1, 1, 2], [f32::NAN, -4.0])]),
    ]);
    cases
}

pub(super) fn im2col() -> Vec<Case> {
    let mut cases = recorded("im2col");
    cases.extend(golden(PYTORCH, "im2col"));
    let attributes = "window=[2], strides=[1], dilations=[1], padding=[(0, 0)]";
    cases.push(op_case("im2col", "attributes", attributes, "f32[1, 1, 5, 5]").fails_build("C2"));
    cases
}

pub(super) fn col2im() -> Vec<Case> {
    let mut cases = recorded("col2im");
    cases.extend(golden(PYTORCH, "col2im"));
    let attributes = "dims=[5], window=[2], strides=[1], dilations=[1], padding=[(0, 0)]";
    cases.extend([
        op_case("col2im", "rows", attributes, "f32[1, 3, 4]").fails_build("C4"),
        op_case("col2im", "columns", attributes, "f32[1, 4, 5]").fails_build("C5"),
    ]);
    cases
}
