//! What judges every backend: the case table, its tolerances and references, random graphs, and file tests.
//!
//! # Writing cases
//! Each operation has cases in `cases/<family>.rs`. [`op_case`] makes a case of one operation on inputs, [`case()`] one
//! of any graph; methods of [`Case`] add inputs, what is expected, and how close results must be:
//!
//! ```
//! use rlx_testkit::{Domain, FLOATS, Stage, f32s, for_dtypes, for_sizes, op_case};
//!
//! // Random inputs in several types, judged by a formula that is written without the implementation.
//! let floats = for_dtypes(FLOATS, |dtype| {
//!     op_case("tanh", "range", "", &format!("{dtype}[n]"))
//!         .sizes([("n", 7)])
//!         .random(Domain::Range(-3.0, 3.0))
//!         .formula(|x| x[0].map(f64::tanh))
//!         .transcendental()
//! });
//! // Sizes 0, 1, primes, and around a tile.
//! let sizes = for_sizes(16, |n| {
//!     op_case("reduce_sum", "size", "axes=[1]", &format!("f32[3, {n}]"))
//!         .random(Domain::Normal)
//!         .formula(|x| x[0].map_rows(1, |row| vec![row.iter().sum()]).reshape([3]))
//!         .summed(n)
//! });
//! // Given values, and wrong inputs with the error that they must give.
//! let given = op_case("floor", "ties", "", "f32[2]").input(f32s([2], [1.5, -1.5])).values([f32s([2], [1.0, -2.0])]);
//! let wrong = op_case("tanh", "integers", "", "i32[2]").fails_build("C1");
//! let late = op_case("add", "sizes_differ", "", "f32[n], f32[m]")
//!     .inputs([f32s([2], [0.0; 2]), f32s([3], [0.0; 3])])
//!     .fails(Stage::Run, "C2");
//! # let _ = (floats, sizes, given, wrong, late);
//! ```
//! Values of outside references stand in `golden/<family>.case`, written by `references/cases/<family>.py` and read by
//! [`golden()`]; the format is that of the file tests ([`mod@format`]).
//!
//! Every case is run as it is, again with each operand as a view of another array ([`views`]), and in f64
//! throughout; all must agree. [`table::run_table`] runs them on a [`Backend`].

pub mod agreement;
pub mod array;
pub mod backend;
pub mod case;
pub mod cases;
pub mod compare;
pub mod cpu;
pub mod filetest;
pub mod format;
pub mod golden;
pub mod onnx_nodes;
pub mod oracle;
pub mod peak_allocation;
pub mod random;
pub mod random_graph;
pub mod table;
pub mod tolerance;
pub mod views;

pub use array::Array;
pub use backend::{Backend, BackendError};
pub use case::{
    Case, Cost, Expect, FLOATS, Formula, INTEGERS, Property, Stage, bools, case, f32s, f64s, for_dtypes,
    for_sizes, i32s, i64s, literal, op_case, u8s,
};
pub use cpu::Cpu;
pub use golden::golden;
pub use oracle::Eval;
pub use random::{Domain, Random};
pub use table::{Report, run_case, run_table};
pub use tolerance::{Magnitude, Tolerance};
