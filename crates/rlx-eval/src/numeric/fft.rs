//! The discrete Fourier transform of any length, in `f64`.
//!
//! X\[k\] = Σⱼ x\[j\] exp(∓2πi jk/n), with − forward and + inverse; the inverse divides by n. Small prime factors
//! are split off by decimation in time (Cooley and Tukey, 1965); what is left of the length, a product of large
//! primes, goes through Bluestein's chirp convolution (Bluestein, 1970). The error is about 1e-16 · log₂ n of
//! the root mean square.

/// Real and imaginary part.
pub type Complex = (f64, f64);

/// The sign of the exponent, and whether the result is divided by the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// exp(−2πi jk/n), not scaled.
    Forward,
    /// exp(+2πi jk/n), divided by n.
    Inverse,
}

/// Primes up to this are summed directly, greater ones by Bluestein.
const GREATEST_DIRECT_PRIME: usize = 61;

/// A transform of one length and direction, with its roots of unity.
#[derive(Debug, Clone)]
pub struct Dft {
    length: usize,
    direction: Direction,
    /// exp(∓2πi k/n) for k < n.
    roots: Vec<Complex>,
    /// The primes split off, in that order; their product times the chirp's length is `length`.
    factors: Vec<usize>,
    chirp: Option<Box<Chirp>>,
}

/// Bluestein's method for one length n: jk = (j² + k² − (k − j)²)/2 makes the sum a convolution, done by
/// transforms of a power of two.
#[derive(Debug, Clone)]
struct Chirp {
    /// exp(∓πi j²/n) for j < n.
    chirp: Vec<Complex>,
    /// The transform of the conjugate chirp, wrapped around symmetrically.
    spectrum: Vec<Complex>,
    forward: Dft,
    inverse: Dft,
}

impl Dft {
    /// Prepares transforms of `length` numbers; 0 and 1 are lengths too.
    pub fn new(length: usize, direction: Direction) -> Dft {
        let mut factors = Vec::new();
        let mut rest = length.max(1);
        for prime in 2..=GREATEST_DIRECT_PRIME {
            while rest.is_multiple_of(prime) {
                factors.push(prime);
                rest /= prime;
            }
        }
        let chirp = (rest > 1).then(|| Box::new(Chirp::new(rest, direction)));
        Dft { length, direction, roots: roots_of_unity(length, direction), factors, chirp }
    }

    /// The transform of `input`.
    ///
    /// # Panics
    /// If `input` does not have the length the transform was made for.
    pub fn apply(&self, input: &[Complex]) -> Vec<Complex> {
        assert_eq!(input.len(), self.length, "a transform takes inputs of its own length");
        let mut output = vec![(0.0, 0.0); self.length];
        if self.length > 0 {
            self.split(input, 1, &self.factors, &mut output);
        }
        if self.direction == Direction::Inverse {
            let scale = self.length as f64;
            output.iter_mut().for_each(|(real, imaginary)| {
                *real /= scale;
                *imaginary /= scale;
            });
        }
        output
    }

    /// Unscaled transform of every `stride`-th number of `input`, `output.len()` of them, whose length has the
    /// prime `factors` still to be split off.
    fn split(&self, input: &[Complex], stride: usize, factors: &[usize], output: &mut [Complex]) {
        let Some((&prime, rest)) = factors.split_first() else {
            match &self.chirp {
                Some(chirp) => {
                    let gathered: Vec<Complex> = input.iter().step_by(stride).copied().collect();
                    output.copy_from_slice(&chirp.apply(&gathered));
                }
                None => output[0] = input[0],
            }
            return;
        };
        let length = output.len();
        let part = length / prime;
        for (residue, block) in output.chunks_exact_mut(part).enumerate() {
            self.split(&input[residue * stride..], stride * prime, rest, block);
        }
        // The root of this level's length is the `stride`-th power of the whole length's root.
        let root = |power: usize| self.roots[power % length * stride];
        let mut twisted = vec![(0.0, 0.0); prime];
        for k in 0..part {
            for (residue, value) in twisted.iter_mut().enumerate() {
                *value = multiply(output[residue * part + k], root(residue * k));
            }
            for block in 0..prime {
                let terms = twisted.iter().enumerate();
                output[block * part + k] = terms.fold((0.0, 0.0), |sum, (residue, &value)| {
                    add(sum, multiply(value, root(residue * block * part)))
                });
            }
        }
    }
}

impl Chirp {
    fn new(length: usize, direction: Direction) -> Chirp {
        let roots = roots_of_unity(2 * length, direction);
        // j² modulo 2n, stepwise, so that the square of a great index never overflows.
        let mut square = 0;
        let mut chirp = Vec::with_capacity(length);
        for j in 0..length {
            chirp.push(roots[square]);
            square = (square + 2 * j + 1) % (2 * length);
        }
        let padded = (2 * length - 1).next_power_of_two();
        let mut wrapped = vec![(0.0, 0.0); padded];
        for (j, &(real, imaginary)) in chirp.iter().enumerate() {
            wrapped[j] = (real, -imaginary);
            wrapped[(padded - j) % padded] = (real, -imaginary);
        }
        let forward = Dft::new(padded, Direction::Forward);
        let spectrum = forward.apply(&wrapped);
        Chirp { chirp, spectrum, forward, inverse: Dft::new(padded, Direction::Inverse) }
    }

