//! Whether results are close enough, and if not, where and by how much.

use crate::array::Array;
use crate::tolerance::{ACCUMULATED_FACTOR, Tolerance, accumulator, epsilon, greatest, ulp};
use rlx_ir::{DType, Literal};
use std::fmt;

/// How one output differs from what is right.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// Another number of outputs.
    Count {
        /// How many there must be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// Another element type or other sizes.
    Type {
        /// The right type.
        expected: String,
        /// The type found.
        found: String,
    },
    /// Elements that are too far off.
    Elements {
        /// The index of the worst one.
        index: Vec<usize>,
        /// What came out there.
        got: f64,
        /// What is right there.
        want: f64,
        /// The error in units of the last place of the result's type.
        ulps: f64,
        /// The error allowed there.
        bound: f64,
        /// How many elements are too far off.
        wrong: usize,
        /// Of how many.
        of: usize,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Count { expected, found } => write!(f, "{found} outputs, expected {expected}"),
            Difference::Type { expected, found } => write!(f, "is {found}, expected {expected}"),
            Difference::Elements { index, got, want, ulps, bound, wrong, of } => {
                write!(f, "{wrong} of {of} elements differ; at {index:?} got {got:?}, want {want:?}")?;
                let error = (got - want).abs();
                if error.is_finite() && error > 0.0 {
                    write!(f, " (error {error:.3e}, {ulps:.1} ulp")?;
                    if *bound > 0.0 {
                        write!(f, "; allowed {bound:.3e}")?;
                    }
                    f.write_str(")")?;
                }
                Ok(())
            }
        }
    }
}

/// What a tolerance needs to know of an output to bound its error.
#[derive(Clone, Debug)]
pub struct Bound<'a> {
    /// The class.
    pub tolerance: &'a Tolerance,
    /// Σ|terms| of each element for the accumulated class; without it the greatest magnitude of the exact results.
    pub magnitudes: Option<&'a Array>,
    /// The depth of the backend's summation tree for the case's number of terms.
    pub depth: usize,
    /// The accumulator, if it is not the usual one.
    pub accumulator: Option<DType>,
}

/// Whether two tensors are the same: types, sizes, and bits, but that any NaN equals any NaN.
pub fn same_bits(got: &Literal, want: &Literal) -> Result<(), Difference> {
    same_type(got, want.dtype(), want.dims())?;
    if got.bytes() == want.bytes() {
        return Ok(());
    }
    let (Some(g), Some(w)) = (Array::from_literal(got), Array::from_literal(want)) else {
        return Err(Difference::Elements {
            index: Vec::new(),
            got: 0.0,
            want: 0.0,
            ulps: 0.0,
            bound: 0.0,
            wrong: got.bytes().iter().zip(want.bytes()).filter(|(a, b)| a != b).count(),
            of: got.bytes().len(),
        });
    };
    let width = got.bytes().len().checked_div(g.data.len()).unwrap_or(0);
    let bits_differ = |i: usize| match width {
        // Sub-byte elements have no NaN with several patterns, and padding bits do not count.
        0 => g.data[i] != w.data[i],
        _ => got.bytes()[i * width..(i + 1) * width] != want.bytes()[i * width..(i + 1) * width],
    };
    let equal = |i: usize| (g.data[i].is_nan() && w.data[i].is_nan()) || !bits_differ(i);
    report(&g, &w, got.dtype(), |i| (!equal(i)).then_some(0.0))
}

fn same_type(got: &Literal, dtype: DType, dims: &[usize]) -> Result<(), Difference> {
    if got.dtype() == dtype && got.dims() == dims {
        return Ok(());
    }
    let name = |dtype: DType, dims: &[usize]| format!("{dtype}{dims:?}");
    Err(Difference::Type { expected: name(dtype, dims), found: name(got.dtype(), got.dims()) })
}

