//! Fourier transforms.

use super::OpDef;
use crate::dim::Dim;
use crate::error::TypeError;
use crate::infer::{Infer, Types, one};
use crate::{names, operation};

names! {
    /// The kinds of transform.
    pub enum FftOp {
        /// y\[k\] = Σ x\[n\] e^(−2πi·kn/N), complex to complex.
        Forward = "fft",
        /// y\[n\] = 1/N Σ x\[k\] e^(2πi·kn/N), complex to complex.
        Inverse = "ifft",
        /// The first N/2 + 1 elements of the forward transform of real numbers.
        Real = "rfft",
        /// The inverse of `rfft`: real numbers, `length` of them.
        RealInverse = "irfft",
    }
}

operation! {
    /// Discrete Fourier transform along an axis. C1: complex operands (rfft: f32 or f64). C2: axis < rank.
    /// C3: `length` is given for irfft only, is at least 1, and the axis has length/2 + 1 elements.
    /// C4: the axis is not empty.
    pub struct Fft: FftOp {
        /// The axis.
        axis: usize,
        /// The result's size along the axis, for irfft.
        length: Option<Dim>,
    }
}

impl OpDef for Fft {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.operand(0)?;
        cx.axis_in("C2", self.axis, x.rank())?;
        let only_irfft = self.length.is_some() == (self.op == FftOp::RealInverse);
        cx.ensure(only_irfft, "C3", None, "length", "given for irfft only", format!("{:?}", self.length))?;
        let along = &x.shape[self.axis];
        cx.at_most("C4", Some(0), "the axis is empty", &Dim::ONE, along)?;
        Ok(one(match self.op {
            FftOp::Forward | FftOp::Inverse => cx.of("C1", 0, "a complex type", |d| d.is_complex())?.clone(),
            FftOp::Real => {
                let Some(dtype) = x.dtype.to_complex() else {
                    return Err(cx.error("C1", Some(0), "element type", "f32 or f64", x.dtype));
                };
                let half = along.floor_div(&2.into()) + 1;
                x.with_dtype(dtype).with_shape(x.shape.with_dim(self.axis, half))
            }
            FftOp::RealInverse => {
                let Some(dtype) = x.dtype.complex_part() else {
                    return Err(cx.error("C1", Some(0), "element type", "a complex type", x.dtype));
                };
                let length = self.length.clone().unwrap_or(Dim::ONE);
                cx.at_most("C3", None, "length", &Dim::ONE, &length)?;
                cx.equal("C3", Some(0), "elements", &(length.floor_div(&2.into()) + 1), along)?;
                x.with_dtype(dtype).with_shape(x.shape.with_dim(self.axis, length))
            }
        }))
    }
}
