//! Small binary floating-point formats: rounding an `f64` to them, and their bit codes.
//!
//! One table-driven implementation ([`MiniFloat`]) serves f16, bf16, the four 8-bit formats with a sign and
//! f4e2m1. Rounding is a single rounding to nearest even straight from `f64`. [`encode_e8m0`] and
//! [`decode_e8m0`] serve the exponent-only scale format, which has neither sign, zero nor mantissa.
//!
//! Sources: IEEE 754-2019 (f16); the bfloat16 format of Wang and Kanwar, 2019; OCP 8-bit Floating Point
//! Specification 1.0 (e4m3fn, e5m2); Noune et al., "8-bit Numerical Formats for Deep Neural Networks", 2022
//! (the `fnuz` variants); OCP Microscaling Formats 1.0 (e2m1, e8m0). Out-of-range rules: the tables of ONNX
//! `Cast`, versions 19 to 25.

/// Width of the mantissa field of `f64`.
const F64_MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;
/// Exponent bias of `f64`.
const F64_BIAS: i32 = f64::MAX_EXP - 1;

/// Which codes of a format are not finite numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specials {
    /// The greatest exponent is kept for infinities (mantissa 0) and NaNs, as in IEEE 754.
    InfinityAndNan,
    /// No infinity; the codes whose exponent and mantissa bits are all ones are NaN (`fn`).
    NanAllOnes,
    /// No infinity and no negative zero; the code of negative zero is the only NaN (`fnuz`).
    NanNegativeZero,
    /// Every code is a finite number.
    None,
}

/// A binary floating-point format of at most 16 bits: sign, exponent, mantissa from the most significant bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MiniFloat {
    /// Width of the exponent field.
    pub exponent_bits: u32,
    /// Width of the mantissa field, without the implicit bit.
    pub mantissa_bits: u32,
    /// What is subtracted from the exponent field to give the exponent.
    pub bias: i32,
    /// Which codes are infinities and NaNs.
    pub specials: Specials,
}

/// IEEE 754 binary16.
pub const F16: MiniFloat =
    MiniFloat { exponent_bits: 5, mantissa_bits: 10, bias: 15, specials: Specials::InfinityAndNan };
/// bfloat16: the upper half of an f32.
pub const BF16: MiniFloat =
    MiniFloat { exponent_bits: 8, mantissa_bits: 7, bias: 127, specials: Specials::InfinityAndNan };
/// OCP E4M3: greatest value 448, no infinity.
pub const F8E4M3FN: MiniFloat =
    MiniFloat { exponent_bits: 4, mantissa_bits: 3, bias: 7, specials: Specials::NanAllOnes };
/// E4M3 with one NaN and no negative zero: greatest value 240.
pub const F8E4M3FNUZ: MiniFloat =
    MiniFloat { exponent_bits: 4, mantissa_bits: 3, bias: 8, specials: Specials::NanNegativeZero };
/// OCP E5M2: greatest value 57344, with infinities.
pub const F8E5M2: MiniFloat =
    MiniFloat { exponent_bits: 5, mantissa_bits: 2, bias: 15, specials: Specials::InfinityAndNan };
/// E5M2 with one NaN and no negative zero: greatest value 57344.
pub const F8E5M2FNUZ: MiniFloat =
    MiniFloat { exponent_bits: 5, mantissa_bits: 2, bias: 16, specials: Specials::NanNegativeZero };
/// OCP MX E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
pub const F4E2M1: MiniFloat =
    MiniFloat { exponent_bits: 2, mantissa_bits: 1, bias: 1, specials: Specials::None };

impl MiniFloat {
    /// Bits of a code: sign, exponent and mantissa.
    pub const fn width(&self) -> u32 {
        1 + self.exponent_bits + self.mantissa_bits
    }

    /// The code of the greatest finite number.
    const fn max_code(&self) -> u32 {
        let all_ones = (1 << (self.exponent_bits + self.mantissa_bits)) - 1;
        match self.specials {
            Specials::InfinityAndNan => all_ones - (1 << self.mantissa_bits),
            Specials::NanAllOnes => all_ones - 1,
            Specials::NanNegativeZero | Specials::None => all_ones,
        }
    }

