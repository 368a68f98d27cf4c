//! Cases of indexing: gather, and operations whose result size depends on values.

use crate::Array;
use crate::array::for_each_index;
use crate::case::{Case, Stage, case, f32s, for_dtypes, i64s, literal, op_case};
use crate::golden::golden;
use crate::random::Domain;
use rlx_ir::{BlockFormat, DType, Literal};

/// Every type whose elements have at least 8 bits.
pub(super) const ALL: &[DType] = &[
    DType::F32,
    DType::F64,
    DType::F16,
    DType::BF16,
    DType::F8E4M3FN,
    DType::I64,
    DType::I32,
    DType::I16,
    DType::I8,
    DType::U64,
    DType::U32,
    DType::U16,
    DType::U8,
    DType::Bool,
];

/// What happens with an index outside.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Outside {
    Inside,
    Clamp,
    Drop,
}

/// The index as a position below `size`, after wrapping a negative one.
pub(super) fn position(index: f64, size: usize, wrap: bool, outside: Outside) -> Option<usize> {
    let size = size as i64;
    let index = if wrap && index < 0.0 { index as i64 + size } else { index as i64 };
    match outside {
        Outside::Inside => Some(index as usize),
        Outside::Clamp => Some(index.clamp(0, size - 1) as usize),
        Outside::Drop => (0..size).contains(&index).then_some(index as usize),
    }
}

/// A gather's attributes.
#[derive(Clone, Copy)]
pub(super) struct Gather {
    axes: &'static [usize],
    batch: usize,
    wrap: bool,
    outside: Outside,
}

impl Gather {
    pub(super) fn attributes(&self) -> String {
        let oob = match self.outside {
            Outside::Inside => "error",
            Outside::Clamp => "clamp",
            Outside::Drop => "drop",
        };
        format!("axes={:?}, batch={}, oob={oob}, wrap={}", self.axes, self.batch, self.wrap)
    }

    /// The sizes of the result.
    pub(super) fn sizes(&self, x: &[usize], indices: &[usize]) -> Vec<usize> {
        let rest = (self.batch..x.len()).filter(|axis| !self.axes.contains(axis)).map(|axis| x[axis]);
        indices[..indices.len() - 1].iter().copied().chain(rest).collect()
    }

    /// Where the element of the result at `index` comes from.
    fn source(&self, x: &[usize], indices: &Array, index: &[usize]) -> Option<Vec<usize>> {
        let tuple = indices.dims.len() - 1;
        let mut at = vec![0; x.len()];
        at[..self.batch].copy_from_slice(&index[..self.batch]);
        for (k, axis) in self.axes.iter().enumerate() {
            let which: Vec<usize> = index[..tuple].iter().copied().chain([k]).collect();
            at[*axis] = position(indices.at(&which), x[*axis], self.wrap, self.outside)?;
        }
        let rest = (self.batch..x.len()).filter(|axis| !self.axes.contains(axis));
        rest.zip(&index[tuple..]).for_each(|(axis, i)| at[axis] = *i);
        Some(at)
    }

    fn gather(&self, x: &[Array]) -> Array {
        let fill = x.get(2).map_or(f64::NAN, |fill| fill.data[0]);
        Array::from_fn(self.sizes(&x[0].dims, &x[1].dims), |index| {
            self.source(&x[0].dims, &x[1], index).map_or(fill, |at| x[0].at(&at))
        })
    }

    pub(super) fn scatter(&self, x: &[Array], combine: fn(f64, f64) -> f64) -> Array {
        let mut result = x[0].clone();
        for_each_index(&x[2].dims, |index| {
            if let Some(at) = self.source(&x[0].dims, &x[1], index) {
                let offset = result.offset(&at);
                result.data[offset] = combine(result.data[offset], x[2].at(index));
            }
        });
        result
    }
}

/// Name, attributes, sizes of x and of the indices.
pub(super) fn layouts(outside: Outside) -> Vec<(&'static str, Gather, Vec<usize>, Vec<usize>)> {
    let gather = |axes, batch| Gather { axes, batch, wrap: outside != Outside::Drop, outside };
    vec![
        ("rows", gather(&[0], 0), vec![5, 3], vec![4, 1]),
        ("columns", gather(&[1], 0), vec![3, 5], vec![2, 2, 1]),
        ("elements", gather(&[0, 1], 0), vec![4, 5], vec![6, 2]),
        ("first_and_last_axis", gather(&[0, 2], 0), vec![4, 2, 5], vec![3, 2]),
        ("batch", gather(&[1], 1), vec![3, 5, 2], vec![3, 4, 1]),
        ("batch_of_two_axes", gather(&[2, 3], 2), vec![2, 3, 4, 5], vec![2, 3, 2, 2]),
        ("one", gather(&[0], 0), vec![5, 3], vec![1]),
        ("no_axes", gather(&[], 0), vec![2, 3], vec![2, 0]),
    ]
}

