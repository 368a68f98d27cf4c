//! Cases of the sampling operations. The random words come from the generator itself, which outside references judge;
//! what is made of them is judged here, by formulas and by the shape of many draws.

use crate::array::Array;
use crate::case::{Case, Cost, FLOATS, bools, case, f32s, for_dtypes, op_case};
use crate::random::Domain;
use crate::tolerance::Tolerance;
use rlx_eval::numeric::philox::{box_muller, random_bits, uniform};
use rlx_ir::{DType, Literal};

const SEED: u64 = 42;
const STREAM: u64 = 7;
const COUNTER: u64 = 5;

fn key() -> Literal {
    Literal::vector(&[SEED, STREAM])
}

fn counter() -> Literal {
    Literal::scalar(COUNTER)
}

fn words(count: usize) -> Vec<u32> {
    random_bits([SEED, STREAM], COUNTER, count)
}

/// The errors of a missing or wrong key and counter, for operands that come before them.
fn wrong_keys(op: &str, attributes: &str, before: &str) -> [Case; 5] {
    [
        op_case(op, "no_counter", attributes, &format!("{before}u64[2]")).fails_build("C0"),
        op_case(op, "signed_key", attributes, &format!("{before}i64[2], u64[]")).fails_build("C1"),
        op_case(op, "signed_counter", attributes, &format!("{before}u64[2], i64[]")).fails_build("C1"),
        op_case(op, "short_key", attributes, &format!("{before}u64[1], u64[]")).fails_build("C2"),
        op_case(op, "counter_with_axis", attributes, &format!("{before}u64[2], u64[1]")).fails_build("C2"),
    ]
}

/// Cases of `random_uniform`.
pub(super) fn random_uniform() -> Vec<Case> {
    let mut cases = for_dtypes(FLOATS, |dtype| {
        op_case("random_uniform", "range", &format!("ty={dtype}[3, 5], low=-1.0, high=3.0"), "u64[2], u64[]")
            .inputs([key(), counter()])
            .formula(|_| {
                Array::new([3, 5], words(15).into_iter().map(|w| 4.0 * uniform(w) - 1.0).collect::<Vec<_>>())
            })
            .accumulated(2)
    });
    cases.push(
        op_case("random_uniform", "nothing", "ty=f32[0], low=0.0, high=1.0", "u64[2], u64[]")
            .inputs([key(), counter()])
            .values([f32s([0], [])]),
    );
    cases.extend(wrong_keys("random_uniform", "ty=f32[3], low=0.0, high=1.0", ""));
    cases.push(
        op_case("random_uniform", "integers", "ty=i32[3], low=0.0, high=1.0", "u64[2], u64[]")
            .fails_build("C3"),
    );
    cases
}

