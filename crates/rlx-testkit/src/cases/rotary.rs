//! Cases of rotary embedding: ONNX's reference implementation with tables, a formula by complex numbers from positions.

use crate::array::Array;
use crate::case::{Case, FLOATS, for_dtypes, i32s, i64s, op_case};
use crate::golden::golden;
use crate::random::Domain;

const GOLDEN: &str = include_str!("../../golden/sequence.case");

/// Cases of `rotary_embedding`.
pub(super) fn rotary_embedding() -> Vec<Case> {
    let mut cases = golden(GOLDEN, "rotary_embedding");
    let wrong = |name: &str, attributes: &str, operands: &str, label: &str| {
        op_case("rotary_embedding", name, attributes, operands).fails_build(label)
    };
    cases.extend([
        op_case("rotary_embedding", "tables_of_tokens_symbolic", "", "f16[b, h, n, 6], f32[n, 2], f32[n, 2]")
            .sizes([("b", 2), ("h", 3), ("n", 4)])
            .random(Domain::Range(-1.0, 1.0))
            .formula(|inputs| {
                let [x, cos, sin] = [&inputs[0], &inputs[1], &inputs[2]];
                Array::from_fn(x.dims.clone(), |at| {
                    let (token, pair) = (at[2], at[3] % 2);
                    let of = |part: usize| x.at(&[at[0], at[1], token, pair + 2 * part]);
                    let (c, s) = (cos.at(&[token, pair]), sin.at(&[token, pair]));
                    match at[3] {
                        0 | 1 => of(0) * c - of(1) * s,
                        2 | 3 => of(0) * s + of(1) * c,
                        _ => x.at(at),
                    }
                })
            })
            .accumulated(4),
        op_case("rotary_embedding", "nothing_turned", "", "f32[1, 2, 3, 4], f32[3, 0], f32[3, 0]")
            .random(Domain::Normal)
            .formula(|inputs| inputs[0].clone()),
        wrong("integers", "", "i32[1, 1, 1, 2], i32[1, 1], i32[1, 1]", "C1"),
        wrong("three_axes", "", "f32[1, 1, 2], f32[1, 1], f32[1, 1]", "C2"),
        wrong("table_of_other_tokens", "", "f32[1, 1, 2, 2], f32[3, 1], f32[3, 1]", "C3"),
        wrong("sines_of_other_sizes", "", "f32[1, 1, 2, 4], f32[2, 2], f32[2, 1]", "C3"),
        wrong(
            "positions_of_floats",
            "by_position=true",
            "f32[1, 1, 2, 2], f32[3, 1], f32[3, 1], f32[1, 2]",
            "C3",
        ),
        wrong("wider_than_the_row", "", "f32[1, 1, 2, 2], f32[2, 2], f32[2, 2]", "C4"),
    ]);
    cases
}

/// A rotary embedding with these parameters: the pair as a complex number times a number of modulus `magnitude`.
#[derive(Clone, Copy)]
struct Turn {
    theta: f64,
    turned: usize,
    interleaved: bool,
    magnitude: f64,
}

impl Turn {
    /// Row by row; `position` gives a token's position.
    fn of(self, x: &Array, position: impl Fn(usize, usize) -> f64, factors: Option<&Array>) -> Array {
        let half = self.turned / 2;
        Array::from_fn(x.dims.clone(), |at| {
            if at[3] >= self.turned {
                return x.at(at);
            }
            let (pair, second) =
                if self.interleaved { (at[3] / 2, at[3] % 2 == 1) } else { (at[3] % half, at[3] >= half) };
            let columns = if self.interleaved { [2 * pair, 2 * pair + 1] } else { [pair, pair + half] };
            let [a, b] = columns.map(|column| x.at(&[at[0], at[1], at[2], column]));
            let frequency = self.theta.powf(-2.0 * pair as f64 / self.turned as f64);
            let angle = position(at[0], at[2]) * frequency / factors.map_or(1.0, |f| f.data[pair]);
            let (sin, cos) = angle.sin_cos();
            self.magnitude * if second { a * sin + b * cos } else { a * cos - b * sin }
        })
    }
}

/// Cases of `rotary_from_positions`.
pub(super) fn rotary_from_positions() -> Vec<Case> {
    let op = "rotary_from_positions";
    let plain = Turn { theta: 10000.0, turned: 8, interleaved: false, magnitude: 1.0 };
    let mut cases = for_dtypes(FLOATS, |dtype| {
        op_case(op, "halves", "theta=10000.0", &format!("{dtype}[2, 2, 3, 8], i64[2, 3]"))
            .random_input(Domain::Normal)
            .input(i64s([2, 3], [0, 1, 2, 9, 40, 3]))
            .formula(move |inputs| plain.of(&inputs[0], |b, t| inputs[1].at(&[b, t]), None))
            // The angles themselves are rounded to f32, and grow to 40.
            .accumulated(64)
    });
    let part = Turn { theta: 500.0, turned: 4, interleaved: true, magnitude: 1.25 };
    cases.extend([
        op_case(
            op,
            "neighbours_in_part_with_factors",
            "theta=500.0, n_rot=4, interleaved=true, factors=true, magnitude=1.25",
            "f32[b, h, n, 6], i32[n], f32[2]",
        )
        .sizes([("b", 2), ("h", 1), ("n", 3)])
        .random_input(Domain::Normal)
        .input(i32s([3], [5, 0, 7]))
        .random_input(Domain::Range(1.0, 4.0))
        .formula(move |inputs| part.of(&inputs[0], |_, t| inputs[1].data[t], Some(&inputs[2])))
        .accumulated(32),
        op_case(op, "width_symbolic", "theta=10000.0", "f32[1, 1, 2, w], i64[2]")
            .sizes([("w", 8)])
            .random_input(Domain::Normal)
            .input(i64s([2], [3, 4]))
            .formula(move |inputs| plain.of(&inputs[0], |_, t| inputs[1].data[t], None))
            .accumulated(32),
        op_case(op, "integers", "theta=10000.0", "i32[1, 1, 1, 2], i64[1]").fails_build("C1"),
        op_case(op, "three_axes", "theta=10000.0", "f32[1, 1, 2], i64[1]").fails_build("C2"),
        op_case(op, "positions_of_floats", "theta=10000.0", "f32[1, 1, 1, 2], f32[1]").fails_build("C3"),
        op_case(op, "positions_of_other_tokens", "theta=10000.0", "f32[1, 1, 2, 2], i64[1]")
            .fails_build("C3"),
        op_case(op, "odd_width", "theta=10000.0", "f32[1, 1, 2, 3], i64[2]").fails_build("C4"),
        op_case(op, "wider_than_the_row", "theta=10000.0, n_rot=4", "f32[1, 1, 2, 2], i64[2]")
            .fails_build("C4"),
        op_case(
            op,
            "factors_of_another_width",
            "theta=10000.0, factors=true",
            "f32[1, 1, 2, 4], i64[2], f32[4]",
        )
        .fails_build("C5"),
        op_case(op, "theta_zero", "theta=0.0", "f32[1, 1, 2, 4], i64[2]").fails_build("C6"),
    ]);
    cases
}