/// Draws indices of the axes' range, or beyond it where that is allowed.
pub(super) fn indexed(case: Case, gather: Gather, x: &[usize]) -> Case {
    let least = gather.axes.iter().map(|axis| x[*axis]).min().unwrap_or(1) as i64;
    let low = if gather.wrap { -least } else { 0 };
    case.random_input(match gather.outside {
        Outside::Inside => Domain::Whole(low, least - 1),
        _ => Domain::Whole(-least - 3, least + 3),
    })
}

/// Cases of `gather`.
pub(super) fn gather() -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, outside) in [("inside", Outside::Inside), ("clamp", Outside::Clamp), ("drop", Outside::Drop)] {
        for (name, gather, x, indices) in layouts(outside) {
            let dtypes = if name == "rows" { ALL } else { &[DType::F32, DType::I64] };
            for index in ["i64", "i32"] {
                cases.extend(for_dtypes(dtypes, |dtype| {
                    let fill = if outside == Outside::Drop { format!(", {dtype}[]") } else { String::new() };
                    let case = op_case(
                        "gather",
                        &format!("{name}_{kind}_{index}"),
                        &gather.attributes(),
                        &format!("{dtype}{x:?}, {index}{indices:?}{fill}"),
                    )
                    .random_input(Domain::Range(0.0, 50.0));
                    indexed(case, gather, &x).random(Domain::Constant(1.0)).formula(move |x| gather.gather(x))
                }));
            }
        }
    }
    let rows = "axes=[0], batch=0, oob=error, wrap=true";
    let strict = "axes=[0], batch=0, oob=error, wrap=false";
    cases.extend([
        op_case("gather", "symbolic", rows, "f32[n, 3], i64[k, 1]")
            .sizes([("n", 4), ("k", 6)])
            .random_input(Domain::Normal)
            .random_input(Domain::Whole(0, 3))
            .formula(|x| layouts(Outside::Inside)[0].1.gather(x)),
        op_case("gather", "no_indices", rows, "f32[4, 3], i64[0, 1]")
            .random(Domain::Normal)
            .formula(|_| Array::new([0, 3], [])),
        case(
            "gather",
            "rows_of_a_transpose",
            "(%x: f32[17, 40], %i: i64[5, 1]) {
            %t = transpose<perm=[1, 0]>(%x)
            %a = gather<axes=[0], batch=0, oob=error, wrap=false>(%t, %i)
            %b = gather<axes=[1], batch=0, oob=error, wrap=false>(%t, %i)
            return \"a\" = %a, \"b\" = %b
        }",
        )
        .random_input(Domain::Normal)
        .input(i64s([5, 1], [16, 0, 3, 3, 9]))
        .formulas(|x| {
            let at = |k: usize| x[1].data[k] as usize;
            vec![
                Array::from_fn([5, 17], |i| x[0].at(&[i[1], at(i[0])])),
                Array::from_fn([5, 40], |i| x[0].at(&[at(i[0]), i[1]])),
            ]
        }),
        op_case("gather", "beyond_the_end", rows, "f32[3], i64[1, 1]")
            .inputs([f32s([3], [1.0, 2.0, 3.0]), i64s([1, 1], [3])])
            .fails(Stage::Run, "index 3 is out of range"),
        op_case("gather", "beyond_the_start", rows, "f32[3], i64[1, 1]")
            .inputs([f32s([3], [1.0, 2.0, 3.0]), i64s([1, 1], [-4])])
            .fails(Stage::Run, "out of range"),
        op_case("gather", "negative_without_wrap", strict, "f32[3], i64[1, 1]")
            .inputs([f32s([3], [1.0, 2.0, 3.0]), i64s([1, 1], [-1])])
            .fails(Stage::Run, "index -1 is out of range"),
        op_case("gather", "index_beyond_32_bits", strict, "f32[3], i64[1, 1]")
            .inputs([f32s([3], [1.0, 2.0, 3.0]), i64s([1, 1], [1 << 32])])
            .fails(Stage::Run, "out of range"),
        op_case("gather", "from_nothing", strict, "f32[0], i64[1, 1]")
            .inputs([f32s([0], []), i64s([1, 1], [0])])
            .fails(Stage::Run, "out of range"),
        op_case("gather", "float_indices", rows, "f32[3], f32[1, 1]").fails_build("C1"),
        op_case(
            "gather",
            "axis_out_of_range",
            "axes=[1], batch=0, oob=error, wrap=false",
            "f32[3], i64[1, 1]",
        )
        .fails_build("C2"),
        op_case(
            "gather",
            "axis_inside_the_batch",
            "axes=[0], batch=1, oob=error, wrap=false",
            "f32[3, 2], i64[3, 1]",
        )
        .fails_build("C2"),
        op_case("gather", "tuples_too_long", rows, "f32[3], i64[1, 2]").fails_build("C3"),
        op_case(
            "gather",
            "batch_sizes_differ",
            "axes=[1], batch=1, oob=error, wrap=false",
            "f32[3, 2], i64[2, 1]",
        )
        .fails_build("C4"),
        op_case(
            "gather",
            "fill_with_an_axis",
            "axes=[0], batch=0, oob=drop, wrap=false",
            "f32[3], i64[1, 1], f32[1]",
        )
        .fails_build("C5"),
        op_case(
            "gather",
            "fill_of_another_type",
            "axes=[0], batch=0, oob=drop, wrap=false",
            "f32[3], i64[1, 1], f16[]",
        )
        .fails_build("C5"),
        op_case("gather", "fill_that_nothing_asks_for", rows, "f32[3], i64[1, 1], f32[]").fails_build("C0"),
        op_case(
            "gather",
            "inside_rows_of_blocks",
            "axes=[1], batch=0, oob=error, wrap=false",
            "q8_0[5, 64], i64[1, 1]",
        )
        .fails_build("CB"),
    ]);
    cases.push(of_quantised_rows());
    cases
}

