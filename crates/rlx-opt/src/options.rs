//! What a caller may ask of the compiler.

use crate::precision::PrecisionPolicy;

/// Options of [`compile`](crate::compile()).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileOptions {
    /// Whether chains are recognised as composites.
    pub raise: bool,
    /// Whether nodes are gathered in regions that run tile by tile.
    pub fuse: bool,
    /// Whether the graph is verified after each pass. Debug builds do so always.
    pub verify: bool,
    /// In which types floats are computed.
    pub precision: PrecisionPolicy,
    /// Constants up to this many elements are folded while compiling; larger constant computations run once at load.
    pub fold_elements: usize,
}

impl Default for CompileOptions {
    fn default() -> Self {
        CompileOptions {
            raise: true,
            fuse: true,
            verify: cfg!(debug_assertions),
            precision: PrecisionPolicy::Declared,
            fold_elements: 4096,
        }
    }
}
