//! Rounding to the declared type.

use crate::numeric::minifloat::{self, MiniFloat, ScaleRounding};
use rlx_ir::DType;

/// How floats are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Precision {
    /// Each result is rounded to its declared type.
    #[default]
    Declared,
    /// Nothing is rounded: every float is an f64.
    Wide,
}

/// The parameters of a narrow float; `None` for f64, f32, e8m0 and what is no float.
pub(crate) fn minifloat(dtype: DType) -> Option<MiniFloat> {
    Some(match dtype {
        DType::F16 => minifloat::F16,
        DType::BF16 => minifloat::BF16,
        DType::F8E4M3FN => minifloat::F8E4M3FN,
        DType::F8E4M3FNUZ => minifloat::F8E4M3FNUZ,
        DType::F8E5M2 => minifloat::F8E5M2,
        DType::F8E5M2FNUZ => minifloat::F8E5M2FNUZ,
        DType::F4E2M1 => minifloat::F4E2M1,
        _ => return None,
    })
}

impl Precision {
    /// `x` rounded once to `dtype`, to nearest even.
    pub(crate) fn round(self, dtype: DType, x: f64) -> f64 {
        self.round_as(dtype, x, false, ScaleRounding::Nearest)
    }

    /// `x` rounded once to `dtype`; `saturate` and `scale` as in a cast.
    pub(crate) fn round_as(self, dtype: DType, x: f64, saturate: bool, scale: ScaleRounding) -> f64 {
        if self == Precision::Wide {
            return x;
        }
        match dtype {
            DType::F64 => x,
            DType::F32 => f64::from(x as f32),
            DType::E8M0 => minifloat::decode_e8m0(minifloat::encode_e8m0(x, saturate, scale)),
            _ => match minifloat(dtype) {
                Some(format) => format.round(x, saturate),
                None => x,
            },
        }
    }

    /// Rounds all elements.
    pub(crate) fn round_all(self, dtype: DType, elements: &mut [f64]) {
        match (self, dtype) {
            (Precision::Wide, _) | (_, DType::F64) => {}
            (_, DType::F32) => elements.iter_mut().for_each(|x| *x = f64::from(*x as f32)),
            _ => elements.iter_mut().for_each(|x| *x = self.round(dtype, *x)),
        }
    }
}
