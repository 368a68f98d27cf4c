//! Cases of scatter.

use super::index::{Outside, indexed, layouts, position};
use crate::array::for_each_index;
use crate::case::{Case, FLOATS, INTEGERS, Stage, bools, f32s, for_dtypes, i32s, i64s, literal, op_case};
use crate::random::Domain;
use rlx_ir::DType;

/// How updates combine, with the definition of each, and whether it is exact.
const COMBINE: [(&str, fn(f64, f64) -> f64, bool); 5] = [
    ("replace", |_, u| u, true),
    ("add", |x, u| x + u, false),
    ("mul", |x, u| x * u, false),
    ("max", |x, u| if x.is_nan() || u.is_nan() { f64::NAN } else { x.max(u) }, true),
    ("min", |x, u| if x.is_nan() || u.is_nan() { f64::NAN } else { x.min(u) }, true),
];

/// Cases of `scatter`.
pub(super) fn scatter() -> Vec<Case> {
    let mut cases = Vec::new();
    for (combine, f, exact) in COMBINE {
        for (kind, outside) in
            [("inside", Outside::Inside), ("clamp", Outside::Clamp), ("drop", Outside::Drop)]
        {
            for (name, gather, x, indices) in layouts(outside) {
                if name == "no_axes" {
                    continue;
                }
                let updates = gather.sizes(&x, &indices);
                // Attributes stand in the order of their declaration.
                let attributes = gather.attributes().replace(", oob", &format!(", combine={combine}, oob"));
                let dtypes: &[DType] = if name == "rows" {
                    &[DType::F32, DType::F64, DType::F16, DType::I64, DType::I32, DType::U8]
                } else {
                    &[DType::F32]
                };
                cases.extend(for_dtypes(dtypes, |dtype| {
                    let case = op_case(
                        "scatter",
                        &format!("{name}_{kind}_{combine}"),
                        &attributes,
                        &format!("{dtype}{x:?}, i64{indices:?}, {dtype}{updates:?}"),
                    )
                    .random_input(Domain::Whole(1, 3));
                    // Small whole numbers with duplicates among the indices: exact whatever the order.
                    let case = indexed(case, gather, &x)
                        .random(Domain::Whole(1, 2))
                        .formula(move |x| gather.scatter(x, f));
                    if exact || dtype.is_int() { case } else { case.summed(8) }
                }));
            }
        }
    }
    let rows =
        |combine: &str, oob: &str| format!("axes=[0], batch=0, combine={combine}, oob={oob}, wrap=true");
    cases.extend([
        op_case("scatter", "last_duplicate_wins", &rows("replace", "error"), "i32[3], i64[4, 1], i32[4]")
            .inputs([i32s([3], [0; 3]), i64s([4, 1], [1, 1, -2, 0]), i32s([4], [5, 6, 7, 8])])
            .values([i32s([3], [8, 7, 0])]),
        op_case("scatter", "nan_wins_the_maximum", &rows("max", "error"), "f32[2], i64[2, 1], f32[2]")
            .inputs([f32s([2], [1.0, 1.0]), i64s([2, 1], [0, 0]), f32s([2], [f32::NAN, 3.0])])
            .values([f32s([2], [f32::NAN, 1.0])]),
        op_case("scatter", "bools_replace", &rows("replace", "error"), "bool[2], i64[1, 1], bool[1]")
            .inputs([bools([2], [false, false]), i64s([1, 1], [1]), bools([1], [true])])
            .values([bools([2], [false, true])]),
        op_case("scatter", "integers_wrap", &rows("add", "error"), "u8[1], i64[1, 1], u8[1]")
            .inputs([literal(DType::U8, [1], [250.0]), i64s([1, 1], [0]), literal(DType::U8, [1], [10.0])])
            .values([literal(DType::U8, [1], [4.0])]),
        op_case("scatter", "no_updates", &rows("add", "error"), "f32[3], i64[0, 1], f32[0]")
            .random(Domain::Normal)
            .formula(|x| x[0].clone()),
        op_case("scatter", "outside", &rows("add", "error"), "f32[3], i64[1, 1], f32[1]")
            .inputs([f32s([3], [0.0; 3]), i64s([1, 1], [3]), f32s([1], [1.0])])
            .fails(Stage::Run, "index 3 is out of range"),
        op_case("scatter", "float_indices", &rows("add", "error"), "f32[3], f32[1, 1], f32[1]")
            .fails_build("C1"),
        op_case(
            "scatter",
            "axis_out_of_range",
            "axes=[3], batch=0, combine=add, oob=error, wrap=false",
            "f32[3], i64[1, 1], f32[1]",
        )
        .fails_build("C2"),
        op_case("scatter", "tuples_too_long", &rows("add", "error"), "f32[3], i64[1, 2], f32[1]")
            .fails_build("C3"),
        op_case(
            "scatter",
            "batch_sizes_differ",
            "axes=[1], batch=1, combine=add, oob=error, wrap=false",
            "f32[3, 2], i64[2, 1], f32[2]",
        )
        .fails_build("C4"),
        op_case("scatter", "updates_of_another_type", &rows("add", "error"), "f32[3], i64[1, 1], f16[1]")
            .fails_build("C5"),
        op_case("scatter", "bools_do_not_add", &rows("add", "error"), "bool[3], i64[1, 1], bool[1]")
            .fails_build("C5"),
        op_case("scatter", "update_sizes_differ", &rows("add", "error"), "f32[3], i64[1, 1], f32[2]")
            .fails_build("C6"),
    ]);
    cases
}