/// Rows of a block-quantised table move whole: an embedding that is dequantised after the look-up. Element e of row r is
/// r/2 · (e − 31): the scale of its block times its code.
fn of_quantised_rows() -> Case {
    const FORMAT: BlockFormat = BlockFormat::Q8_0;
    const WIDTH: usize = 2 * FORMAT.block_len();
    let table = |rows: &[u8]| {
        let mut bytes = Vec::new();
        for row in rows {
            for first in [0, FORMAT.block_len()] {
                bytes.extend_from_slice(literal(DType::F16, [], [f64::from(*row) / 2.0]).bytes());
                bytes.extend((first..first + FORMAT.block_len()).map(|e| (e as i8 - 31) as u8));
            }
        }
        Literal::new(DType::Block(FORMAT), [rows.len(), WIDTH], bytes).expect("whole blocks")
    };
    let picked = [3, 0, 4, 3];
    let numbers = Array::from_fn([4, WIDTH], |i| f64::from(picked[i[0]]) / 2.0 * (i[1] as f64 - 31.0));
    case(
        "gather",
        "of_quantised_rows",
        "(%x: q8_0[n, 64], %i: i64[k, 1]) {
            %rows = gather<axes=[0], batch=0, oob=error, wrap=true>(%x, %i)
            %y = dequantise<to=f32>(%rows)
            return \"rows\" = %rows, \"y\" = %y
        }",
    )
    .inputs([table(&[0, 1, 2, 3, 4]), i64s([4, 1], [3, 0, -1, 3])])
    .values([table(&picked), numbers.to_literal(DType::F32)])
}