/// The worst of the elements for which `too_far` gives the error allowed.
fn report(
    got: &Array,
    want: &Array,
    dtype: DType,
    too_far: impl Fn(usize) -> Option<f64>,
) -> Result<(), Difference> {
    let excess = |i: usize, bound: f64| {
        let error = (got.data[i] - want.data[i]).abs();
        if error.is_nan() { f64::INFINITY } else { error - bound }
    };
    let mut worst: Option<(usize, f64)> = None;
    let mut wrong = 0;
    for i in 0..got.data.len() {
        if let Some(bound) = too_far(i) {
            wrong += 1;
            if worst.is_none_or(|(w, b)| excess(i, bound) > excess(w, b)) {
                worst = Some((i, bound));
            }
        }
    }
    let Some((at, bound)) = worst else { return Ok(()) };
    let (g, w) = (got.data[at], want.data[at]);
    let mut index = vec![0; got.dims.len()];
    let mut rest = at;
    for (axis, size) in got.dims.iter().enumerate().rev() {
        (index[axis], rest) = (rest % size, rest / size);
    }
    let ulps = (g - w).abs() / ulp(part(dtype), w).max(f64::MIN_POSITIVE);
    Err(Difference::Elements { index, got: g, want: w, ulps, bound, wrong, of: got.data.len() })
}

/// The real type of a complex one, else the type itself.
fn part(dtype: DType) -> DType {
    dtype.complex_part().unwrap_or(dtype)
}

/// Whether `got` is right within `bound`, where the right result is a literal: of the same type, or for floats in f64.
pub fn near_literal(got: &Literal, want: &Literal, bound: &Bound<'_>) -> Result<(), Difference> {
    let exact = matches!(bound.tolerance, Tolerance::Exact);
    let wide = (want.dtype() == DType::F64 && got.dtype().is_float())
        || (want.dtype() == DType::C128 && got.dtype().is_complex());
    if want.dtype() != got.dtype() && !wide {
        return same_type(got, want.dtype(), want.dims());
    }
    match Array::from_literal(want) {
        Some(array) if wide || !exact => near(got, &array, bound),
        _ => same_bits(got, want),
    }
}

/// Whether `got` is right within `bound`, where `want` is the exact result. A complex result has one more axis in
/// `want`.
pub fn near(got: &Literal, want: &Array, bound: &Bound<'_>) -> Result<(), Difference> {
    let dtype = got.dtype();
    let dims = match want.dims.split_last() {
        Some((2, dims)) if dtype.is_complex() => dims,
        _ => want.dims.as_slice(),
    };
    same_type(got, dtype, dims)?;
    if let Tolerance::Exact = bound.tolerance {
        return same_bits(got, &want.to_literal(dtype));
    }
    let Some(result) = Array::from_literal(got) else {
        return Err(Difference::Type { expected: "numbers".into(), found: dtype.to_string() });
    };
    let allowed = Allowed::new(part(dtype), want, bound);
    report(&result, want, dtype, |i| {
        let error = allowed.error(i, want.data[i]);
        (!close(part(dtype), result.data[i], want.data[i], error)).then_some(error)
    })
}

/// The error that a tolerance allows at each element.
struct Allowed<'a> {
    dtype: DType,
    bound: &'a Bound<'a>,
    /// Σ|terms| where no magnitudes are given.
    common: f64,
}

impl Allowed<'_> {
    fn new<'a>(dtype: DType, want: &Array, bound: &'a Bound<'a>) -> Allowed<'a> {
        let finite = want.data.iter().filter(|x| x.is_finite());
        Allowed { dtype, bound, common: finite.fold(0.0, |most, x| x.abs().max(most)) }
    }

    fn error(&self, at: usize, want: f64) -> f64 {
        match self.bound.tolerance {
            Tolerance::Exact => 0.0,
            Tolerance::Transcendental => {
                let ulps = match self.dtype {
                    DType::F64 => 8.0,
                    DType::F32 => 4.0,
                    _ => 1.0,
                };
                ulps * ulp(self.dtype, want)
            }
            Tolerance::Within { absolute, relative } => absolute + relative * want.abs(),
            Tolerance::Accumulated { .. } => {
                let magnitude = match self.bound.magnitudes.and_then(|m| m.data.get(at)) {
                    Some(magnitude) if magnitude.is_finite() => magnitude.abs(),
                    Some(_) => want.abs(),
                    None => self.common,
                };
                let accumulator = self.bound.accumulator.unwrap_or(accumulator(self.dtype));
                let depth = self.bound.depth.max(1) as f64;
                ACCUMULATED_FACTOR * depth * epsilon(accumulator) * magnitude
                    // The one rounding of the sum to the result's type.
                    + 0.5 * ulp(self.dtype, want) * (1.0 + 1e-9)
            }
        }
    }
}

