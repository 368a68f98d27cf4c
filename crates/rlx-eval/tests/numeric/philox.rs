//! Philox against the known answers of its authors, and the mapping that `random_bits` documents.

use rlx_eval::numeric::philox::{box_muller, philox4x32, random_bits, uniform};

/// The known-answer vectors of philox4x32 with 10 rounds from the authors' Random123 distribution.
#[test]
fn published_known_answers() {
    assert_eq!(philox4x32([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    assert_eq!(
        philox4x32([u32::MAX; 4], [u32::MAX; 2]),
        [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
    );
    assert_eq!(
        philox4x32([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
    );
}

#[test]
fn seed_stream_and_position_map_onto_key_and_counter_words() {
    let key = [0x2222_2222_1111_1111, 0x4444_4444_3333_3333];
    let position = 4 * 0x0000_0006_0000_0005_u64;
    assert_eq!(
        random_bits(key, position, 4),
        philox4x32([5, 6, 0x3333_3333, 0x4444_4444], [0x1111_1111, 0x2222_2222])
    );
}

#[test]
fn a_draw_is_a_window_on_its_stream() {
    let all = random_bits([1, 2], 0, 41);
    for start in 0..9 {
        assert_eq!(random_bits([1, 2], start as u64, 30), all[start..start + 30]);
    }
    assert!(random_bits([1, 2], 0, 0).is_empty());
    assert_ne!(random_bits([1, 3], 0, 41), all);
}

#[test]
fn the_last_position_is_followed_by_the_first() {
    let around = random_bits([9, 9], u64::MAX, 3);
    assert_eq!(around[1..], random_bits([9, 9], 0, 2));
}

#[test]
fn uniform_takes_the_top_24_bits() {
    assert_eq!([uniform(0), uniform(0xff), uniform(0x100)], [0.0, 0.0, 2_f64.powi(-24)]);
    assert_eq!(uniform(u32::MAX), 1.0 - 2_f64.powi(-24));
    assert_eq!(f64::from(uniform(u32::MAX) as f32), uniform(u32::MAX));
}

#[test]
fn normal_numbers_are_finite_at_the_ends_and_have_the_moments() {
    assert_eq!(box_muller([u32::MAX, 0])[0], 0.0);
    let greatest = (48.0 * std::f64::consts::LN_2).sqrt();
    assert!((box_muller([0, 0])[0] - greatest).abs() < 1e-14);
    let numbers: Vec<f64> = random_bits([3, 4], 0, 40_000)
        .chunks_exact(2)
        .flat_map(|words| box_muller([words[0], words[1]]))
        .collect();
    let moment = |power: i32| numbers.iter().map(|x| x.powi(power)).sum::<f64>() / numbers.len() as f64;
    // Five standard errors of each moment of 40,000 standard normal numbers.
    assert!(moment(1).abs() < 5.0 * 0.005, "{}", moment(1));
    assert!((moment(2) - 1.0).abs() < 5.0 * 0.00707, "{}", moment(2));
    assert!((moment(4) - 3.0).abs() < 5.0 * 0.049, "{}", moment(4));
}
