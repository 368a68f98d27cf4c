//! From sound to windows for the basic-pitch model, and from what the model says to notes.
//!
//! R. M. Bittner, J. J. Bosch, D. Rubinstein, G. Meseguer-Brocal, S. Ewert: "A Lightweight Instrument-Agnostic Model for
//! Polyphonic Note Transcription and Multipitch Estimation", ICASSP 2022; the thresholds are those of its section 3.
//! The model gives, for each frame of 256 samples and each of 88 keys, how likely the key sounds ("note") and how
//! likely it is struck just then ("onset"). A note begins at a peak of the onsets and lasts while its key sounds.

use anyhow::{Context as _, ensure};

/// Rate of the sound that the model listens to.
pub(crate) const SAMPLE_RATE: u32 = 22_050;
/// Samples in one window of the model: two seconds less a frame.
pub(crate) const WINDOW_SAMPLES: usize = 43_844;
/// Keys of the piano, and of the model's note and onset outputs.
pub(crate) const KEYS: usize = 88;
/// MIDI number of the lowest key, A0.
pub(crate) const LOWEST_MIDI: u8 = 21;

/// Samples from one frame to the next.
const FRAME_SAMPLES: usize = 256;
/// Frames that the model gives for a window.
const WINDOW_FRAMES: usize = 172;
/// Frames left out at each end of a window, where the model lacks sound to look at.
const MARGIN_FRAMES: usize = 15;
/// Frames kept from a window. Windows follow each other by just as many, so that frames lie on one even grid.
const KEPT_FRAMES: usize = WINDOW_FRAMES - 2 * MARGIN_FRAMES;

/// An onset must be at least this likely.
const ONSET_THRESHOLD: f32 = 0.5;
/// A key sounds while it is at least this likely.
const NOTE_THRESHOLD: f32 = 0.3;
/// A note ends when its key has been below the threshold for this many frames.
const TOLERATED_GAP: usize = 11;
/// Shorter notes (128 ms) are dropped.
const SHORTEST_NOTE: usize = 11;

/// One note.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Note {
    /// When it begins, in seconds.
    pub(crate) onset: f64,
    /// How long it lasts, in seconds.
    pub(crate) duration: f64,
    /// Its MIDI key number; 69 is A4, 440 Hz.
    pub(crate) midi: u8,
    /// How sure it is, 0..=1: the mean over its frames of the likelihood that its key sounds.
    pub(crate) confidence: f32,
}

impl Note {
    /// Name and octave, as `C#4`.
    pub(crate) fn name(&self) -> String {
        const NAMES: [&str; 12] = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"];
        format!("{}{}", NAMES[usize::from(self.midi % 12)], i32::from(self.midi / 12) - 1)
    }
}

/// What the model says about one window: frames × keys, row by row.
#[derive(Debug, Clone)]
pub(crate) struct WindowOutput {
    /// How likely each key sounds, `[172, 88]`.
    pub(crate) note: Vec<f32>,
    /// How likely each key is struck, `[172, 88]`.
    pub(crate) onset: Vec<f32>,
}

/// Cuts sound into windows for the model, [`WINDOW_SAMPLES`] each. They overlap by the margins that [`notes`] leaves
/// out; the first begins with a margin of silence, and the last ends with silence.
pub(crate) fn windows(samples: &[f32]) -> Vec<Vec<f32>> {
    let margin = MARGIN_FRAMES * FRAME_SAMPLES;
    let count = samples.len().div_ceil(KEPT_FRAMES * FRAME_SAMPLES);
    let window = |index: usize| {
        let start = index * KEPT_FRAMES * FRAME_SAMPLES;
        let before = margin.saturating_sub(start);
        let sounding = samples.iter().skip(start.saturating_sub(margin)).copied();
        let silence = std::iter::repeat(0.0);
        silence.clone().take(before).chain(sounding).chain(silence).take(WINDOW_SAMPLES).collect()
    };
    (0..count).map(window).collect()
}

/// The notes heard in consecutive windows, in order of time.
///
/// # Errors
/// If an output has not 172 × 88 values, or one that is no number.
pub(crate) fn notes(outputs: &[WindowOutput]) -> anyhow::Result<Vec<Note>> {
    let sounding =
        Roll::from_windows(outputs.iter().map(|output| &output.note[..])).context("note output")?;
    let struck =
        Roll::from_windows(outputs.iter().map(|output| &output.onset[..])).context("onset output")?;
    let mut remaining = sounding.clone();
    let mut found = Vec::new();
    for key in 0..KEYS {
        let onsets = struck.peaks(key);
        for (index, &start) in onsets.iter().enumerate() {
            let next = onsets.get(index + 1).copied().unwrap_or(sounding.frames);
            let end = sounding.last_sounding(key, (start..next).collect()).map_or(start, |last| last + 1);
            remaining.silence(key, start..end);
            found.extend(sounding.note(key, start..end));
        }
    }
    // Notes without a clear onset: the most likely moment first, followed both ways.
    while let Some((frame, key)) = remaining.loudest() {
        let first = remaining.last_sounding(key, (0..=frame).rev().collect()).unwrap_or(frame);
        let last = remaining.last_sounding(key, (frame..remaining.frames).collect()).unwrap_or(frame);
        remaining.silence(key, first..last + 1);
        found.extend(sounding.note(key, first..last + 1));
    }
    found.sort_by(|a, b| a.onset.total_cmp(&b.onset).then(a.midi.cmp(&b.midi)));
    Ok(found)
}

