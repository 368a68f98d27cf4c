//! Ctrl-C: the first ends the run at its next step, a second one the program.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static LISTENING: Once = Once::new();

/// What shells expect of a program that an interrupt has ended: 128 and the signal's number.
pub(crate) const EXIT_CODE: u8 = 130;

/// Set once the user has asked for the end. Only from the first call on is Ctrl-C listened to: what does not look at
/// the flag is ended at once.
pub(crate) fn flag() -> &'static AtomicBool {
    LISTENING.call_once(listen);
    &INTERRUPTED
}

fn listen() {
    let listening = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(EXIT_CODE));
        }
    });
    if let Err(error) = listening {
        eprintln!("note: Ctrl-C ends the program at once: {error}");
    }
}