/// Cases of `scatter_along`.
pub(super) fn scatter_along() -> Vec<Case> {
    let mut cases = Vec::new();
    for (combine, f, exact) in COMBINE {
        for axis in 0..2 {
            for (oob, outside, domain) in [
                ("error", Outside::Inside, Domain::Whole(-4, 3)),
                ("clamp", Outside::Clamp, Domain::Whole(-9, 9)),
                ("drop", Outside::Drop, Domain::Whole(-9, 9)),
            ] {
                let attributes = format!("axis={axis}, combine={combine}, oob={oob}, wrap=true");
                let domain = domain.clone();
                let dtypes = if oob == "error" { [FLOATS, INTEGERS].concat() } else { vec![DType::F32] };
                cases.extend(for_dtypes(&dtypes, |dtype| {
                    let case = op_case(
                        "scatter_along",
                        &format!("{combine}_{oob}_axis_{axis}"),
                        &attributes,
                        &format!("{dtype}[4, 6], i64[3, 5], {dtype}[3, 5]"),
                    )
                    .random_input(Domain::Whole(1, 3))
                    .random_input(domain.clone())
                    .random_input(Domain::Whole(1, 2))
                    .formula(move |x| {
                        let mut result = x[0].clone();
                        for_each_index(&x[2].dims, |index| {
                            let mut at = index.to_vec();
                            if let Some(i) = position(x[1].at(index), x[0].dims[axis], true, outside) {
                                at[axis] = i;
                                let offset = result.offset(&at);
                                result.data[offset] = f(result.data[offset], x[2].at(index));
                            }
                        });
                        result
                    });
                    if exact || dtype.is_int() { case } else { case.summed(8) }
                }));
            }
        }
    }
    let attributes = "axis=0, combine=add, oob=error, wrap=false";
    cases.extend([
        op_case("scatter_along", "outside", attributes, "f32[2], i64[1], f32[1]")
            .inputs([f32s([2], [0.0; 2]), i64s([1], [-1]), f32s([1], [1.0])])
            .fails(Stage::Run, "index -1 is out of range"),
        op_case("scatter_along", "float_indices", attributes, "f32[2], f32[1], f32[1]").fails_build("C1"),
        op_case(
            "scatter_along",
            "bad_axis",
            "axis=1, combine=add, oob=error, wrap=false",
            "f32[2], i64[1], f32[1]",
        )
        .fails_build("C2"),
        op_case("scatter_along", "ranks_differ", attributes, "f32[2, 2], i64[1], f32[1]").fails_build("C3"),
        op_case("scatter_along", "updates_of_another_type", attributes, "f32[2], i64[1], f64[1]")
            .fails_build("C5"),
        op_case("scatter_along", "update_sizes_differ", attributes, "f32[2], i64[1], f32[2]")
            .fails_build("C6"),
    ]);
    cases
}
