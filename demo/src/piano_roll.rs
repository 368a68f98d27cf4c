//! The picture of the demonstration: keys upwards, time to the right, a bar for each note.

use std::path::Path;

use crate::canvas::{Canvas, Color, Rectangle, text_height, text_width};
use crate::notes::Note;

const BACKGROUND: Color = [18, 20, 27];
const WHITE_ROW: Color = [31, 34, 44];
const BLACK_ROW: Color = [25, 27, 36];
const ROW_LINE: Color = [44, 48, 61];
const OCTAVE_LINE: Color = [78, 84, 104];
const HALF_SECOND: Color = [41, 45, 57];
const WHOLE_SECOND: Color = [66, 71, 89];
const WHITE_KEY: Color = [232, 234, 238];
const BLACK_KEY: Color = [36, 38, 46];
const TEXT: Color = [226, 229, 236];
const QUIET_TEXT: Color = [150, 156, 172];
const PLAYED: Color = [255, 255, 255];

/// Colours of confidence 0, 1/3, 2/3 and 1.
const CONFIDENCE: [Color; 4] = [[70, 52, 140], [190, 58, 128], [246, 130, 62], [252, 224, 104]];

/// Height of a key's row in pixels.
const ROW: f64 = 20.0;
/// Width of the whole picture.
const WIDTH: f64 = 1600.0;
/// What stays free left of the keys, and at the right edge.
const SIDE: f64 = 32.0;
/// Width of the keyboard.
const KEYBOARD: f64 = 92.0;
/// Height of the heading.
const HEADING: f64 = 96.0;
/// Height of the time axis.
const AXIS: f64 = 72.0;
/// Keys shown below the lowest and above the highest note.
const SPARE_KEYS: u8 = 3;

/// Draws notes as bars, coloured by confidence, and the notes really played as outlines over them.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn draw(notes: &[Note], truth: &[Note], path: &Path) -> anyhow::Result<()> {
    let layout = Layout::of(notes.iter().chain(truth));
    let mut canvas = Canvas::new(WIDTH as usize, layout.picture_height() as usize, BACKGROUND);
    layout.heading(&mut canvas, notes.len(), truth.len());
    layout.rows(&mut canvas);
    layout.time_axis(&mut canvas);
    layout.keyboard(&mut canvas);
    for note in notes {
        layout.bar(&mut canvas, note);
    }
    for note in truth {
        canvas.outline(layout.area(note), 5.0, PLAYED, 1.5);
    }
    Ok(canvas.save(path)?)
}

/// Where things are: the keys and the time that the picture spans.
struct Layout {
    lowest: u8,
    highest: u8,
    seconds: f64,
}

