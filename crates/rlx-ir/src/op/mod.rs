//! The operation table. One struct an operation (or family of alike ones), in its family's file, with its
//! attributes as typed fields, its type rule, and – if it is a composite – its decomposition.
//!
//! [`operation!`](crate::operation) declares the struct with its text form; the `table!` below lists all of them
//! and makes [`Op`], the parser's dispatch, and [`catalogue`], from which the documentation is generated.

mod attr;
mod axes;
mod catalogue;
mod custom;
mod double_word;
mod table;

pub mod activation;
pub mod arrange;
pub mod attention;
pub mod audio;
pub mod average_pool;
pub mod contract;
pub mod control;
pub mod convolution;
pub mod einsum;
pub mod elementwise;
pub mod experts;
pub mod gated;
pub mod index;
pub mod linalg;
pub mod linear_quantisation;
pub mod loss;
pub mod manifold;
pub mod matrix;
pub mod mel;
pub mod movement;
pub mod norm;
pub mod pool;
pub mod quant;
pub mod quantised_matmul;
pub mod random;
pub mod recurrent;
pub mod reduce;
pub mod region;
pub mod resize;
pub mod rotary;
pub mod sample;
pub mod selection;
pub mod softmax;
pub mod solve;
pub mod source;
pub mod spectral;
pub mod state_space;
pub mod statistics;
pub mod unfold;
pub mod vision;
pub mod window;

pub use attr::{Attr, Axis, Real};
pub use catalogue::{OpInfo, catalogue};
pub use custom::{Custom, CustomOp};
pub use table::{Composite, CompositeKind, Op, OpKind, Primitive, PrimitiveKind};

use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types};
use crate::text::{ParseError, Parser, Printer};

/// The text form of an operation's attributes; implemented by [`operation!`](crate::operation).
pub trait Attributes: Sized {
    /// The names in the text form (several for a family).
    const NAMES: &'static [&'static str];
    /// The documentation of each name.
    const DOCS: &'static [&'static str];
    /// Field name, type and documentation.
    const FIELDS: &'static [(&'static str, &'static str, &'static str)];
    /// This one's name.
    fn name(&self) -> &'static str;
    /// Writes the fields.
    fn print_fields(&self, p: &mut Printer<'_>);
    /// Calls `visit` with every size in the fields.
    fn for_each_dim(&self, visit: &mut dyn FnMut(&Dim));
    /// Reads the fields of the operation with this name.
    fn parse_fields(name: &str, p: &mut Parser<'_>) -> Result<Self, ParseError>;
}

/// An operation: its attributes and its type rule.
pub trait OpDef: Attributes {
    /// The types of the results, or which constraint is broken.
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError>;
}

/// An operation that is defined by simpler ones.
pub trait CompositeDef: OpDef {
    /// Builds the equivalent of this operation on `operands`. Called only after [`OpDef::infer`] accepted them;
    /// the results must have the types it gave.
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError>;
}

/// Declares the struct of an operation with its text form.
///
/// ```text
/// operation! {
///     /// y = x / sqrt(mean(x²) + eps) · scale
///     pub struct RmsNorm = "rms_norm" {
///         /// First normalised axis.
///         axis: Axis,
///     }
/// }
/// ```
/// With `pub struct Unary: UnaryOp { … }` the names are those of the enum, which becomes the field `op`.
#[macro_export]
macro_rules! operation {
    ($(#[doc = $doc:literal])* pub struct $name:ident = $text:literal {
        $($(#[doc = $fdoc:literal])* $field:ident : $ty:ty),* $(,)?
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub struct $name { $($(#[doc = $fdoc])* pub $field: $ty),* }
        impl $crate::op::Attributes for $name {
            const NAMES: &'static [&'static str] = &[$text];
            const DOCS: &'static [&'static str] = &[concat!($($doc, "\n"),*)];
            const FIELDS: &'static [(&'static str, &'static str, &'static str)] =
                &[$((stringify!($field), stringify!($ty), concat!($($fdoc, "\n"),*))),*];
            fn name(&self) -> &'static str { $text }
            #[allow(unused_variables)]
            fn print_fields(&self, p: &mut $crate::text::Printer<'_>) {
                $(p.field(stringify!($field), &self.$field);)*
            }
            #[allow(unused_variables)]
            fn for_each_dim(&self, visit: &mut dyn FnMut(&$crate::dim::Dim)) {
                $($crate::op::Attr::for_each_dim(&self.$field, visit);)*
            }
            #[allow(unused_variables)]
            fn parse_fields(_: &str, p: &mut $crate::text::Parser<'_>) -> Result<Self, $crate::text::ParseError> {
                Ok($name { $($field: p.field(stringify!($field))?),* })
            }
        }
    };
    ($(#[doc = $doc:literal])* pub struct $name:ident : $family:ident {
        $($(#[doc = $fdoc:literal])* $field:ident : $ty:ty),* $(,)?
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub struct $name {
            /// Which operation of the family.
            pub op: $family,
            $($(#[doc = $fdoc])* pub $field: $ty),*
        }
        impl $crate::op::Attributes for $name {
            const NAMES: &'static [&'static str] = $family::NAMES;
            const DOCS: &'static [&'static str] = $family::DOCS;
            const FIELDS: &'static [(&'static str, &'static str, &'static str)] =
                &[$((stringify!($field), stringify!($ty), concat!($($fdoc, "\n"),*))),*];
            fn name(&self) -> &'static str { self.op.name() }
            #[allow(unused_variables)]
            fn print_fields(&self, p: &mut $crate::text::Printer<'_>) {
                $(p.field(stringify!($field), &self.$field);)*
            }
            #[allow(unused_variables)]
            fn for_each_dim(&self, visit: &mut dyn FnMut(&$crate::dim::Dim)) {
                $($crate::op::Attr::for_each_dim(&self.$field, visit);)*
            }
            fn parse_fields(name: &str, p: &mut $crate::text::Parser<'_>) -> Result<Self, $crate::text::ParseError> {
                let Some(op) = $family::from_name(name) else { return Err(p.error("an operation", name)) };
                Ok($name { op, $($field: p.field(stringify!($field))?),* })
            }
        }
    };
}