/// Cases of `gather_along`.
pub(super) fn gather_along() -> Vec<Case> {
    let along = |axis: usize, wrap: bool, outside: Outside| {
        move |x: &[Array]| {
            let fill = x.get(2).map_or(f64::NAN, |fill| fill.data[0]);
            Array::from_fn(x[1].dims.clone(), |index| {
                let mut at = index.to_vec();
                position(x[1].at(index), x[0].dims[axis], wrap, outside).map_or(fill, |i| {
                    at[axis] = i;
                    x[0].at(&at)
                })
            })
        }
    };
    let mut cases = Vec::new();
    for axis in 0..2 {
        let attributes = |oob: &str, wrap: bool| format!("axis={axis}, oob={oob}, wrap={wrap}");
        cases.extend(for_dtypes(ALL, |dtype| {
            op_case(
                "gather_along",
                &format!("wrap_axis_{axis}"),
                &attributes("error", true),
                &format!("{dtype}[4, 6], i64[3, 5]"),
            )
            .random_input(Domain::Range(0.0, 50.0))
            .random_input(Domain::Whole(-4, 3))
            .formula(along(axis, true, Outside::Inside))
        }));
        cases.extend(for_dtypes(&[DType::F32, DType::I32], |dtype| {
            op_case(
                "gather_along",
                &format!("clamp_axis_{axis}"),
                &attributes("clamp", false),
                &format!("{dtype}[4, 6], i32[4, 6]"),
            )
            .random_input(Domain::Range(0.0, 50.0))
            .random_input(Domain::Whole(-9, 9))
            .formula(along(axis, false, Outside::Clamp))
        }));
        cases.extend(for_dtypes(&[DType::F32, DType::I32], |dtype| {
            op_case(
                "gather_along",
                &format!("drop_axis_{axis}"),
                &attributes("drop", true),
                &format!("{dtype}[4, 6], i32[4, 6], {dtype}[]"),
            )
            .random_input(Domain::Range(0.0, 50.0))
            .random_input(Domain::Whole(-9, 9))
            .random(Domain::Constant(7.0))
            .formula(along(axis, true, Outside::Drop))
        }));
    }
    cases.extend([
        case(
            "gather_along",
            "of_a_transpose",
            "(%x: f32[4, 6], %i: i64[2, 4]) {
            %t = transpose<perm=[1, 0]>(%x)
            %y = gather_along<axis=0, oob=error, wrap=false>(%t, %i)
            return \"y\" = %y
        }",
        )
        .random_input(Domain::Normal)
        .random_input(Domain::Whole(0, 5))
        .formula(|x| Array::from_fn([2, 4], |i| x[0].at(&[i[1], x[1].at(i) as usize]))),
        op_case(
            "gather_along",
            "more_indices_than_elements_along_the_axis",
            "axis=0, oob=error, wrap=false",
            "f32[2], i64[5]",
        )
        .random_input(Domain::Normal)
        .random_input(Domain::Whole(0, 1))
        .formula(along(0, false, Outside::Inside)),
        op_case("gather_along", "outside", "axis=0, oob=error, wrap=true", "f32[2], i64[1]")
            .inputs([f32s([2], [1.0, 2.0]), i64s([1], [2])])
            .fails(Stage::Run, "index 2 is out of range"),
        op_case("gather_along", "float_indices", "axis=0, oob=error, wrap=true", "f32[2], f32[1]")
            .fails_build("C1"),
        op_case("gather_along", "bad_axis", "axis=1, oob=error, wrap=true", "f32[2], i64[1]")
            .fails_build("C2"),
        op_case("gather_along", "ranks_differ", "axis=0, oob=error, wrap=true", "f32[2, 3], i64[1]")
            .fails_build("C3"),
        op_case(
            "gather_along",
            "indices_larger_than_x",
            "axis=0, oob=error, wrap=true",
            "f32[2, 3], i64[1, 4]",
        )
        .fails_build("C3"),
        op_case(
            "gather_along",
            "fill_of_another_type",
            "axis=0, oob=drop, wrap=true",
            "f32[2], i64[1], i32[]",
        )
        .fails_build("C5"),
    ]);
    cases
}

/// Cases of `nonzero`.
pub(super) fn nonzero() -> Vec<Case> {
    let found = |x: &[Array]| {
        let mut indices = Vec::new();
        for_each_index(&x[0].dims, |index| {
            if x[0].at(index) != 0.0 {
                indices.push(index.to_vec());
            }
        });
        Array::from_fn([x[0].dims.len(), indices.len()], |i| indices[i[1]][i[0]] as f64)
    };
    let mut cases = for_dtypes(ALL, |dtype| {
        op_case("nonzero", "some", "count=k", &format!("{dtype}[3, n]"))
            .sizes([("n", 5)])
            .random(Domain::Whole(0, 1))
            .formula(found)
    });
    cases.extend([
        op_case("nonzero", "special", "count=k", "f32[4, 6]")
            .random(Domain::Whole(0, 1).special())
            .formula(found),
        op_case("nonzero", "none", "count=k", "f32[4]")
            .random(Domain::Constant(0.0))
            .formula(|_| Array::new([1, 0], [])),
        op_case("nonzero", "of_nothing", "count=k", "f32[0, 3]")
            .random(Domain::Normal)
            .formula(|_| Array::new([2, 0], [])),
        op_case("nonzero", "scalar", "count=k", "f32[]")
            .random(Domain::Constant(2.0))
            .formula(|_| Array::new([0, 1], [])),
        op_case("nonzero", "complex", "count=k", "c64[3]")
            .input(literal(DType::C64, [3, 2], [0.0, 1.0, 0.0, 0.0, -2.0, 0.0]))
            .values([i64s([1, 2], [0, 2])]),
        // The count is a size: what follows is as long as what was found.
        case(
            "nonzero",
            "gather_of_what_was_found",
            "(%x: f32[n]) {
            %i = nonzero<count=k>(%x)
            %t = transpose<perm=[1, 0]>(%i)
            %y = gather<axes=[0], batch=0, oob=error, wrap=false>(%x, %t)
            %c = dim_value<dim=k>()
            return \"y\" = %y, \"count\" = %c
        }",
        )
        .input(f32s([5], [0.0, 3.0, 0.0, -1.0, 2.0]))
        .values([f32s([3], [3.0, -1.0, 2.0]), i64s([], [3])]),
        op_case("nonzero", "blocks", "count=k", "q4_0[32]").fails_build("C1"),
    ]);
    cases
}

