//! The classes of results in `semantics.md`, and the error that each allows.

use crate::array::Array;
use rlx_ir::{DType, Literal};
use std::fmt;
use std::sync::Arc;

/// How close a result must come to the exact one.
#[derive(Clone)]
pub enum Tolerance {
    /// The same bits (any NaN equals any NaN); where the reference is an exact f64, that number rounded once to the
    /// result's type: for integers, movement, comparisons, and single + − × ÷ √ in every float type.
    Exact,
    /// f64: 8 ulp, f32: 4 ulp, narrower: 1 ulp of the exact number.
    Transcendental,
    /// |err| ≤ c · depth · eps(accumulator) · Σ|terms|, plus the one rounding to the result's type.
    Accumulated {
        /// How many terms a result sums up; the depth of the summation tree follows from it
        /// ([`Backend::summation_depth`](crate::Backend::summation_depth)).
        terms: usize,
        /// Σ|terms| of each result.
        magnitude: Magnitude,
    },
    /// |err| ≤ absolute + relative · |exact|, for what a format or algorithm states as its own bound.
    Within {
        /// The part that does not depend on the result.
        absolute: f64,
        /// The part relative to the result.
        relative: f64,
    },
}

/// Where Σ|terms| of an accumulated result comes from.
#[derive(Clone)]
pub enum Magnitude {
    /// The greatest magnitude among the (finite) exact results of the same output: right where a result is not
    /// much smaller than its terms, or where results of one output have alike terms.
    OfResult,
    /// The graph in f64 on the inputs' absolute values: right for sums, means, dots, convolutions, cumulative sums.
    OnAbsoluteInputs,
    /// This number for every result.
    Fixed(f64),
    /// An array an output, from the inputs.
    #[allow(clippy::type_complexity, reason = "one closure type, used once")]
    Formula(Arc<dyn Fn(&[Array]) -> Vec<Array> + Send + Sync>),
}

/// The factor c of the accumulated class; semantics.md allows at most 4.
pub const ACCUMULATED_FACTOR: f64 = 4.0;

impl Tolerance {
    /// [`Tolerance::Accumulated`] with [`Magnitude::OfResult`].
    pub fn accumulated(terms: usize) -> Tolerance {
        Tolerance::Accumulated { terms, magnitude: Magnitude::OfResult }
    }

    /// [`Tolerance::Accumulated`] with [`Magnitude::OnAbsoluteInputs`].
    pub fn summed(terms: usize) -> Tolerance {
        Tolerance::Accumulated { terms, magnitude: Magnitude::OnAbsoluteInputs }
    }

    /// Reads what `Display` writes: `exact`, `transcendental`, `accumulated(N)`, `summed(N)`, `accumulated(N, Σ)`,
    /// `within(ABSOLUTE, RELATIVE)`.
    pub fn parse(text: &str) -> Option<Tolerance> {
        let (name, arguments) = match text.split_once('(') {
            Some((name, rest)) => (name.trim(), rest.trim().strip_suffix(')')?),
            None => (text.trim(), ""),
        };
        let arguments: Vec<&str> = arguments.split(',').map(str::trim).filter(|a| !a.is_empty()).collect();
        Some(match (name, arguments.as_slice()) {
            ("exact", []) => Tolerance::Exact,
            ("transcendental", []) => Tolerance::Transcendental,
            ("accumulated", [terms]) => Tolerance::accumulated(terms.parse().ok()?),
            ("accumulated", [terms, magnitude]) => Tolerance::Accumulated {
                terms: terms.parse().ok()?,
                magnitude: Magnitude::Fixed(magnitude.parse().ok()?),
            },
            ("summed", [terms]) => Tolerance::summed(terms.parse().ok()?),
            ("within", [absolute, relative]) => {
                Tolerance::Within { absolute: absolute.parse().ok()?, relative: relative.parse().ok()? }
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tolerance::Exact => f.write_str("exact"),
            Tolerance::Transcendental => f.write_str("transcendental"),
            Tolerance::Accumulated { terms, magnitude: Magnitude::OnAbsoluteInputs } => {
                write!(f, "summed({terms})")
            }
            Tolerance::Accumulated { terms, magnitude: Magnitude::Fixed(m) } => {
                write!(f, "accumulated({terms}, {m})")
            }
            Tolerance::Accumulated { terms, .. } => write!(f, "accumulated({terms})"),
            Tolerance::Within { absolute, relative } => write!(f, "within({absolute}, {relative})"),
        }
    }
}

impl fmt::Debug for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The distance between 1 and the next number of this type.
pub fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 | DType::C128 => f64::EPSILON,
        DType::F32 | DType::C64 => f64::from(f32::EPSILON),
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        DType::F8E4M3FN | DType::F8E4M3FNUZ => 2f64.powi(-3),
        DType::F8E5M2 | DType::F8E5M2FNUZ => 2f64.powi(-2),
        DType::F4E2M1 => 0.5,
        DType::E8M0 => 1.0,
        _ => 0.0,
    }
}

/// The least positive number of this type, and 0 for types that are no floats.
fn least(dtype: DType) -> f64 {
    match dtype {
        DType::F64 | DType::C128 => f64::from_bits(1),
        DType::F32 | DType::C64 => f64::from(f32::from_bits(1)),
        DType::F16 => 2f64.powi(-24),
        DType::BF16 => 2f64.powi(-133),
        DType::F8E4M3FN => 2f64.powi(-9),
        DType::F8E4M3FNUZ => 2f64.powi(-10),
        DType::F8E5M2 => 2f64.powi(-16),
        DType::F8E5M2FNUZ => 2f64.powi(-17),
        _ => 0.0,
    }
}

/// The distance from |x| to the next greater number of this type.
pub fn ulp(dtype: DType, x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return least(dtype);
    }
    // The exponent of x, from its bits; for subnormal f64 the least one, where the ulp is the least number anyway.
    let exponent = ((x.abs().to_bits() >> 52) as i32 - 1023).max(-1022);
    (2f64.powi(exponent) * epsilon(dtype)).max(least(dtype))
}

/// The greatest finite number of a float type.
pub fn greatest(dtype: DType) -> f64 {
    match dtype {
        DType::F64 | DType::C128 => f64::MAX,
        DType::F32 | DType::C64 => f64::from(f32::MAX),
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(half::bf16::MAX),
        DType::F8E4M3FN => 448.0,
        DType::F8E4M3FNUZ => 240.0,
        DType::F8E5M2 | DType::F8E5M2FNUZ => 57344.0,
        DType::F4E2M1 => 6.0,
        _ => f64::INFINITY,
    }
}

/// The type in which sums of this type accumulate.
pub fn accumulator(dtype: DType) -> DType {
    match dtype {
        DType::F64 | DType::C128 => DType::F64,
        _ => DType::F32,
    }
}

/// The inputs with the sign of every number dropped.
pub fn absolute_inputs(inputs: &[Literal]) -> Option<Vec<Literal>> {
    inputs
        .iter()
        .map(|literal| match literal.dtype() {
            dtype if dtype.is_float() || dtype.is_complex() => {
                Some(Array::from_literal(literal)?.map(f64::abs).to_literal(dtype))
            }
            _ => Some(literal.clone()),
        })
        .collect()
}
