//! rlx-testkit
