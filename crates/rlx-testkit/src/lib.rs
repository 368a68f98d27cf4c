//! rlx-testkit

pub mod peak_allocation;
