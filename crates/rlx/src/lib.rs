//! RLX.

pub mod io;
