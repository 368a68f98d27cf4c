//! The text form, complete and versioned: `parse(print(g)) == g`.
//!
//! ```text
//! rlx 1
//! graph "main"(%0 "x": f32[batch, 4]) {
//!   symbol batch: min=1, max=64
//!   %1 = exp(%0) : f32[batch, 4] @["node a"]
//!   %2 = top_k<k=2, axis=1>(%1) : f32[batch, 2], i64[batch, 2]
//!   return "values" = %2.0, "indices" = %2.1
//! }
//! ```
//! Written by hand, values may have names (`%sum`), an input's name may be left out (it is then the value's), and so
//! may result types. Constants above [`INLINE_BYTES`](crate::literal::INLINE_BYTES) print as `#hash` and are kept beside.

mod lex;
mod literal;
mod parse;
mod print;

pub use parse::{FindConstant, FindCustom, ParseError, ParseOptions, Parser, parse, parse_with};
pub use print::{Printed, Printer, print, print_with_constants};

/// The version of the text form; the first line is `rlx VERSION`.
pub const VERSION: u32 = 1;

/// How deep graphs and size expressions may nest in a text.
pub const MAX_NESTING: u32 = 64;

#[cfg(test)]
mod tests;