/// Cases of `random_normal`.
pub(super) fn random_normal() -> Vec<Case> {
    let mut cases = Vec::new();
    for n in [1, 2, 7, 8] {
        cases.extend(for_dtypes(&[DType::F32, DType::F16, DType::BF16], |dtype| {
            op_case(
                "random_normal",
                &format!("size_{n}"),
                &format!("ty={dtype}[{n}], mean=0.5, deviation=2.0"),
                "u64[2], u64[]",
            )
            .inputs([key(), counter()])
            .formula(move |_| {
                let pairs =
                    words(n + n % 2).chunks(2).flat_map(|w| box_muller([w[0], w[1]])).collect::<Vec<_>>();
                Array::new([n], pairs[..n].iter().map(|z| 2.0 * z + 0.5).collect::<Vec<_>>())
            })
            .within(Tolerance::Accumulated { terms: 8, magnitude: crate::tolerance::Magnitude::Fixed(8.0) })
        }));
    }
    cases.push(
        op_case(
            "random_normal",
            "moments_of_many",
            "ty=f32[100, 101], mean=1.0, deviation=3.0",
            "u64[2], u64[]",
        )
        .inputs([key(), counter()])
        .property(|_, y| {
            let n = y[0].data.len() as f64;
            let mean = y[0].data.iter().sum::<f64>() / n;
            let variance = y[0].data.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            // Five standard errors of each.
            let fine =
                (mean - 1.0).abs() < 15.0 / n.sqrt() && (variance / 9.0 - 1.0).abs() < 5.0 * (2.0 / n).sqrt();
            if fine { Ok(()) } else { Err(format!("mean {mean}, variance {variance}")) }
        })
        .cost(Cost::Medium)
        .within(Tolerance::Within { absolute: 1e-4, relative: 0.0 }),
    );
    let noise = "(%x: f32[n], %key: u64[2], %counter: u64[]) {
        %z = random_normal<ty=f32[n], mean=0.0, deviation=1.0>(%key, %counter)
        %y = add(%x, %z)
        return \"y\" = %y
    }";
    cases.push(
        case("random_normal", "symbolic_odd_size", noise)
            .inputs([f32s([3], [0.0; 3]), key(), counter()])
            .formula(|_| {
                let words = words(4);
                let both = [box_muller([words[0], words[1]]), box_muller([words[2], words[3]])].concat();
                Array::new([3], &both[..3])
            })
            .within(Tolerance::Within { absolute: 1e-6, relative: 0.0 }),
    );
    cases.push(
        op_case("random_normal", "nothing", "ty=f32[2, 0], mean=0.0, deviation=1.0", "u64[2], u64[]")
            .inputs([key(), counter()])
            .values([f32s([2, 0], [])]),
    );
    cases.extend(wrong_keys("random_normal", "ty=f32[3], mean=0.0, deviation=1.0", ""));
    cases.push(
        op_case("random_normal", "integers", "ty=i32[3], mean=0.0, deviation=1.0", "u64[2], u64[]")
            .fails_build("C3"),
    );
    cases
}

/// Cases of `bernoulli`.
pub(super) fn bernoulli() -> Vec<Case> {
    let mut cases = Vec::new();
    for to in ["f32", "bool", "i64", "f16"] {
        cases.extend(for_dtypes(FLOATS, |dtype| {
            op_case(
                "bernoulli",
                &format!("to_{to}"),
                &format!("to={to}"),
                &format!("{dtype}[n], u64[2], u64[]"),
            )
            .sizes([("n", 40)])
            .random_input(Domain::Range(0.0, 1.0))
            .inputs([key(), counter()])
            .formula(|x| {
                let hits = x[0].data.iter().zip(words(40)).map(|(p, w)| f64::from(u8::from(uniform(w) < *p)));
                Array::new([40], hits.collect::<Vec<_>>())
            })
        }));
    }
    cases.push(
        op_case("bernoulli", "certain", "to=bool", "f32[4], u64[2], u64[]")
            .inputs([f32s([4], [0.0, 1.0, 0.0, 1.0]), key(), counter()])
            .values([bools([4], [false, true, false, true])]),
    );
    cases.extend(wrong_keys("bernoulli", "to=f32", "f32[3], "));
    cases.extend([
        op_case("bernoulli", "integers", "to=f32", "i32[3], u64[2], u64[]").fails_build("C3"),
        op_case("bernoulli", "to_complex", "to=c64", "f32[3], u64[2], u64[]").fails_build("C4"),
    ]);
    cases
}