/// Likelihoods over the whole sound: frames × keys.
#[derive(Clone)]
struct Roll {
    frames: usize,
    values: Vec<f32>,
}

impl Roll {
    /// Joins windows, leaving out the margins of each.
    fn from_windows<'a>(windows: impl Iterator<Item = &'a [f32]>) -> anyhow::Result<Self> {
        let mut values = Vec::new();
        for (index, window) in windows.enumerate() {
            let expected = WINDOW_FRAMES * KEYS;
            ensure!(window.len() == expected, "window {index}: {} values, expected {expected}", window.len());
            ensure!(window.iter().all(|value| value.is_finite()), "window {index}: a value is no number");
            values.extend_from_slice(&window[MARGIN_FRAMES * KEYS..(MARGIN_FRAMES + KEPT_FRAMES) * KEYS]);
        }
        Ok(Self { frames: values.len() / KEYS, values })
    }

    fn at(&self, frame: usize, key: usize) -> f32 {
        self.values[frame * KEYS + key]
    }

    /// Frames in which a key has a peak of at least [`ONSET_THRESHOLD`]; of a level top, the first frame.
    fn peaks(&self, key: usize) -> Vec<usize> {
        let value = |frame: Option<usize>| match frame {
            Some(frame) if frame < self.frames => self.at(frame, key),
            _ => 0.0,
        };
        let is_peak = |&frame: &usize| {
            let here = self.at(frame, key);
            here >= ONSET_THRESHOLD
                && here > value(frame.checked_sub(1))
                && here >= value(frame.checked_add(1))
        };
        (0..self.frames).filter(is_peak).collect()
    }

    /// Follows a key through frames until it has been quiet for [`TOLERATED_GAP`] of them; the last frame in which it
    /// sounded, if it did.
    fn last_sounding(&self, key: usize, frames: Vec<usize>) -> Option<usize> {
        let mut last = None;
        let mut quiet = 0;
        for frame in frames {
            if self.at(frame, key) >= NOTE_THRESHOLD {
                last = Some(frame);
                quiet = 0;
            } else {
                quiet += 1;
                if quiet == TOLERATED_GAP {
                    break;
                }
            }
        }
        last
    }

    /// Takes a note out, with what it spills into the keys beside it.
    fn silence(&mut self, key: usize, frames: std::ops::Range<usize>) {
        for frame in frames {
            for key in key.saturating_sub(1)..=(key + 1).min(KEYS - 1) {
                self.values[frame * KEYS + key] = 0.0;
            }
        }
    }

    /// The most likely frame and key, if any reaches [`NOTE_THRESHOLD`].
    fn loudest(&self) -> Option<(usize, usize)> {
        let (index, &value) = self.values.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        (value >= NOTE_THRESHOLD).then_some((index / KEYS, index % KEYS))
    }

    /// A key over some frames as a note, if it is long enough.
    fn note(&self, key: usize, frames: std::ops::Range<usize>) -> Option<Note> {
        let length = frames.len();
        if length < SHORTEST_NOTE {
            return None;
        }
        let seconds = |frames: usize| (frames * FRAME_SAMPLES) as f64 / f64::from(SAMPLE_RATE);
        let total: f32 = frames.clone().map(|frame| self.at(frame, key)).sum();
        Some(Note {
            onset: seconds(frames.start),
            duration: seconds(length),
            midi: LOWEST_MIDI + key as u8,
            confidence: total / length as f32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows that say what a grid of frames × keys says, which begins at time 0.
    fn spread(frames: usize, value: impl Fn(usize, usize) -> (f32, f32)) -> Vec<WindowOutput> {
        let count = frames.div_ceil(KEPT_FRAMES);
        let window = |index: usize| {
            let cell = |row: usize, key: usize| match (index * KEPT_FRAMES + row).checked_sub(MARGIN_FRAMES) {
                Some(frame) if frame < frames => value(frame, key),
                _ => (0.0, 0.0),
            };
            let cells = (0..WINDOW_FRAMES).flat_map(|row| (0..KEYS).map(move |key| (row, key)));
            let (note, onset) = cells.map(|(row, key)| cell(row, key)).unzip();
            WindowOutput { note, onset }
        };
        (0..count).map(window).collect()
    }

    fn frame_span(note: &Note) -> (usize, usize, u8) {
        let frames =
            |seconds: f64| (seconds * f64::from(SAMPLE_RATE) / FRAME_SAMPLES as f64).round() as usize;
        (frames(note.onset), frames(note.duration), note.midi)
    }

    #[test]
    fn windows_cover_the_sound_with_a_margin_on_each_side() {
        let samples: Vec<f32> = (1..=100_000).map(|n| n as f32).collect();
        let windows = windows(&samples);
        assert_eq!(windows.len(), 3);
        assert!(windows.iter().all(|window| window.len() == WINDOW_SAMPLES));
        let margin = 15 * 256;
        assert!(windows[0][..margin].iter().all(|&sample| sample == 0.0));
        assert_eq!(windows[0][margin], 1.0);
        assert_eq!(windows[1][margin], (142 * 256 + 1) as f32);
        assert_eq!(windows[1][0], windows[0][142 * 256]);
        assert_eq!(windows[2].last(), Some(&0.0));
    }

    #[test]
    fn no_sound_gives_no_windows_and_no_notes() {
        assert!(windows(&[]).is_empty());
        assert!(notes(&[]).unwrap().is_empty());
    }

    #[test]
    fn a_note_across_two_windows_is_one_note() {
        let outputs = spread(284, |frame, key| {
            let sounds = key == 48 && (120..180).contains(&frame);
            (if sounds { 0.8 } else { 0.0 }, if sounds && frame == 120 { 0.9 } else { 0.0 })
        });
        assert_eq!(outputs.len(), 2);
        let notes = notes(&outputs).unwrap();
        assert_eq!(notes.iter().map(frame_span).collect::<Vec<_>>(), [(120, 60, 69)]);
        assert!((notes[0].confidence - 0.8).abs() < 1e-6);
        assert_eq!(notes[0].name(), "A4");
    }

    #[test]
    fn a_second_onset_of_a_sounding_key_begins_a_new_note() {
        let outputs = spread(142, |frame, key| {
            let sounds = key == 10 && (20..80).contains(&frame);
            (if sounds { 0.6 } else { 0.0 }, if key == 10 && [20, 50].contains(&frame) { 0.7 } else { 0.0 })
        });
        let spans: Vec<_> = notes(&outputs).unwrap().iter().map(frame_span).collect();
        assert_eq!(spans, [(20, 30, 31), (50, 30, 31)]);
    }

    #[test]
    fn a_short_dip_is_bridged_and_a_long_one_ends_the_note() {
        for (dip, expected) in [(10, 50), (11, 20)] {
            let outputs = spread(142, |frame, key| {
                let in_dip = (40..40 + dip).contains(&frame);
                let sounds = key == 10 && (20..70).contains(&frame) && !in_dip;
                (if sounds { 0.6 } else { 0.1 }, if key == 10 && frame == 20 { 0.7 } else { 0.0 })
            });
            assert_eq!(frame_span(&notes(&outputs).unwrap()[0]), (20, expected, 31), "dip of {dip}");
        }
    }

    #[test]
    fn a_note_without_an_onset_is_found_and_its_spill_is_not() {
        let outputs = spread(142, |frame, key| {
            let likelihood = match key {
                30 => 0.9,
                29 | 31 => 0.4,
                _ => 0.0,
            };
            (if (30..60).contains(&frame) { likelihood } else { 0.0 }, 0.2)
        });
        let spans: Vec<_> = notes(&outputs).unwrap().iter().map(frame_span).collect();
        assert_eq!(spans, [(30, 30, 51)]);
    }

    #[test]
    fn what_is_shorter_than_a_note_is_dropped() {
        for (length, expected) in [(10, 0), (11, 1)] {
            let outputs = spread(142, |frame, key| {
                let sounds = key == 10 && (20..20 + length).contains(&frame);
                (if sounds { 0.6 } else { 0.0 }, if key == 10 && frame == 20 { 0.7 } else { 0.0 })
            });
            assert_eq!(notes(&outputs).unwrap().len(), expected, "{length} frames");
        }
    }

    #[test]
    fn outputs_of_the_wrong_size_or_without_numbers_are_refused() {
        let good = spread(142, |_, _| (0.0, 0.0));
        let mut short = good.clone();
        short[0].onset.pop();
        assert!(format!("{:#}", notes(&short).unwrap_err()).contains("onset output: window 0"));
        let mut broken = good;
        broken[0].note[7] = f32::NAN;
        assert!(notes(&broken).is_err());
    }
}