impl Layout {
    fn of<'a>(notes: impl Iterator<Item = &'a Note>) -> Self {
        // An empty picture shows the octave above middle C, and a second.
        let (mut lowest, mut highest, mut end) = (None::<u8>, None::<u8>, 1.0_f64);
        for note in notes {
            lowest = Some(lowest.map_or(note.midi, |key| key.min(note.midi)));
            highest = Some(highest.map_or(note.midi, |key| key.max(note.midi)));
            end = end.max(note.onset + note.duration);
        }
        Self {
            lowest: lowest.unwrap_or(60).saturating_sub(SPARE_KEYS),
            highest: highest.unwrap_or(72).saturating_add(SPARE_KEYS),
            seconds: end + 0.1,
        }
    }

    fn picture_height(&self) -> f64 {
        self.bottom() + AXIS
    }

    fn bottom(&self) -> f64 {
        HEADING + f64::from(self.highest - self.lowest + 1) * ROW
    }

    fn right(&self) -> f64 {
        WIDTH - SIDE
    }

    /// Where a time lies from the left.
    fn across(&self, seconds: f64) -> f64 {
        let left = SIDE + KEYBOARD;
        left + seconds / self.seconds * (self.right() - left)
    }

    /// Where the row of a key begins from the top.
    fn down(&self, key: u8) -> f64 {
        HEADING + f64::from(self.highest - key) * ROW
    }

    fn area(&self, note: &Note) -> Rectangle {
        let left = self.across(note.onset);
        let width = self.across(note.onset + note.duration) - left;
        Rectangle { left, top: self.down(note.midi), width, height: ROW }.inset(1.0)
    }

    fn heading(&self, canvas: &mut Canvas, heard: usize, played: usize) {
        canvas.text(SIDE, 26.0, 3, TEXT, "Notes heard by basic-pitch");
        canvas.text(SIDE, 60.0, 2, QUIET_TEXT, &format!("{heard} heard, {played} played"));

        let scale_width = 200.0;
        let left = self.right() - scale_width;
        let steps = scale_width as usize;
        for step in 0..steps {
            let column = Rectangle { left: left + step as f64, top: 28.0, width: 1.0, height: 16.0 };
            canvas.fill(column, 0.0, confidence_color(step as f32 / (steps - 1) as f32), 1.0);
        }
        for (value, text) in [(0.0, "0"), (0.5, "0.5"), (1.0, "1")] {
            let middle = left + value * (scale_width - text_width("1", 2)) + text_width("1", 2) / 2.0;
            canvas.text(middle - text_width(text, 2) / 2.0, 54.0, 2, QUIET_TEXT, text);
        }
        let label = "confidence";
        let label_left = left - 16.0 - text_width(label, 2);
        canvas.text(label_left, 29.0, 2, TEXT, label);

        let label = "played";
        let played_left = label_left - 56.0 - text_width(label, 2);
        canvas.text(played_left, 29.0, 2, TEXT, label);
        let sample = Rectangle { left: played_left - 16.0 - 56.0, top: 27.0, width: 56.0, height: 18.0 };
        canvas.outline(sample, 5.0, PLAYED, 1.5);
    }

    fn rows(&self, canvas: &mut Canvas) {
        let left = self.across(0.0);
        let line = |top: f64| Rectangle { left, top, width: self.right() - left, height: 1.0 };
        for key in self.lowest..=self.highest {
            let color = if is_black(key) { BLACK_ROW } else { WHITE_ROW };
            canvas.fill(Rectangle { height: ROW, ..line(self.down(key)) }, 0.0, color, 1.0);
        }
        for key in self.lowest..=self.highest {
            // The lower edge of a C is where an octave begins.
            let color = if key % 12 == 0 { OCTAVE_LINE } else { ROW_LINE };
            canvas.fill(line(self.down(key) + ROW - 1.0), 0.0, color, 1.0);
        }
    }

    fn time_axis(&self, canvas: &mut Canvas) {
        let bottom = self.bottom();
        for half in 0..=(self.seconds * 2.0) as u32 {
            let left = self.across(f64::from(half) / 2.0);
            let whole = half.is_multiple_of(2);
            let color = if whole { WHOLE_SECOND } else { HALF_SECOND };
            let height = bottom - HEADING + if whole { 8.0 } else { 0.0 };
            canvas.fill(Rectangle { left: left.round(), top: HEADING, width: 1.0, height }, 0.0, color, 1.0);
            if whole {
                let text = format!("{}", half / 2);
                canvas.text(left - text_width(&text, 2) / 2.0, bottom + 16.0, 2, QUIET_TEXT, &text);
            }
        }
        let text = "seconds";
        let middle = (self.across(0.0) + self.right()) / 2.0;
        canvas.text(middle - text_width(text, 2) / 2.0, bottom + 44.0, 2, QUIET_TEXT, text);
    }

    fn keyboard(&self, canvas: &mut Canvas) {
        let key_width = KEYBOARD - 8.0;
        let all = Rectangle { left: SIDE, top: HEADING, width: key_width, height: self.bottom() - HEADING };
        canvas.fill(all, 0.0, WHITE_KEY, 1.0);
        for key in self.lowest..=self.highest {
            let top = self.down(key);
            let line = |top: f64| Rectangle { left: SIDE, top: top.round(), width: key_width, height: 1.0 };
            if is_black(key) {
                // Two white keys meet behind the middle of a black one.
                canvas.fill(line(top + ROW / 2.0), 0.0, QUIET_TEXT, 1.0);
                let black = Rectangle { left: SIDE, top, width: key_width * 0.6, height: ROW };
                canvas.fill(black.inset(1.0), 2.0, BLACK_KEY, 1.0);
            } else if matches!(key % 12, 0 | 5) {
                // Below C and F there is no black key.
                canvas.fill(line(top + ROW - 1.0), 0.0, QUIET_TEXT, 1.0);
            }
            if key % 12 == 0 {
                let name = format!("C{}", i32::from(key / 12) - 1);
                let left = SIDE + key_width - 6.0 - text_width(&name, 2);
                canvas.text(left, top + (ROW - text_height(2)) / 2.0, 2, BLACK_KEY, &name);
            }
        }
    }

    fn bar(&self, canvas: &mut Canvas, note: &Note) {
        let area = self.area(note);
        let color = confidence_color(note.confidence);
        canvas.fill(area, 5.0, color, 1.0);
        let name = note.name();
        if text_width(&name, 2) + 12.0 <= area.width {
            // Luminance by ITU-R BT.601 decides which of the two text colours reads better.
            let [red, green, blue] = color.map(f64::from);
            let light = 0.299 * red + 0.587 * green + 0.114 * blue > 120.0;
            let ink = if light { BACKGROUND } else { TEXT };
            canvas.text(area.left + 7.0, area.top + (area.height - text_height(2)) / 2.0, 2, ink, &name);
        }
    }
}

fn is_black(key: u8) -> bool {
    matches!(key % 12, 1 | 3 | 6 | 8 | 10)
}

/// A colour for a confidence of 0..=1.
fn confidence_color(confidence: f32) -> Color {
    let place = f64::from(confidence.clamp(0.0, 1.0)) * (CONFIDENCE.len() - 1) as f64;
    let below = (place as usize).min(CONFIDENCE.len() - 2);
    let part = place - below as f64;
    let (from, to) = (CONFIDENCE[below], CONFIDENCE[below + 1]);
    std::array::from_fn(|channel| {
        (f64::from(from[channel]) * (1.0 - part) + f64::from(to[channel]) * part).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_key_lies_higher_and_a_later_note_further_right() {
        let note = |onset: f64, midi: u8| Note { onset, duration: 0.5, midi, confidence: 0.5 };
        let notes = [note(0.0, 60), note(2.0, 72)];
        let layout = Layout::of(notes.iter());
        let (first, second) = (layout.area(&notes[0]), layout.area(&notes[1]));
        assert!(second.top < first.top && second.left > first.left + first.width);
        assert!(second.left + second.width < layout.right());
    }

    #[test]
    fn confidence_runs_through_its_colours() {
        assert_eq!(confidence_color(-1.0), CONFIDENCE[0]);
        assert_eq!(confidence_color(1.0 / 3.0), CONFIDENCE[1]);
        assert_eq!(confidence_color(2.0), CONFIDENCE[3]);
    }

    #[test]
    fn extreme_keys_and_no_notes_can_be_laid_out() {
        let note = |midi: u8| Note { onset: 0.0, duration: 0.5, midi, confidence: 0.5 };
        let layout = Layout::of([note(0), note(127)].iter());
        assert_eq!((layout.lowest, layout.highest), (0, 130));
        assert_eq!(Layout::of([].iter()).picture_height(), HEADING + 19.0 * ROW + AXIS);
    }
}
