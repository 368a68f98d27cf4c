//! The melody of the demonstration, as a list of notes and as sound.
//!
//! The tune is the beginning of the "Ode to Joy" (L. van Beethoven, 1824, in the public domain) with a bass below it.
//! It is played by a plain plucked string made of decaying harmonics, so that the notes are known exactly.

use std::f64::consts::TAU;

use crate::notes::Note;

/// Rate of the sound that [`play`] makes: what players expect, and twice the model's.
pub(crate) const SAMPLE_RATE: u32 = 44_100;

/// Length of a quarter note in seconds (126 beats a minute).
const BEAT: f64 = 60.0 / 126.0;

/// A note is let go a little before its written end, as a player would.
const HELD_PART: f64 = 0.9;

/// Silence after the last note, in seconds.
const TAIL: f64 = 0.35;

/// The tune and the bass, chord by chord: (MIDI key of the tune, MIDI key of the bass, beats).
const CHORDS: [(u8, u8, f64); 15] = [
    (76, 48, 1.0),
    (76, 52, 1.0),
    (77, 53, 1.0),
    (79, 52, 1.0),
    (79, 55, 1.0),
    (77, 50, 1.0),
    (76, 48, 1.0),
    (74, 55, 1.0),
    (72, 57, 1.0),
    (72, 53, 1.0),
    (74, 55, 1.0),
    (76, 48, 1.0),
    (76, 55, 1.5),
    (74, 55, 0.5),
    (74, 59, 2.0),
];

/// The notes of the melody, by onset.
pub(crate) fn score() -> Vec<Note> {
    let mut beats = 0.0;
    let mut notes = Vec::with_capacity(2 * CHORDS.len());
    for (tune, bass, length) in CHORDS {
        for midi in [bass, tune] {
            notes.push(Note {
                onset: beats * BEAT,
                duration: length * BEAT * HELD_PART,
                midi,
                confidence: 1.0,
            });
        }
        beats += length;
    }
    notes
}

/// Plays notes: one channel at [`SAMPLE_RATE`], scaled to a peak of 0.8.
pub(crate) fn play(notes: &[Note]) -> Vec<f32> {
    let end = notes.iter().map(|note| note.onset + note.duration).fold(0.0, f64::max) + TAIL;
    let mut sound = vec![0.0_f64; (end * f64::from(SAMPLE_RATE)).ceil() as usize];
    for note in notes {
        pluck(note, &mut sound);
    }
    let peak = sound.iter().fold(0.0_f64, |peak, sample| peak.max(sample.abs()));
    let gain = if peak > 0.0 { 0.8 / peak } else { 0.0 };
    sound.into_iter().map(|sample| (sample * gain) as f32).collect()
}

/// Adds one plucked note to the sound: `Σ_k k^-1.6 · exp(-t (1 + 0.35 (k - 1)) / 0.9 s) · sin(2π k f t)`, with a rise of
/// 4 ms and a fall of 50 ms after the note's end. Higher harmonics die away sooner, as on a real string.
fn pluck(note: &Note, sound: &mut [f64]) {
    const HARMONICS: u32 = 12;
    const DECAY: f64 = 0.9;
    const RISE: f64 = 0.004;
    const FALL: f64 = 0.05;

    let rate = f64::from(SAMPLE_RATE);
    let frequency = 440.0 * ((f64::from(note.midi) - 69.0) / 12.0).exp2();
    let first = (note.onset * rate).round() as usize;
    let length = ((note.duration + FALL) * rate).round() as usize;
    for (index, sample) in sound.iter_mut().skip(first).take(length).enumerate() {
        let time = index as f64 / rate;
        let envelope = (time / RISE).min(1.0) * ((note.duration + FALL - time) / FALL).clamp(0.0, 1.0);
        let string: f64 = (1..=HARMONICS)
            .map(f64::from)
            .take_while(|harmonic| harmonic * frequency < rate / 2.0)
            .map(|harmonic| {
                let decay = (-time * (1.0 + 0.35 * (harmonic - 1.0)) / DECAY).exp();
                harmonic.powf(-1.6) * decay * (TAU * harmonic * frequency * time).sin()
            })
            .sum();
        *sample += envelope * string;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_is_four_bars_in_order_of_time() {
        let score = score();
        assert!(score.windows(2).all(|pair| pair[0].onset <= pair[1].onset));
        assert_eq!(CHORDS.iter().map(|&(_, _, length)| length).sum::<f64>(), 16.0);
    }

    #[test]
    fn the_sound_is_full_but_never_over() {
        let sound = play(&score());
        let peak = sound.iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
        assert!((peak - 0.8).abs() < 1e-6, "{peak}");
        assert!((6.0..8.5).contains(&(sound.len() as f64 / f64::from(SAMPLE_RATE))));
    }

    #[test]
    fn a_note_sounds_at_its_pitch_and_only_while_it_lasts() {
        let note = Note { onset: 0.5, duration: 0.5, midi: 69, confidence: 1.0 };
        let sound = play(&[note]);
        let at = |seconds: f64| (seconds * f64::from(SAMPLE_RATE)) as usize;
        assert!(sound[..at(0.5)].iter().all(|&sample| sample == 0.0));
        assert!(sound[at(1.06)..].iter().all(|&sample| sample == 0.0));
        // A4 has 440 periods a second, so one period later the sound is nearly the same.
        let period = f64::from(SAMPLE_RATE) / 440.0;
        let (here, later) = (at(0.6), at(0.6) + (44.0 * period) as usize);
        assert!(
            (sound[here..here + 100].iter().zip(&sound[later..later + 100]))
                .all(|(a, b)| (a - b).abs() < 0.15)
        );
    }
}
