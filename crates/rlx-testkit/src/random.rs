//! Inputs drawn from a seeded generator, from the domain that an operation is defined on.

use crate::array::Array;
use rlx_ir::{DType, Literal};

/// SplitMix64 (Steele, Lea & Flood 2014): small, good enough for test data, the same everywhere.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

/// What numbers to draw.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// Even over [low, high); integers and bools of it for integer types.
    Range(f64, f64),
    /// Whole numbers from low to high, both included.
    Whole(i64, i64),
    /// Standard normal.
    Normal,
    /// As the inner domain, but one element in four is NaN, an infinity, a zero of either sign, or a subnormal.
    /// For integer types: the type's ends, 0, 1 and −1.
    Special(Box<Domain>),
    /// Magnitudes over the whole range of the type, evenly in the exponent; either sign.
    Extreme,
    /// Nonzero magnitudes of [low, high), either sign.
    AwayFromZero(f64, f64),
    /// Each row along the last axis a permutation of 0, 1, 2 ….
    Permutation,
    /// The same number everywhere.
    Constant(f64),
}

impl Domain {
    /// This domain with NaN, infinities, zeros and ends sprinkled in.
    pub fn special(self) -> Domain {
        Domain::Special(Box::new(self))
    }
}

impl Random {
    /// A generator; equal seeds give equal numbers.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// A generator seeded by a text (FNV-1a), so that a case draws the same numbers wherever it stands in the table.
    pub fn named(name: &str) -> Random {
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        Random::new(hash)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number of [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number of [low, high).
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A whole number below `n`, which must not be 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A standard normal number (Box–Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A tensor of this type, with elements of the domain. For complex types both parts are drawn.
    ///
    /// # Panics
    /// For text and block formats, which have no numbers to draw.
    pub fn literal(&mut self, dtype: DType, dims: &[usize], domain: &Domain) -> Literal {
        let mut dims = dims.to_vec();
        if dtype.is_complex() {
            dims.push(2);
        }
        let n: usize = dims.iter().product();
        let data = match domain {
            Domain::Permutation => {
                let last = dims.last().copied().unwrap_or(1).max(1);
                (0..n / last).flat_map(|_| self.permutation(last)).collect()
            }
            _ => (0..n).map(|_| self.number(dtype, domain)).collect::<Vec<f64>>(),
        };
        Array { dims, data }.to_literal(dtype)
    }

    fn permutation(&mut self, n: usize) -> Vec<f64> {
        let mut order: Vec<f64> = (0..n).map(|i| i as f64).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }

    fn number(&mut self, dtype: DType, domain: &Domain) -> f64 {
        match domain {
            // A bool drawn from a range that includes 0 and more would be true nearly always.
            Domain::Range(..) | Domain::Normal if dtype == DType::Bool => (self.bits() & 1) as f64,
            Domain::Range(low, high) => self.range(*low, *high),
            Domain::Whole(low, high) => *low as f64 + self.below((high - low + 1) as usize) as f64,
            Domain::Normal => self.normal(),
            Domain::Special(inner) => {
                if self.below(4) == 0 {
                    *self.pick(specials(dtype))
                } else {
                    self.number(dtype, inner)
                }
            }
            Domain::Extreme => self.extreme(dtype),
            Domain::AwayFromZero(low, high) => {
                let magnitude = self.range(*low, *high);
                if self.bits() & 1 == 0 || unsigned(dtype) { magnitude } else { -magnitude }
            }
            Domain::Constant(value) => *value,
            Domain::Permutation => 0.0,
        }
    }

    fn extreme(&mut self, dtype: DType) -> f64 {
        let (low, high) = match dtype {
            DType::F64 | DType::C128 => (-1074.0, 1024.0),
            DType::F32 | DType::BF16 | DType::C64 => (-149.0, 128.0),
            DType::F16 => (-24.0, 16.0),
            DType::F8E5M2 | DType::F8E5M2FNUZ => (-16.0, 15.0),
            dtype if dtype.is_float() => (-9.0, 8.0),
            dtype => (0.0, f64::from(dtype.bits().unwrap_or(8)) - if unsigned(dtype) { 0.0 } else { 1.0 }),
        };
        let magnitude = self.range(low, high - 1e-3).exp2();
        if self.bits() & 1 == 0 || unsigned(dtype) { magnitude } else { -magnitude }
    }
}

fn unsigned(dtype: DType) -> bool {
    dtype.class() == rlx_ir::DTypeClass::Unsigned || dtype == DType::Bool
}

/// Numbers that trip implementations. Integer ends are given as floats and saturate on the way into the type.
fn specials(dtype: DType) -> &'static [f64] {
    match dtype {
        dtype if dtype.is_float() || dtype.is_complex() => {
            &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e-40, -1e-40, 1.0, -1.0]
        }
        dtype if unsigned(dtype) => &[0.0, 1.0, 1e30],
        _ => &[0.0, 1.0, -1.0, 1e30, -1e30],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_draw_equal_numbers() {
        let draw = |name| Random::named(name).literal(DType::F32, &[5], &Domain::Normal);
        assert_eq!(draw("a"), draw("a"));
        assert_ne!(draw("a"), draw("b"));
    }

    #[test]
    fn special_numbers_are_sprinkled() {
        let domain = Domain::Normal.special();
        let x = Random::new(1).literal(DType::F32, &[200], &domain).to_vec::<f32>().unwrap_or_default();
        assert!(x.iter().any(|v| v.is_nan()) && x.iter().any(|v| v.is_infinite()));
        assert!(x.iter().filter(|v| v.is_finite()).count() > 100);
    }

    #[test]
    fn permutations_hold_each_index_once() {
        let x = Random::new(2)
            .literal(DType::I64, &[3, 7], &Domain::Permutation)
            .to_i64_vec()
            .unwrap_or_default();
        for row in x.chunks(7) {
            let mut sorted = row.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5, 6]);
        }
    }
}
