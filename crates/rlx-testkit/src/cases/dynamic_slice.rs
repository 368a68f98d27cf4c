//! Cases of blocks whose place is known when they are reached: dynamic slices and updates.

use super::index::ALL;
use crate::Array;
use crate::case::{Case, Stage, for_dtypes, i32s, i64s, op_case};
use crate::random::Domain;

/// The first index of a block, moved inside.
fn clamped_start(starts: &Array, x: &[usize], block: &[usize]) -> Vec<usize> {
    (0..x.len())
        .map(|axis| (starts.data[axis] as i64).clamp(0, (x[axis] - block[axis]) as i64) as usize)
        .collect()
}

/// Cases of `dynamic_slice`.
pub(super) fn dynamic_slice() -> Vec<Case> {
    let sliced = |sizes: &'static [usize]| {
        move |x: &[Array]| {
            let start = clamped_start(&x[1], &x[0].dims, sizes);
            Array::from_fn(sizes, |index| {
                x[0].at(&index.iter().zip(&start).map(|(i, s)| i + s).collect::<Vec<_>>())
            })
        }
    };
    let mut cases = for_dtypes(ALL, |dtype| {
        op_case("dynamic_slice", "inside", "sizes=[2, 3], oob=error", &format!("{dtype}[5, 7], i64[2]"))
            .random_input(Domain::Range(0.0, 50.0))
            .input(i64s([2], [3, 1]))
            .formula(sliced(&[2, 3]))
    });
    for (name, start) in [("before", [-5, -1]), ("behind", [9, 100]), ("partly", [4, 2])] {
        cases.push(
            op_case(
                "dynamic_slice",
                &format!("clamp_{name}"),
                "sizes=[2, 3], oob=clamp",
                "f32[5, 7], i64[2]",
            )
            .random_input(Domain::Normal)
            .input(i64s([2], start))
            .formula(sliced(&[2, 3])),
        );
        cases.push(
            op_case(
                "dynamic_slice",
                &format!("error_{name}"),
                "sizes=[2, 3], oob=error",
                "f32[5, 7], i64[2]",
            )
            .random_input(Domain::Normal)
            .input(i64s([2], start))
            .fails(Stage::Run, "out of range"),
        );
    }
    cases.extend([
        op_case("dynamic_slice", "i32_starts", "sizes=[1], oob=error", "f32[4], i32[1]")
            .random_input(Domain::Normal)
            .input(i32s([1], [3]))
            .formula(sliced(&[1])),
        op_case("dynamic_slice", "whole", "sizes=[n], oob=error", "f32[n], i64[1]")
            .sizes([("n", 4)])
            .random_input(Domain::Normal)
            .input(i64s([1], [0]))
            .formula(|x| x[0].clone()),
        op_case("dynamic_slice", "scalar", "sizes=[], oob=error", "f32[], i64[0]")
            .random(Domain::Normal)
            .formula(|x| x[0].clone()),
        op_case("dynamic_slice", "float_starts", "sizes=[1], oob=error", "f32[4], f32[1]").fails_build("C1"),
        op_case("dynamic_slice", "block_larger_than_x", "sizes=[5], oob=error", "f32[4], i64[1]")
            .fails_build("C2"),
        op_case("dynamic_slice", "too_few_sizes", "sizes=[1], oob=error", "f32[4, 4], i64[2]")
            .fails_build("C2"),
        op_case("dynamic_slice", "too_few_starts", "sizes=[1, 1], oob=error", "f32[4, 4], i64[1]")
            .fails_build("C3"),
        op_case("dynamic_slice", "drop", "sizes=[1], oob=drop", "f32[4], i64[1]").fails_build("C4"),
    ]);
    cases
}

/// Cases of `dynamic_update`.
pub(super) fn dynamic_update() -> Vec<Case> {
    let updated = |x: &[Array]| {
        let start = clamped_start(&x[2], &x[0].dims, &x[1].dims);
        Array::from_fn(x[0].dims.clone(), |index| {
            let inside: Option<Vec<usize>> = index
                .iter()
                .zip(&start)
                .zip(&x[1].dims)
                .map(|((i, s), n)| i.checked_sub(*s).filter(|i| i < n))
                .collect();
            inside.map_or(x[0].at(index), |at| x[1].at(&at))
        })
    };
    let mut cases = for_dtypes(ALL, |dtype| {
        op_case("dynamic_update", "inside", "oob=error", &format!("{dtype}[5, 7], {dtype}[2, 3], i64[2]"))
            .random_input(Domain::Range(0.0, 50.0))
            .random_input(Domain::Range(50.0, 90.0))
            .input(i64s([2], [3, 1]))
            .formula(updated)
    });
    for (name, start) in [("before", [-5, -1]), ("behind", [9, 100])] {
        cases.push(
            op_case("dynamic_update", &format!("clamp_{name}"), "oob=clamp", "f32[5, 7], f32[2, 3], i64[2]")
                .random_input(Domain::Normal)
                .random_input(Domain::Normal)
                .input(i64s([2], start))
                .formula(updated),
        );
        cases.push(
            op_case("dynamic_update", &format!("error_{name}"), "oob=error", "f32[5, 7], f32[2, 3], i64[2]")
                .random_input(Domain::Normal)
                .random_input(Domain::Normal)
                .input(i64s([2], start))
                .fails(Stage::Run, "out of range"),
        );
    }
    cases.extend([
        op_case("dynamic_update", "symbolic_append", "oob=error", "f32[n, 2], f32[k, 2], i64[2]")
            .sizes([("n", 6), ("k", 2)])
            .random_input(Domain::Normal)
            .random_input(Domain::Normal)
            .input(i64s([2], [4, 0]))
            .formula(updated),
        op_case("dynamic_update", "empty_block", "oob=error", "f32[3], f32[0], i64[1]")
            .random_input(Domain::Normal)
            .random_input(Domain::Normal)
            .input(i64s([1], [3]))
            .formula(|x| x[0].clone()),
        op_case("dynamic_update", "float_starts", "oob=error", "f32[4], f32[1], f32[1]").fails_build("C1"),
        op_case("dynamic_update", "block_of_another_type", "oob=error", "f32[4], f16[1], i64[1]")
            .fails_build("C2"),
        op_case("dynamic_update", "block_larger_than_x", "oob=error", "f32[4], f32[5], i64[1]")
            .fails_build("C2"),
        op_case("dynamic_update", "too_few_starts", "oob=error", "f32[4, 4], f32[1, 1], i64[1]")
            .fails_build("C3"),
        op_case("dynamic_update", "drop", "oob=drop", "f32[4], f32[1], i64[1]").fails_build("C4"),
    ]);
    cases
}