/// Cases of `multinomial`.
pub(super) fn multinomial() -> Vec<Case> {
    let mut cases = Vec::new();
    for to in ["i32", "i64"] {
        cases.extend(for_dtypes(FLOATS, |dtype| {
            op_case(
                "multinomial",
                &format!("to_{to}"),
                &format!("samples=9, to={to}"),
                &format!("{dtype}[b, 4], u64[2], u64[]"),
            )
            .sizes([("b", 3)])
            .random_input(Domain::Range(-2.0, 2.0))
            .inputs([key(), counter()])
            .formula(|x| {
                let draws = words(27);
                Array::from_fn([3, 9], |at| {
                    let row = &x[0].data[4 * at[0]..4 * at[0] + 4];
                    let total: f64 = row.iter().map(|x| x.exp()).sum();
                    let u = uniform(draws[9 * at[0] + at[1]]);
                    let mut running = 0.0;
                    row.iter()
                        .take_while(|x| {
                            running += x.exp() / total;
                            running <= u
                        })
                        .count() as f64
                })
            })
        }));
    }
    cases.push(
        op_case(
            "multinomial",
            "impossible_classes_are_never_drawn",
            "samples=500, to=i64",
            "f32[1, 5], u64[2], u64[]",
        )
        .inputs([
            f32s([1, 5], [f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY, 1.0, f32::NEG_INFINITY]),
            key(),
            counter(),
        ])
        .property(|_, y| {
            let count = |class: f64| y[0].data.iter().filter(|c| **c == class).count();
            let (first, second) = (count(1.0), count(3.0));
            // softmax gives 0.269 : 0.731; 500 draws, five standard deviations.
            let fine = first + second == 500 && (first as f64 - 134.5).abs() < 50.0;
            if fine { Ok(()) } else { Err(format!("{first} and {second} of 500")) }
        }),
    );
    cases.push(
        op_case("multinomial", "no_samples", "samples=0, to=i64", "f32[2, 3], u64[2], u64[]")
            .random_input(Domain::Normal)
            .inputs([key(), counter()])
            .values([crate::case::i64s([2, 0], [])]),
    );
    cases.extend(wrong_keys("multinomial", "samples=2, to=i64", "f32[2, 3], "));
    cases.extend([
        op_case("multinomial", "vector", "samples=2, to=i64", "f32[3], u64[2], u64[]").fails_build("C3"),
        op_case("multinomial", "no_class", "samples=2, to=i64", "f32[3, 0], u64[2], u64[]").fails_build("C3"),
        op_case("multinomial", "to_float", "samples=2, to=f32", "f32[3, 4], u64[2], u64[]").fails_build("C4"),
        op_case("multinomial", "negative_samples", "samples=-1, to=i64", "f32[3, 4], u64[2], u64[]")
            .fails_build("C5"),
    ]);
    cases
}

/// Cases of `dropout`.
pub(super) fn dropout() -> Vec<Case> {
    let types = |dtype: &str| format!("{dtype}[n], {dtype}[], bool[], u64[2], u64[]");
    let mut cases = for_dtypes(FLOATS, |dtype| {
        op_case("dropout", "training", "", &types(dtype.name()))
            .sizes([("n", 40)])
            .random_input(Domain::Normal)
            .random_input(Domain::Constant(0.25))
            .input(bools([], [true]))
            .inputs([key(), counter()])
            .formulas(|x| {
                let kept: Vec<f64> =
                    words(40).into_iter().map(|w| f64::from(u8::from(uniform(w) >= 0.25))).collect();
                let kept = Array::new([40], kept);
                vec![x[0].zip(&kept, |x, k| if k == 1.0 { x / 0.75 } else { 0.0 }), kept]
            })
            .accumulated(2)
    });
    cases.extend([
        op_case("dropout", "outside_training", "", &types("f32"))
            .inputs([f32s([2], [1.0, -2.0]), f32s([], [0.5]), bools([], [false]), key(), counter()])
            .values([f32s([2], [1.0, -2.0]), bools([2], [true, true])]),
        op_case("dropout", "everything_dropped", "", &types("f32"))
            .inputs([f32s([2], [1.0, -2.0]), f32s([], [1.0]), bools([], [true]), key(), counter()])
            .values([f32s([2], [0.0, 0.0]), bools([2], [false, false])]),
        op_case("dropout", "nothing_dropped", "", &types("f32"))
            .inputs([f32s([2], [1.0, -2.0]), f32s([], [0.0]), bools([], [true]), key(), counter()])
            .values([f32s([2], [1.0, -2.0]), bools([2], [true, true])]),
        op_case("dropout", "integers", "", "i32[3], f32[], bool[], u64[2], u64[]").fails_build("C3"),
        op_case("dropout", "ratio_with_axis", "", "f32[3], f32[1], bool[], u64[2], u64[]").fails_build("C4"),
        op_case("dropout", "integer_training", "", "f32[3], f32[], i32[], u64[2], u64[]").fails_build("C5"),
    ]);
    cases.extend(wrong_keys("dropout", "", "f32[3], f32[], bool[], "));
    cases
}
