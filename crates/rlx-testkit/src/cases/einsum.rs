//! Cases of Einstein summation. Recorded ones by numpy in f64.

use crate::case::{Case, FLOATS, Stage, f32s, for_dtypes, op_case};
use crate::golden::{golden, symbolic_golden};
use crate::random::Domain;

const RECORDED: &str = include_str!("../../golden/einsum.case");

pub(super) fn einsum() -> Vec<Case> {
    let mut cases = [golden(RECORDED, "einsum"), symbolic_golden(RECORDED, "einsum")].concat();
    cases.extend(for_dtypes(FLOATS, |dtype| {
        op_case("einsum", "product", "equation=\"ij,ij->i\"", &format!("{dtype}[2, n], {dtype}[2, n]"))
            .sizes([("n", 17)])
            .random(Domain::Normal)
            .formula(|x| x[0].zip(&x[1], |a, b| a * b).map_rows(1, |r| vec![r.iter().sum()]).reshape([2]))
            .summed(17)
    }));
    let wrong = |name: &str, equation: &str, operands: &str, label: &str| {
        op_case("einsum", name, &format!("equation=\"{equation}\""), operands).fails_build(label)
    };
    cases.extend([
        wrong("types", "i,i->", "f32[3], f16[3]", "C1"),
        wrong("sign", "i?->i", "f32[3]", "C2"),
        wrong("terms", "i,i->", "f32[3]", "C2"),
        wrong("unknown_label", "i->j", "f32[3]", "C2"),
        wrong("label_twice", "i->ii", "f32[3]", "C2"),
        wrong("two_ellipses", "......->", "f32[3]", "C2"),
        wrong("rank", "ij->i", "f32[3]", "C3"),
        wrong("rank_with_ellipsis", "...ij->i", "f32[3]", "C3"),
        wrong("sizes", "i,i->", "f32[3], f32[4]", "C4"),
        wrong("diagonal", "ii->", "f32[3, 4]", "C4"),
        op_case("einsum", "sizes_late", "equation=\"i,i->\"", "f32[n], f32[m]")
            .inputs([f32s([3], [0.0; 3]), f32s([4], [0.0; 4])])
            .fails(Stage::Run, "do not broadcast"),
    ]);
    cases
}