    /// The unscaled transform.
    fn apply(&self, input: &[Complex]) -> Vec<Complex> {
        let mut padded = vec![(0.0, 0.0); self.spectrum.len()];
        for (slot, (&value, &chirp)) in padded.iter_mut().zip(input.iter().zip(&self.chirp)) {
            *slot = multiply(value, chirp);
        }
        let mut product = self.forward.apply(&padded);
        for (value, &factor) in product.iter_mut().zip(&self.spectrum) {
            *value = multiply(*value, factor);
        }
        let convolved = self.inverse.apply(&product);
        self.chirp.iter().zip(convolved).map(|(&chirp, value)| multiply(chirp, value)).collect()
    }
}

/// exp(∓2πi k/n) for k < n; every angle is first brought into one eighth of the circle, where sine and cosine
/// keep their relative accuracy.
fn roots_of_unity(length: usize, direction: Direction) -> Vec<Complex> {
    let sign = match direction {
        Direction::Forward => -1.0,
        Direction::Inverse => 1.0,
    };
    (0..length)
        .map(|k| {
            let (quadrant, rest) = (4 * k / length, 4 * k % length);
            let quarter =
                |part: usize| libm::sincos(std::f64::consts::FRAC_PI_2 * part as f64 / length as f64);
            let (sine, cosine) = if 2 * rest <= length {
                quarter(rest)
            } else {
                let (sine, cosine) = quarter(length - rest);
                (cosine, sine)
            };
            let (real, imaginary) = match quadrant {
                0 => (cosine, sine),
                1 => (-sine, cosine),
                2 => (-cosine, -sine),
                _ => (sine, -cosine),
            };
            (real, sign * imaginary)
        })
        .collect()
}

fn add(lhs: Complex, rhs: Complex) -> Complex {
    (lhs.0 + rhs.0, lhs.1 + rhs.1)
}

fn multiply(lhs: Complex, rhs: Complex) -> Complex {
    (lhs.0 * rhs.0 - lhs.1 * rhs.1, lhs.0 * rhs.1 + lhs.1 * rhs.0)
}

/// Transforms a row-major array of the given dims along one axis, in place.
///
/// # Panics
/// If `axis` is not an axis of `dims` or `data` does not have as many elements as `dims` say.
pub fn transform_axis(data: &mut [Complex], dims: &[usize], axis: usize, direction: Direction) {
    assert_eq!(data.len(), dims.iter().product::<usize>(), "as many elements as the dims say");
    let length = dims[axis];
    if data.is_empty() {
        return;
    }
    let stride: usize = dims[axis + 1..].iter().product();
    let dft = Dft::new(length, direction);
    let mut line = vec![(0.0, 0.0); length];
    for block in data.chunks_exact_mut(length * stride) {
        for offset in 0..stride {
            for (slot, value) in line.iter_mut().zip(block[offset..].iter().step_by(stride)) {
                *slot = *value;
            }
            for (slot, value) in block[offset..].iter_mut().step_by(stride).zip(dft.apply(&line)) {
                *slot = value;
            }
        }
    }
}

/// The first n/2 + 1 numbers of the forward transform of n real numbers (of none: nothing). The others are
/// their conjugates: X\[n − k\] = X\[k\]*.
pub fn real_forward(input: &[f64]) -> Vec<Complex> {
    let complex: Vec<Complex> = input.iter().map(|&real| (real, 0.0)).collect();
    let mut spectrum = Dft::new(input.len(), Direction::Forward).apply(&complex);
    if let Some(first) = spectrum.first_mut() {
        first.1 = 0.0;
        spectrum.truncate(input.len() / 2 + 1);
        if input.len().is_multiple_of(2) {
            spectrum[input.len() / 2].1 = 0.0;
        }
    }
    spectrum
}

/// The inverse of [`real_forward`]: `length` real numbers from the first half of their spectrum.
///
/// A half spectrum longer than `length`/2 + 1 is cut, a shorter one is taken as followed by zeros. The
/// imaginary parts of the first number and, for an even length, of the one at `length`/2 are ignored, as no
/// real numbers give them.
pub fn real_inverse(half_spectrum: &[Complex], length: usize) -> Vec<f64> {
    let mut spectrum = vec![(0.0, 0.0); length];
    for k in 0..half_spectrum.len().min(length / 2 + 1).min(length) {
        let (real, imaginary) = half_spectrum[k];
        let mirror = (length - k) % length;
        if mirror == k {
            spectrum[k] = (real, 0.0);
        } else {
            spectrum[k] = (real, imaginary);
            spectrum[mirror] = (real, -imaginary);
        }
    }
    Dft::new(length, Direction::Inverse).apply(&spectrum).into_iter().map(|(real, _)| real).collect()
}