/// Cases of `non_max_suppression`.
pub(super) fn non_max_suppression() -> Vec<Case> {
    let op = |name: &str, attributes: &str, operands: &str| {
        op_case("non_max_suppression", name, attributes, operands)
    };
    let types = "f32[1, 3, 4], f32[1, 2, 3], i64[], f32[], f32[]";
    let boxes = f32s([1, 3, 4], [0.0, 0.0, 1.0, 1.0, 0.0, 0.1, 1.0, 1.1, 0.0, 10.0, 1.0, 11.0]);
    let scores = f32s([1, 2, 3], [0.9, 0.75, 0.6, 0.1, 0.9, 0.3]);
    let run = |name: &str, most: i64, overlap: f32, least: f32, chosen: &[i64]| {
        op(name, "count=k", types)
            .inputs([boxes.clone(), scores.clone(), i64s([], [most]), f32s([], [overlap]), f32s([], [least])])
            .values([i64s([chosen.len() / 3, 3], chosen)])
            .without_views()
    };
    let mut cases = vec![
        run("two_classes", 3, 0.5, 0.0, &[0, 0, 0, 0, 0, 2, 0, 1, 1, 0, 1, 2]),
        run("at_most_one", 1, 0.5, 0.0, &[0, 0, 0, 0, 1, 1]),
        run("none", 0, 0.5, 0.0, &[]),
        run("negative_limit", -1, 0.5, 0.0, &[]),
        run("score_must_exceed", 3, 0.5, 0.75, &[0, 0, 0, 0, 1, 1]),
        run("all_overlaps_allowed", 3, 1.0, 0.2, &[0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 1, 1, 0, 1, 2]),
        op("no_boxes", "count=k", "f32[1, 0, 4], f32[1, 2, 0], i64[], f32[], f32[]")
            .inputs([
                f32s([1, 0, 4], []),
                f32s([1, 2, 0], []),
                i64s([], [3]),
                f32s([], [0.5]),
                f32s([], [0.0]),
            ])
            .values([i64s([0, 3], [])]),
    ];
    cases.extend([
        op("integer_boxes", "count=k", "i32[1, 3, 4], f32[1, 2, 3], i64[], f32[], f32[]").fails_build("C1"),
        op("scores_of_another_type", "count=k", "f32[1, 3, 4], f64[1, 2, 3], i64[], f32[], f32[]")
            .fails_build("C1"),
        op("ranks", "count=k", "f32[3, 4], f32[1, 2, 3], i64[], f32[], f32[]").fails_build("C2"),
        op("numbers_of_boxes_differ", "count=k", "f32[1, 3, 4], f32[1, 2, 4], i64[], f32[], f32[]")
            .fails_build("C3"),
        op("boxes_of_five", "count=k", "f32[1, 3, 5], f32[1, 2, 3], i64[], f32[], f32[]").fails_build("C3"),
        op("limit_with_an_axis", "count=k", "f32[1, 3, 4], f32[1, 2, 3], i64[1], f32[], f32[]")
            .fails_build("C4"),
        op("limit_of_another_type", "count=k", "f32[1, 3, 4], f32[1, 2, 3], i32[], f32[], f32[]")
            .fails_build("C4"),
    ]);
    cases.extend(golden(include_str!("../../golden/index.case"), "non_max_suppression"));
    cases
}
