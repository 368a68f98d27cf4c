//! Sums rounded, once, or wrapped to the type of the result.

use crate::array::Out;
use crate::kernels::region::to_odd_f32;
use half::{bf16, f16};
use rlx_ir::DType;

/// Writes sums from an element of a result on.
pub type Finish<S> = fn(&[S], &Out<'_>, usize, Wrap);

/// The accumulator that integers are wrapped to before they are stored.
#[derive(Clone, Copy, Debug)]
pub struct Wrap {
    /// Its bits.
    pub bits: u32,
    /// Whether the upper bits are the sign's.
    pub signed: bool,
}

/// Sums that can be stored as other types.
pub trait Stored: Sized {
    /// The function for a result type; `None` if the sums are no such numbers.
    fn finish_of(dtype: DType) -> Option<Finish<Self>>;
}

macro_rules! store {
    ($sum:ty => $to:ty, $convert:expr) => {{
        fn finish(sums: &[$sum], out: &Out<'_>, place: usize, wrap: Wrap) {
            let convert = $convert;
            for (to, sum) in out.slice_at::<$to>(place, sums.len()).iter_mut().zip(sums) {
                *to = convert(*sum, wrap);
            }
        }
        finish
    }};
}

impl Stored for f32 {
    fn finish_of(dtype: DType) -> Option<Finish<f32>> {
        Some(match dtype {
            DType::F64 => store!(f32 => f64, |x: f32, _| f64::from(x)),
            DType::F32 => store!(f32 => f32, |x: f32, _| x),
            DType::F16 => store!(f32 => f16, |x: f32, _| f16::from_f32(x)),
            DType::BF16 => store!(f32 => bf16, |x: f32, _| bf16::from_f32(x)),
            _ => return None,
        })
    }
}

impl Stored for f64 {
    fn finish_of(dtype: DType) -> Option<Finish<f64>> {
        Some(match dtype {
            DType::F64 => store!(f64 => f64, |x: f64, _| x),
            DType::F32 => store!(f64 => f32, |x: f64, _| x as f32),
            DType::F16 => store!(f64 => f16, |x: f64, _| f16::from_f32(to_odd_f32(x))),
            DType::BF16 => store!(f64 => bf16, |x: f64, _| bf16::from_f32(to_odd_f32(x))),
            _ => return None,
        })
    }
}

/// The accumulator's bits, those above them the sign's or 0.
fn wrapped(sum: i64, wrap: Wrap) -> i64 {
    let above = 64 - wrap.bits.clamp(1, 64);
    if wrap.signed { (sum << above) >> above } else { (((sum << above) as u64) >> above) as i64 }
}

macro_rules! integers {
    ($($sum:ty),*) => {$(
        impl Stored for $sum {
            fn finish_of(dtype: DType) -> Option<Finish<$sum>> {
                if !dtype.is_int() {
                    return None;
                }
                Some(match dtype.bits()? {
                    64 => store!($sum => i64, |x: $sum, wrap| wrapped(x.into(), wrap)),
                    32 => store!($sum => i32, |x: $sum, wrap| wrapped(x.into(), wrap) as i32),
                    16 => store!($sum => i16, |x: $sum, wrap| wrapped(x.into(), wrap) as i16),
                    8 => store!($sum => i8, |x: $sum, wrap| wrapped(x.into(), wrap) as i8),
                    _ => return None,
                })
            }
        }
    )*};
}
integers!(i32, i64);
