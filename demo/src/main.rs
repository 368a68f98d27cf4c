//! The demonstration: a melody is played into a WAV file, a real neural network listens to it through the `rlx` command,
//! and the notes that it heard are printed and drawn.
//!
//! [`melody`] plays, [`notes`] cuts the sound into windows and makes notes of the model's answer, [`model`] runs the
//! model, [`accuracy`] compares with what was played, [`piano_roll`] draws.

mod accuracy;
mod canvas;
mod melody;
mod model;
mod notes;
mod piano_roll;
mod typeface;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::Parser as _;
use rlx::io::audio::{Audio, WavFormat, read_wav, write_wav};

use accuracy::Accuracy;
use notes::Note;

/// The demonstration succeeds if at least this part of the notes played was heard, and of those heard was played.
const REQUIRED: f64 = 0.95;

/// A real model listens to a melody; the notes it heard are printed and drawn.
#[derive(Debug, clap::Parser)]
struct Options {
    /// Where the sound and the picture are written
    #[arg(long, value_name = "DIR")]
    output: PathBuf,

    /// The `rlx` program
    #[arg(long, value_name = "PROGRAM")]
    rlx: PathBuf,

    /// The basic-pitch model
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
}

/// Runs the demonstration.
///
/// # Errors
/// If a step fails, or the model misses more than one note in twenty.
fn main() -> anyhow::Result<()> {
    let Options { output: folder, rlx, model } = Options::parse();
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;

    let played = melody::score();
    let sound_file = folder.join("melody.wav");
    let sound = Audio::new(melody::SAMPLE_RATE, 1, melody::play(&played))?;
    write_wav(&sound_file, &sound, WavFormat::Int16)?;
    let heard_sound = read_wav(&sound_file)?.into_mono().resampled(notes::SAMPLE_RATE)?;
    let windows = notes::windows(heard_sound.samples());

    let seconds = heard_sound.frames() as f64 / f64::from(heard_sound.sample_rate());
    println!("Listening to {seconds:.1} s of sound with {} …", model.display());
    let start = Instant::now();
    let outputs = model::listen(&rlx, &model, &windows, &folder)?;
    println!("Done in {:.1} s.\n", start.elapsed().as_secs_f64());

    let heard = notes::notes(&outputs)?;
    print!("{}", table(&heard));
    let accuracy = Accuracy::of(&heard, &played);
    println!(
        "\n{} of {} notes played were heard ({:.0} %); {} of {} heard were played ({:.0} %).",
        accuracy.matched,
        accuracy.played,
        accuracy.recall() * 100.0,
        accuracy.matched,
        accuracy.heard,
        accuracy.precision() * 100.0
    );
    let picture = folder.join("notes.png");
    piano_roll::draw(&heard, &played, &picture)?;
    let report = model::explain(&rlx, &model, &folder)?;
    println!("Sound:   {}\nPicture: {}", sound_file.display(), picture.display());
    println!("Report:  {} (what the compiler made of the model, for a browser)", report.display());
    ensure!(
        accuracy.recall() >= REQUIRED && accuracy.precision() >= REQUIRED,
        "at least {:.0} % of the notes should be right",
        REQUIRED * 100.0
    );
    Ok(())
}

/// The notes as a table, one a line.
fn table(notes: &[Note]) -> String {
    let mut lines = String::from("  onset   length  note  MIDI  confidence\n");
    for note in notes {
        let name = note.name();
        let bar = "▪".repeat((note.confidence * 20.0).round() as usize);
        lines.push_str(&format!(
            "{:6.2} s  {:5.2} s  {name:<4}  {:>4}  {:.2} {bar}\n",
            note.onset, note.duration, note.midi, note.confidence
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_note() {
        let note = Note { onset: 1.234, duration: 0.5, midi: 61, confidence: 0.5 };
        let table = table(&[note]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[1].starts_with("  1.23 s   0.50 s  C#4     61  0.50 ▪"), "{}", lines[1]);
    }
}
