//! Progress of long work, on standard error, if a person is watching.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A bar that appears once work has taken half a second.
pub(crate) struct Progress {
    bar: ProgressBar,
    start: std::time::Instant,
}

impl Progress {
    /// A bar named after the work. `quiet` shows none.
    pub(crate) fn new(what: &str, quiet: bool) -> Progress {
        let bar = ProgressBar::hidden();
        if !quiet {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        }
        if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:40}] {pos}/{len} nodes, {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what.to_string());
        Progress { bar, start: std::time::Instant::now() }
    }

    /// `done` of `all` are done.
    pub(crate) fn set(&self, done: usize, all: usize) {
        if self.start.elapsed() > Duration::from_millis(500) {
            self.bar.set_length(all as u64);
            self.bar.set_position(done as u64);
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}