fn close(dtype: DType, got: f64, want: f64, bound: f64) -> bool {
    if want.is_nan() || got.is_nan() {
        return want.is_nan() && got.is_nan();
    }
    if got == want {
        return true;
    }
    if want.is_infinite() {
        return false;
    }
    if got.is_infinite() {
        // A number that may lie beyond the greatest one may have become an infinity.
        let most = greatest(dtype) * (1.0 + epsilon(dtype) / 4.0);
        return got.signum() == want.signum() && want.abs() + bound >= most;
    }
    (got - want).abs() <= bound
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{f32s, f64s, literal};

    fn bound(tolerance: &Tolerance) -> Bound<'_> {
        Bound { tolerance, magnitudes: None, depth: 1, accumulator: None }
    }

    #[test]
    fn bits_are_compared_with_any_nan_equal_to_any_nan() {
        let nan = f32s([2], [f32::NAN, 1.0]);
        let other = f32s([2], [f32::from_bits(0xffc0_1234), 1.0]);
        assert_eq!(same_bits(&nan, &other), Ok(()));
        let message = same_bits(&f32s([2], [0.0, 1.0]), &f32s([2], [-0.0, 1.0])).unwrap_err().to_string();
        assert_eq!(message, "1 of 2 elements differ; at [0] got 0.0, want -0.0");
    }

    #[test]
    fn exact_results_are_the_reference_rounded_once() {
        let third = 1.0 / 3.0;
        let exact = bound(&Tolerance::Exact);
        assert_eq!(near(&f32s([1], [third as f32]), &Array::new([1], [third]), &exact), Ok(()));
        assert!(
            near(
                &f32s([1], [f32::from_bits((third as f32).to_bits() + 1)]),
                &Array::new([1], [third]),
                &exact
            )
            .is_err()
        );
    }

    #[test]
    fn transcendental_results_have_ulps() {
        let tolerance = Tolerance::Transcendental;
        let off = |ulps: u32| f32s([1], [f32::from_bits(1f32.to_bits() + ulps)]);
        assert_eq!(near(&off(4), &Array::new([1], [1.0]), &bound(&tolerance)), Ok(()));
        let message = near(&off(5), &Array::new([1], [1.0]), &bound(&tolerance)).unwrap_err().to_string();
        assert!(message.contains("5.0 ulp") && message.contains("at [0]"), "{message}");
        let half = literal(DType::F16, [1], [1.0 + 2.0 * epsilon(DType::F16)]);
        assert!(near(&half, &Array::new([1], [1.0]), &bound(&tolerance)).is_err());
    }

    #[test]
    fn accumulated_error_grows_with_depth_and_magnitude() {
        let tolerance = Tolerance::summed(100);
        let magnitudes = Array::new([1], [1000.0]);
        let got = f32s([1], [1.0 + 1000.0 * f32::EPSILON]);
        let want = Array::new([1], [1.0]);
        let with = |depth, magnitudes| near(&got, &want, &Bound { depth, magnitudes, ..bound(&tolerance) });
        assert_eq!(with(1, Some(&magnitudes)), Ok(()));
        assert!(with(1, None).is_err());
        assert_eq!(with(300, None), Ok(()));
    }

    #[test]
    fn overflow_to_infinity_is_right_only_past_the_greatest_number() {
        let tolerance = Tolerance::Transcendental;
        let inf = f32s([1], [f32::INFINITY]);
        assert_eq!(near(&inf, &Array::new([1], [4e38]), &bound(&tolerance)), Ok(()));
        assert!(near(&inf, &Array::new([1], [3e38]), &bound(&tolerance)).is_err());
    }

    #[test]
    fn sizes_and_types_must_agree() {
        let difference = near_literal(&f32s([2], [0.0; 2]), &f64s([3], [0.0; 3]), &bound(&Tolerance::Exact));
        assert!(matches!(difference, Err(Difference::Type { .. })));
        let integer = literal(DType::I32, [1], [1.0]);
        assert!(near_literal(&integer, &f64s([1], [1.0]), &bound(&Tolerance::Exact)).is_err());
    }
}
