//! Special functions against mpmath, and at their ends.

use std::f64::consts::PI;

use rlx_eval::numeric::special;

use crate::{f64_of, records};

const GOLDENS: &str = include_str!("../golden/numeric/special.txt");

#[test]
fn special_functions_are_within_1e_15_of_mpmath() {
    let mut functions = std::collections::BTreeSet::new();
    for words in records(GOLDENS) {
        let (x, expected) = (f64_of(words[1]), f64_of(words[2]));
        let function = match words[0] {
            "erf" => special::erf,
            "erfc" => special::erfc,
            "erfinv" => special::erfinv,
            "lgamma" => special::lgamma,
            "gamma" => special::gamma,
            "digamma" => special::digamma,
            "sigmoid" => special::sigmoid,
            "softplus" => special::softplus,
            "log_sigmoid" => special::log_sigmoid,
            "normal_cdf" => special::normal_cdf,
            name => panic!("no function {name}"),
        };
        // Where a function has roots between poles, the documented bound is absolute.
        let (bound, scale) = match words[0] {
            "lgamma" if x < 0.0 => (1e-15, expected.abs().max(1.0)),
            "digamma" if x < 0.0 => (1e-14, (PI / (PI * x).tan()).abs().max(1.0)),
            _ => (1e-15, expected.abs()),
        };
        let error = (function(x) - expected).abs() / scale;
        assert!(error <= bound, "{}({x:e}) = {expected:e} is off by {error:e}", words[0]);
        functions.insert(words[0]);
    }
    assert_eq!(functions.len(), 10);
}

#[test]
fn ends_and_poles_have_their_limits() {
    const INF: f64 = f64::INFINITY;
    assert_eq!([special::erfinv(1.0), special::erfinv(-1.0)], [INF, -INF]);
    assert!(special::erfinv(1.5).is_nan());
    assert!(special::erfinv(-0.0).is_sign_negative() && special::erfinv(-0.0) == 0.0);
    assert_eq!(special::erfinv(-0.25), -special::erfinv(0.25));
    assert_eq!([special::lgamma(1.0), special::lgamma(2.0)], [0.0, 0.0]);
    assert_eq!([special::lgamma(0.0), special::lgamma(-3.0), special::lgamma(INF)], [INF, INF, INF]);
    assert_eq!([special::digamma(0.0), special::digamma(-0.0), special::digamma(INF)], [-INF, INF, INF]);
    assert!(special::digamma(-2.0).is_nan() && special::digamma(-INF).is_nan());
    assert_eq!([special::sigmoid(INF), special::sigmoid(-INF), special::sigmoid(0.0)], [1.0, 0.0, 0.5]);
    assert_eq!([special::softplus(INF), special::softplus(-INF)], [INF, 0.0]);
    assert_eq!([special::log_sigmoid(INF), special::log_sigmoid(-INF)], [0.0, -INF]);
    assert_eq!(
        [special::normal_cdf(INF), special::normal_cdf(-INF), special::normal_cdf(0.0)],
        [1.0, 0.0, 0.5]
    );
}

#[test]
fn the_logarithm_of_a_sum_neither_overflows_nor_makes_nan_of_infinities() {
    const INF: f64 = f64::INFINITY;
    assert_eq!(special::log_add_exp(1000.0, 1000.0), 1000.0 + std::f64::consts::LN_2);
    assert_eq!(special::log_add_exp(-INF, -INF), -INF);
    assert_eq!(special::log_add_exp(INF, INF), INF);
    assert_eq!(special::log_add_exp(-INF, 3.0), 3.0);
    assert!((special::log_add_exp(2_f64.ln(), 3_f64.ln()) - 5_f64.ln()).abs() < 1e-15);
    assert!(special::log_add_exp(f64::NAN, 1.0).is_nan() && special::log_add_exp(1.0, f64::NAN).is_nan());
}

#[test]
fn nan_gives_nan() {
    for function in [
        special::erf,
        special::erfc,
        special::erfinv,
        special::lgamma,
        special::gamma,
        special::digamma,
        special::sigmoid,
        special::softplus,
        special::log_sigmoid,
        special::normal_cdf,
    ] {
        assert!(function(f64::NAN).is_nan());
    }
}
