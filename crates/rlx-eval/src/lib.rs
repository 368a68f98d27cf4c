//! rlx-eval
