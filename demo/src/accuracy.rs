//! How well the notes heard match the notes played.

use crate::notes::Note;

/// Two onsets within this many seconds are the same: the tolerance of the MIREX note tracking task.
const ONSET_TOLERANCE: f64 = 0.05;

/// How many notes agree in key and onset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accuracy {
    /// Notes in both lists.
    pub(crate) matched: usize,
    /// Notes heard.
    pub(crate) heard: usize,
    /// Notes played.
    pub(crate) played: usize,
}

impl Accuracy {
    /// Pairs each note played with the nearest note heard of the same key, each note at most once.
    pub(crate) fn of(heard: &[Note], played: &[Note]) -> Self {
        let mut free: Vec<&Note> = heard.iter().collect();
        let mut matched = 0;
        for truth in played {
            let distance = |note: &Note| (note.onset - truth.onset).abs();
            let nearest = free
                .iter()
                .enumerate()
                .filter(|(_, note)| note.midi == truth.midi && distance(note) <= ONSET_TOLERANCE)
                .min_by(|(_, a), (_, b)| distance(a).total_cmp(&distance(b)))
                .map(|(index, _)| index);
            if let Some(index) = nearest {
                free.swap_remove(index);
                matched += 1;
            }
        }
        Self { matched, heard: heard.len(), played: played.len() }
    }

    /// Part of the notes played that was heard.
    pub(crate) fn recall(&self) -> f64 {
        ratio(self.matched, self.played)
    }

    /// Part of the notes heard that was played.
    pub(crate) fn precision(&self) -> f64 {
        ratio(self.matched, self.heard)
    }
}

/// Nothing out of nothing counts as all.
fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(onset: f64, midi: u8) -> Note {
        Note { onset, duration: 0.5, midi, confidence: 0.5 }
    }

    #[test]
    fn key_and_onset_must_both_agree() {
        let played = [note(0.0, 60), note(1.0, 62), note(2.0, 64)];
        let heard = [note(0.04, 60), note(1.06, 62), note(2.0, 65)];
        assert_eq!(Accuracy::of(&heard, &played), Accuracy { matched: 1, heard: 3, played: 3 });
    }

    #[test]
    fn a_note_heard_counts_once() {
        let accuracy = Accuracy::of(&[note(0.0, 60)], &[note(0.0, 60), note(0.01, 60)]);
        assert_eq!((accuracy.recall(), accuracy.precision()), (0.5, 1.0));
    }
}
