//! Whether two values are close enough, and where they differ most.

use rlx::ir::{Builder, DType, Literal};
use std::fmt;

/// The error allowed, relative to the greatest finite magnitude in a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tolerance(pub(super) f64);

/// How much two values differ.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    /// The greatest error; infinite where types differ, or a number is only on one side finite.
    pub(super) error: f64,
    /// The error allowed.
    pub(super) allowed: f64,
    /// How many elements are too far off.
    pub(super) wrong: usize,
    /// Of how many.
    pub(super) of: usize,
    /// The element with the greatest error, if it is not zero.
    pub(super) worst: Option<Worst>,
}

/// One element.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Worst {
    /// Where it is; of complex numbers, the last is the part.
    pub(super) index: Vec<usize>,
    /// What came out.
    pub(super) got: f64,
    /// What is right.
    pub(super) want: f64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.wrong == 0 { "equal" } else { "differs" };
        write!(f, "{verdict}: greatest error {:.3e}, allowed {:.3e}", self.error, self.allowed)?;
        if self.wrong > 0 {
            write!(f, "; {} of {} elements", self.wrong, self.of)?;
            if let Some(worst) = &self.worst {
                write!(f, ", at {:?} {} for {}", worst.index, worst.got, worst.want)?;
            }
        }
        Ok(())
    }
}

/// The error that rounding to this type alone may make, relative to the number.
fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        DType::F64 | DType::C128 | DType::F32 | DType::C64 => 0.0,
        // The floats of 8 bits and less have at least one digit behind the point.
        _ => 0.5,
    }
}

/// Compares what came out with what is right. Integers and bools must be equal; NaN equals NaN.
pub(super) fn compare(got: &Literal, want: &Literal, tolerance: Tolerance) -> anyhow::Result<Difference> {
    let mut difference =
        Difference { error: 0.0, allowed: 0.0, wrong: 0, of: want.element_count(), worst: None };
    if got.dtype() != want.dtype() || got.dims() != want.dims() {
        return Ok(Difference { error: f64::INFINITY, wrong: difference.of.max(1), ..difference });
    }
    let dtype = want.dtype();
    let inexact = dtype.is_float() || dtype.is_complex();
    if got.bytes() == want.bytes() && !inexact {
        return Ok(difference);
    }
    let (got, numbers) = (numbers(got)?, numbers(want)?);
    let greatest = numbers.iter().filter(|x| x.is_finite()).fold(0.0f64, |most, x| most.max(x.abs()));
    if inexact {
        difference.allowed = tolerance.0.max(rounding(dtype)) * greatest;
    }
    for (i, (g, w)) in got.iter().zip(&numbers).enumerate() {
        let error = match (g.is_nan(), w.is_nan()) {
            (true, true) => 0.0,
            (false, false) if g == w => 0.0,
            (false, false) => (g - w).abs(),
            _ => f64::INFINITY,
        };
        difference.wrong += usize::from(error > difference.allowed);
        if error > difference.error {
            difference.error = error;
            let mut dims = want.dims().to_vec();
            if dtype.is_complex() {
                dims.push(2);
            }
            difference.worst = Some(Worst { index: index(i, &dims), got: *g, want: *w });
        }
    }
    // Bits that differ without a number that does (integers beyond 2^53, block formats) are still a difference.
    if !inexact && difference.wrong == 0 {
        difference.wrong = 1;
    }
    Ok(difference)
}

/// The elements as f64; of complex numbers, both parts.
fn numbers(literal: &Literal) -> anyhow::Result<Vec<f64>> {
    let bytes = literal.bytes();
    Ok(match literal.dtype() {
        DType::F32 | DType::C64 => {
            let (parts, _) = bytes.as_chunks::<4>();
            parts.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect()
        }
        DType::F64 | DType::C128 => {
            let (parts, _) = bytes.as_chunks::<8>();
            parts.iter().map(|b| f64::from_le_bytes(*b)).collect()
        }
        DType::Block(_) | DType::String => Vec::new(),
        _ => {
            let mut b = Builder::verbatim("numbers");
            let x = b.constant(literal.clone());
            let y = b.cast(x, DType::F64)?;
            let wide = rlx::eval::evaluate(&b.finish([("y", y)])?, &[])?;
            wide.first().and_then(|l| l.to_vec::<f64>()).unwrap_or_default()
        }
    })
}

/// The position of element `i` in row-major order.
fn index(mut i: usize, dims: &[usize]) -> Vec<usize> {
    let mut position = vec![0; dims.len()];
    for (slot, size) in position.iter_mut().zip(dims).rev() {
        (*slot, i) = (i % size.max(&1), i / size.max(&1));
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(got: &[f32], want: &[f32]) -> Difference {
        compare(&Literal::vector(got), &Literal::vector(want), Tolerance(1e-4)).unwrap()
    }

    #[test]
    fn the_error_allowed_follows_the_greatest_magnitude() {
        assert_eq!(difference(&[1000.0, 0.05], &[1000.0, 0.0]).wrong, 0);
        let far = difference(&[1.0, 0.05], &[1.0, 0.0]);
        assert_eq!((far.wrong, far.of), (1, 2));
        assert_eq!(far.worst.unwrap().index, [1]);
    }

    #[test]
    fn nan_equals_nan_and_nothing_else() {
        assert_eq!(difference(&[f32::NAN], &[f32::NAN]).wrong, 0);
        assert_eq!(difference(&[f32::NAN], &[1.0]).wrong, 1);
        assert_eq!(difference(&[f32::INFINITY], &[f32::INFINITY]).wrong, 0);
        assert_eq!(difference(&[f32::INFINITY], &[f32::NEG_INFINITY]).wrong, 1);
    }

    #[test]
    fn integers_must_be_equal_beyond_what_f64_can_tell() {
        let compare = |a: i64, b: i64| {
            compare(&Literal::vector(&[a]), &Literal::vector(&[b]), Tolerance(1.0)).unwrap().wrong
        };
        assert_eq!(compare(7, 7), 0);
        assert_eq!(compare(7, 8), 1);
        assert_eq!(compare((1 << 60) + 1, 1 << 60), 1);
    }

    #[test]
    fn another_type_differs() {
        let found = compare(&Literal::vector(&[1i32]), &Literal::vector(&[1i64]), Tolerance(1.0)).unwrap();
        assert_eq!(found.wrong, 1);
    }
}
