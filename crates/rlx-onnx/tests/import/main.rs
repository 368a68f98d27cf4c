//! What importing makes of whole models: order, scopes, functions, control flow, sizes, and refusals.

mod control;
mod hostile;
mod models;
mod structure;
