//! Unrounded products for arguments of exponential functions: a number as the sum of two of its type.
//!
//! `exp`, `erfc` and `sigmoid` multiply the relative error of a large argument by its size, so an argument that is
//! itself computed (x/√2, 1.702·x) needs more digits than its type has. Dekker (1971) splits each factor in halves whose
//! products are exact; contracting `a·b + c` only makes the low word better. Every formula here is an identity of real
//! numbers, so evaluating in a wider type stays right.

use crate::builder::Builder;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;

/// The number high + low, with |low| far below |high|. f32 or f64.
#[derive(Clone, Copy)]
pub(crate) struct DoubleWord {
    /// The number, rounded.
    pub(crate) high: Value,
    /// What the rounding left.
    pub(crate) low: Value,
}

impl DoubleWord {
    /// A value without a low word.
    pub(crate) fn of(b: &mut Builder, x: Value) -> Result<DoubleWord, TypeError> {
        Ok(DoubleWord { high: x, low: b.like(0.0, x)? })
    }

    /// A constant in the sizes and type of `x`.
    pub(crate) fn constant(b: &mut Builder, value: f64, x: Value) -> Result<DoubleWord, TypeError> {
        let rounded = if b.dtype(x) == DType::F64 { value } else { f64::from(value as f32) };
        Ok(DoubleWord { high: b.like(rounded, x)?, low: b.like(value - rounded, x)? })
    }

    /// self · other.
    pub(crate) fn mul(self, b: &mut Builder, other: DoubleWord) -> Result<DoubleWord, TypeError> {
        let high = b.mul(self.high, other.high)?;
        let (x_high, x_low) = halves(b, self.high)?;
        let (y_high, y_low) = halves(b, other.high)?;
        let product = b.mul(x_high, y_high)?;
        let mut low = b.sub(product, high)?;
        let rest = [
            (x_high, y_low),
            (x_low, y_high),
            (x_low, y_low),
            (self.high, other.low),
            (self.low, other.high),
        ];
        for (x, y) in rest {
            let product = b.mul(x, y)?;
            low = b.add(low, product)?;
        }
        Ok(DoubleWord { high, low })
    }

    /// self + other (Knuth's two-sum).
    pub(crate) fn add(self, b: &mut Builder, other: DoubleWord) -> Result<DoubleWord, TypeError> {
        let (x, y) = (self.high, other.high);
        let high = b.add(x, y)?;
        let y_part = b.sub(high, x)?;
        let x_part = b.sub(high, y_part)?;
        let (x_rest, y_rest) = (b.sub(x, x_part)?, b.sub(y, y_part)?);
        let mut low = b.add(x_rest, y_rest)?;
        for rest in [self.low, other.low] {
            low = b.add(low, rest)?;
        }
        Ok(DoubleWord { high, low })
    }
}

/// x as a sum of two numbers with half its digits each (Veltkamp). |x| must be below the type's greatest / 2^27.
fn halves(b: &mut Builder, x: Value) -> Result<(Value, Value), TypeError> {
    // 2^⌈digits/2⌉ + 1.
    let factor = if b.dtype(x) == DType::F64 { 134_217_729.0 } else { 4097.0 };
    let scaled = b.mul_scalar(x, factor)?;
    let above = b.sub(scaled, x)?;
    let high = b.sub(scaled, above)?;
    Ok((high, b.sub(x, high)?))
}