    const fn sign_bit(&self) -> u32 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }

    /// The exponent of the subnormals and of the least normals.
    const fn min_exponent(&self) -> i32 {
        1 - self.bias
    }

    /// The greatest finite number.
    pub fn max_finite(&self) -> f64 {
        self.decode(self.max_code())
    }

    /// The code of the number nearest to `x`, ties to the even code.
    ///
    /// A magnitude that rounds beyond [`max_finite`](Self::max_finite), and ±∞, become
    /// - with `saturate`: ±`max_finite`;
    /// - without: ±∞ where the format has it, else NaN.
    ///
    /// [`Specials::None`] saturates in either case, and turns NaN into negative zero (as ml_dtypes' e2m1, the
    /// type of ONNX's reference). Other formats keep the sign of a NaN if they can, not its payload.
    pub fn encode(&self, x: f64, saturate: bool) -> u32 {
        let sign = if x.is_sign_negative() { self.sign_bit() } else { 0 };
        if x.is_nan() {
            return match self.specials {
                // The quiet NaN with an otherwise empty payload.
                Specials::InfinityAndNan => sign | (self.max_code() + 1) | 1 << (self.mantissa_bits - 1),
                Specials::NanAllOnes => sign | (self.max_code() + 1),
                Specials::NanNegativeZero | Specials::None => self.sign_bit(),
            };
        }
        // Infinity's f64 exponent lies beyond every format's, so it takes the path of overflow.
        let magnitude = self.round_magnitude(x.abs());
        if magnitude <= self.max_code() {
            if magnitude == 0 && self.specials == Specials::NanNegativeZero {
                return 0;
            }
            return sign | magnitude;
        }
        if saturate {
            return sign | self.max_code();
        }
        match self.specials {
            Specials::InfinityAndNan | Specials::NanAllOnes => sign | (self.max_code() + 1),
            Specials::NanNegativeZero => self.sign_bit(),
            Specials::None => sign | self.max_code(),
        }
    }

    /// The code of a non-negative number as if the exponent field had no upper limit: codes beyond
    /// `max_code` mean overflow.
    fn round_magnitude(&self, x: f64) -> u32 {
        let bits = x.to_bits();
        let exponent = (bits >> F64_MANTISSA_BITS) as i32 - F64_BIAS;
        // Subnormals of f64 get an implicit bit they lack; they are far below half of any format's least
        // number either way.
        let significand = bits & ((1 << F64_MANTISSA_BITS) - 1) | 1 << F64_MANTISSA_BITS;
        let binade = exponent.max(self.min_exponent());
        // x = significand · 2^(exponent − 52), wanted in units of 2^(binade − mantissa_bits).
        let dropped = (F64_MANTISSA_BITS - self.mantissa_bits) + (binade - exponent) as u32;
        let units = if dropped > f64::MANTISSA_DIGITS {
            0
        } else {
            let kept = significand >> dropped;
            let rest = significand & ((1 << dropped) - 1);
            let half = 1 << (dropped - 1);
            let up = rest > half || (rest == half && kept & 1 == 1);
            (kept + u64::from(up)) as u32
        };
        // `units` carries the implicit bit of a normal number, which adds one to the exponent field; a carry
        // out of the mantissa does the same.
        (((binade - self.min_exponent()) as u32) << self.mantissa_bits) + units
    }

    /// The number of a code; bits above [`width`](Self::width) are ignored. Exact.
    pub fn decode(&self, code: u32) -> f64 {
        let negative = code & self.sign_bit() != 0;
        let magnitude = code & (self.sign_bit() - 1);
        if self.specials == Specials::NanNegativeZero && negative && magnitude == 0 {
            return f64::NAN;
        }
        let sign = if negative { -1.0 } else { 1.0 };
        if magnitude > self.max_code() {
            let infinite = self.specials == Specials::InfinityAndNan && magnitude == self.max_code() + 1;
            return if infinite { sign * f64::INFINITY } else { f64::NAN.copysign(sign) };
        }
        let field = (magnitude >> self.mantissa_bits) as i32;
        let mantissa = magnitude & ((1 << self.mantissa_bits) - 1);
        let implicit = if field == 0 { 0 } else { 1 << self.mantissa_bits };
        let exponent = field.max(1) - self.bias - self.mantissa_bits as i32;
        sign * f64::from(mantissa + implicit) * power_of_two(exponent)
    }

    /// The number of this format nearest to `x`; see [`encode`](Self::encode) for ties and overflow.
    ///
    /// ```
    /// use rlx_eval::numeric::minifloat::{BF16, F8E4M3FN};
    /// assert_eq!(BF16.round(1.0 + 1.0 / 256.0, false), 1.0);
    /// assert_eq!(F8E4M3FN.round(1e6, true), 448.0);
    /// ```
    pub fn round(&self, x: f64, saturate: bool) -> f64 {
        self.decode(self.encode(x, saturate))
    }
}

/// 2^exponent, for exponents of normal `f64` numbers; those of all formats here are.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + F64_BIAS) as u64) << F64_MANTISSA_BITS)
}

/// How a value between two powers of two becomes one of them (`round_mode` of ONNX `Cast`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleRounding {
    /// To the greater power.
    Up,
    /// To the lesser power.
    Down,
    /// To the nearer power, the greater one on ties (1.5 · 2ᵏ).
    Nearest,
}

/// The e8m0 code of NaN.
const E8M0_NAN: u8 = 0xff;
/// The e8m0 code of 2^127, the greatest value.
const E8M0_MAX: u8 = 0xfe;
/// e8m0 code c stands for 2^(c − 127).
const E8M0_BIAS: i32 = 127;

/// The f8e8m0fnu code of `x`: a power of two from 2^−127 to 2^127.
///
/// `x` is rounded with an unbounded exponent range first. What then lies beyond the ends, zero and +∞ becomes
/// the nearer end with `saturate`, else NaN. NaN stays NaN. Negative numbers, which ONNX leaves unspecified,
/// become NaN, since the format has no sign; −0 counts as zero.
pub fn encode_e8m0(x: f64, saturate: bool, rounding: ScaleRounding) -> u8 {
    let (below, above) = if saturate { (0, E8M0_MAX) } else { (E8M0_NAN, E8M0_NAN) };
    if x.is_nan() || x < 0.0 {
        return E8M0_NAN;
    }
    if x == 0.0 {
        return below;
    }
    if x.is_infinite() {
        return above;
    }
    // x = fraction · 2^exponent with fraction in [0.5, 1).
    let (fraction, exponent) = libm::frexp(x);
    let up = match rounding {
        ScaleRounding::Up => fraction > 0.5,
        ScaleRounding::Down => false,
        ScaleRounding::Nearest => fraction >= 0.75,
    };
    match exponent - 1 + i32::from(up) + E8M0_BIAS {
        ..0 => below,
        code if code > i32::from(E8M0_MAX) => above,
        code => code as u8,
    }
}

/// The number of an f8e8m0fnu code: 2^(code − 127), or NaN for 255.
pub fn decode_e8m0(code: u8) -> f64 {
    if code == E8M0_NAN { f64::NAN } else { power_of_two(i32::from(code) - E8M0_BIAS) }
}
