//! RLX.
