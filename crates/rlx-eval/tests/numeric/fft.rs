//! Transforms against the defining sum and numpy.

use rlx_eval::numeric::fft::{Complex, Dft, Direction, real_forward, real_inverse, transform_axis};

use crate::{f64_of, numbers, records};

const GOLDENS: &str = include_str!("../golden/numeric/fft.txt");

fn input(length: usize) -> Vec<Complex> {
    (0..length)
        .map(|j| {
            let part = |factor: usize, shift: usize, modulus: usize| {
                ((factor * j + shift) % modulus) as f64 / modulus as f64 - 0.5
            };
            (part(7919, 13, 101), part(104_729, 7, 97))
        })
        .collect()
}

/// The defining sum.
fn sum(input: &[Complex], direction: Direction) -> Vec<Complex> {
    let length = input.len();
    let (sign, scale) = match direction {
        Direction::Forward => (-1.0, 1.0),
        Direction::Inverse => (1.0, length as f64),
    };
    (0..length)
        .map(|k| {
            let total = input.iter().enumerate().fold((0.0, 0.0), |total: Complex, (j, value)| {
                let angle = sign * std::f64::consts::TAU * (j * k % length) as f64 / length as f64;
                let (sine, cosine) = angle.sin_cos();
                (total.0 + value.0 * cosine - value.1 * sine, total.1 + value.0 * sine + value.1 * cosine)
            });
            (total.0 / scale, total.1 / scale)
        })
        .collect()
}

/// The root-mean-square difference over the root mean square of `expected`.
fn difference(found: &[Complex], expected: &[Complex]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let square = |values: &mut dyn Iterator<Item = Complex>| -> f64 {
        values.map(|(real, imaginary)| real * real + imaginary * imaginary).sum()
    };
    let error = square(&mut found.iter().zip(expected).map(|(a, b)| (a.0 - b.0, a.1 - b.1)));
    (error / square(&mut expected.iter().copied()).max(f64::MIN_POSITIVE)).sqrt()
}

#[test]
fn every_length_agrees_with_the_defining_sum() {
    // Beyond these the rounding errors of the defining sum itself, which grow with the length, show.
    let greater = [211, 256, 343, 400, 480, 512, 1009];
    for length in (0..=200).chain(greater) {
        for direction in [Direction::Forward, Direction::Inverse] {
            let found = Dft::new(length, direction).apply(&input(length));
            let error = difference(&found, &sum(&input(length), direction));
            assert!(error < 3e-15, "length {length}, {direction:?}: {error:e}");
        }
    }
}

#[test]
fn the_inverse_gives_the_input_back_to_rounding() {
    for length in [1, 2, 31, 128, 134, 1000, 1021, 4096, 67 * 71, 65_537] {
        let spectrum = Dft::new(length, Direction::Forward).apply(&input(length));
        let back = Dft::new(length, Direction::Inverse).apply(&spectrum);
        let error = difference(&back, &input(length));
        assert!(error < 2e-15, "length {length}: {error:e}");
    }
}

#[test]
fn numpy_gives_the_same() {
    let mut seen = 0;
    for words in records(GOLDENS) {
        let length: usize = words[1].parse().expect("a length");
        let parts: Vec<f64> = words[2..].iter().map(|word| f64_of(word)).collect();
        let expected: Vec<Complex> = parts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        let reals: Vec<f64> = input(length).iter().map(|value| value.0).collect();
        let found = match words[0] {
            "forward" => Dft::new(length, Direction::Forward).apply(&input(length)),
            "inverse" => Dft::new(length, Direction::Inverse).apply(&input(length)),
            _ => real_forward(&reals),
        };
        let error = difference(&found, &expected);
        assert!(error < 2e-15, "{} {length}: {error:e}", words[0]);
        seen += 1;
    }
    assert_eq!(seen, 21);
}

#[test]
fn each_axis_of_an_array_is_transformed_on_its_own() {
    let dims = [2, 3, 5];
    let data = input(30);
    for axis in 0..3 {
        let mut found = data.clone();
        transform_axis(&mut found, &dims, axis, Direction::Forward);
        let stride: usize = dims[axis + 1..].iter().product();
        for start in (0..30).filter(|index| (index / stride).is_multiple_of(dims[axis])) {
            let line = |from: &[Complex]| -> Vec<Complex> {
                (0..dims[axis]).map(|step| from[start + step * stride]).collect()
            };
            let error = difference(&line(&found), &sum(&line(&data), Direction::Forward));
            assert!(error < 1e-15, "axis {axis}, start {start}: {error:e}");
        }
    }
    transform_axis(&mut [], &[2, 0, 5], 1, Direction::Forward);
    transform_axis(&mut [], &[2, 0, 5], 2, Direction::Forward);
}

#[test]
fn real_numbers_come_back_from_half_their_spectrum() {
    for length in [0, 1, 2, 3, 8, 15, 16, 67, 100] {
        let reals = numbers(length);
        let half = real_forward(&reals);
        assert_eq!(half.len(), if length == 0 { 0 } else { length / 2 + 1 });
        let back = real_inverse(&half, length);
        assert_eq!(back.len(), length);
        for (found, expected) in back.iter().zip(&reals) {
            assert!((found - expected).abs() < 1e-15, "length {length}");
        }
    }
}

#[test]
fn a_half_spectrum_is_cut_or_followed_by_zeros_and_its_ends_taken_as_real() {
    assert_eq!(real_inverse(&[(4.0, 7.0)], 4), [1.0; 4]);
    assert_eq!(real_inverse(&[(4.0, 0.0), (0.0, 0.0), (0.0, 9.0), (5.0, 5.0)], 4), [1.0; 4]);
}
