//! Attributes of operations: how each kind prints and parses, and the small types they are made of.

use crate::dim::{Dim, Symbol};
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Graph;
use crate::infer::Infer;
use crate::literal::Literal;
use crate::text::{ParseError, Parser, Printer};
use crate::types::TensorType;
use smallvec::SmallVec;
use std::sync::Arc;

/// A value of an attribute in the text form.
pub trait Attr: Sized {
    /// Writes the value.
    fn print(&self, p: &mut Printer<'_>);
    /// Reads what [`Attr::print`] wrote.
    fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError>;
    /// The value that is left out when printing, if there is one.
    fn default() -> Option<Self> {
        None
    }
    /// Calls `visit` with every size in the value.
    fn for_each_dim(&self, visit: &mut dyn FnMut(&Dim)) {
        let _ = visit;
    }
}

/// The bits of an f64 attribute, so that attributes have equality and hashes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Real(u64);

impl Real {
    /// From a number.
    pub fn new(value: f64) -> Real {
        Real(value.to_bits())
    }

    /// The number.
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl From<f64> for Real {
    fn from(value: f64) -> Real {
        Real::new(value)
    }
}

impl std::fmt::Debug for Real {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.get())
    }
}

/// An axis of a composite, counted from the front, or from the back if negative.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Axis(pub i64);

impl Axis {
    /// The axis counted from the front; `-rank ≤ axis < rank` is the constraint `label`.
    pub fn resolve(self, cx: &Infer<'_>, label: &'static str, rank: usize) -> Result<usize, TypeError> {
        self.of_rank(rank).ok_or_else(|| {
            cx.error(label, None, "axis is out of range", format!("-{rank} to {rank} (excluded)"), self.0)
        })
    }

    /// The axis counted from the front, if it is one of `rank` axes.
    pub fn of_rank(self, rank: usize) -> Option<usize> {
        let rank = i64::try_from(rank).ok()?;
        let axis = if self.0 < 0 { self.0 + rank } else { self.0 };
        (0..rank).contains(&axis).then_some(axis as usize)
    }
}

impl From<i64> for Axis {
    fn from(axis: i64) -> Axis {
        Axis(axis)
    }
}

impl Attr for Axis {
    fn print(&self, p: &mut Printer<'_>) {
        self.0.print(p);
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError> {
        i64::parse(p).map(Axis)
    }
}

impl Attr for Real {
    fn print(&self, p: &mut Printer<'_>) {
        p.float(self.get());
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError> {
        p.float().map(Real::new)
    }
}

impl Attr for bool {
    fn print(&self, p: &mut Printer<'_>) {
        p.word(if *self { "true" } else { "false" });
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError> {
        p.one_of("true or false", &[("true", true), ("false", false)])
    }
    fn default() -> Option<Self> {
        Some(false)
    }
}

macro_rules! integer_attr {
    ($($int:ty),*) => {$(
        impl Attr for $int {
            fn print(&self, p: &mut Printer<'_>) {
                p.word(&self.to_string());
            }
            fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError> {
                p.integer()
            }
        }
    )*};
}
integer_attr!(i64, u64, u32, usize);

impl Attr for Arc<str> {
    fn print(&self, p: &mut Printer<'_>) {
        p.string(self);
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError> {
        p.string().map(Arc::from)
    }
}

impl Attr for Dim {
    fn print(&self, p: &mut Printer<'_>) {
        p.dim(self);
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError> {
        p.dim()
    }
    fn for_each_dim(&self, visit: &mut dyn FnMut(&Dim)) {
        visit(self);
    }
}

impl Attr for Symbol {
    fn print(&self, p: &mut Printer<'_>) {
        p.dim(&Dim::from(self.clone()));
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError> {
        p.symbol()
    }
    fn for_each_dim(&self, visit: &mut dyn FnMut(&Dim)) {
        visit(&Dim::from(self.clone()));
    }
}

impl Attr for DType {
    fn print(&self, p: &mut Printer<'_>) {
        p.word(self.name());
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError> {
        p.dtype()
    }
}

impl Attr for TensorType {
    fn print(&self, p: &mut Printer<'_>) {
        p.tensor_type(self);
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError> {
        p.tensor_type()
    }
    fn for_each_dim(&self, visit: &mut dyn FnMut(&Dim)) {
        self.dims().iter().for_each(visit);
    }
}

impl Attr for Literal {
    fn print(&self, p: &mut Printer<'_>) {
        p.literal(self);
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError> {
        p.literal()
    }
}

impl Attr for Arc<Graph> {
    fn print(&self, p: &mut Printer<'_>) {
        p.subgraph(self);
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError> {
        p.subgraph().map(Arc::new)
    }
    fn for_each_dim(&self, visit: &mut dyn FnMut(&Dim)) {
        self.as_ref().for_each_dim(visit);
    }
}

impl<T: Attr> Attr for Vec<T> {
    fn print(&self, p: &mut Printer<'_>) {
        p.list(self, |p, item| item.print(p));
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError> {
        p.list(T::parse)
    }
    fn for_each_dim(&self, visit: &mut dyn FnMut(&Dim)) {
        self.iter().for_each(|item| item.for_each_dim(visit));
    }
    fn default() -> Option<Self> {
        Some(Vec::new())
    }
}

impl<T: Attr, const N: usize> Attr for SmallVec<[T; N]> {
    fn print(&self, p: &mut Printer<'_>) {
        p.list(self, |p, item| item.print(p));
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError> {
        p.list(T::parse).map(SmallVec::from_vec)
    }
    fn for_each_dim(&self, visit: &mut dyn FnMut(&Dim)) {
        self.iter().for_each(|item| item.for_each_dim(visit));
    }
    fn default() -> Option<Self> {
        Some(SmallVec::new())
    }
}

impl<A: Attr, B: Attr> Attr for (A, B) {
    fn print(&self, p: &mut Printer<'_>) {
        p.word("(");
        self.0.print(p);
        p.word(", ");
        self.1.print(p);
        p.word(")");
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError> {
        p.expect("(")?;
        let a = A::parse(p)?;
        p.expect(",")?;
        let b = B::parse(p)?;
        p.expect(")")?;
        Ok((a, b))
    }
    fn for_each_dim(&self, visit: &mut dyn FnMut(&Dim)) {
        self.0.for_each_dim(visit);
        self.1.for_each_dim(visit);
    }
}

impl<T: Attr> Attr for Option<T> {
    fn print(&self, p: &mut Printer<'_>) {
        match self {
            Some(value) => value.print(p),
            None => p.word("none"),
        }
    }
    fn parse(p: &mut Parser<'_>) -> Result<Self, ParseError> {
        if p.take_word("none") { Ok(None) } else { T::parse(p).map(Some) }
    }
    fn for_each_dim(&self, visit: &mut dyn FnMut(&Dim)) {
        self.iter().for_each(|value| value.for_each_dim(visit));
    }
    fn default() -> Option<Self> {
        Some(None)
    }
}

/// Declares a fieldless enum whose variants have names in the text form: an attribute, or (with
/// [`operation!`](crate::operation)) the mnemonics of a family of operations.
#[macro_export]
macro_rules! names {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[doc = $doc:literal])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub enum $name { $($(#[doc = $doc])* $variant),* }
        impl $name {
            /// Every variant.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            /// The names in the text form, in the order of [`Self::ALL`].
            pub const NAMES: &'static [&'static str] = &[$($text),*];
            /// The documentation of each, in the order of [`Self::ALL`].
            pub const DOCS: &'static [&'static str] = &[$(concat!($($doc, "\n"),*)),*];
            /// The name in the text form.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
            /// The variant with this name.
            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$variant),)* _ => None }
            }
        }
        impl $crate::op::Attr for $name {
            fn print(&self, p: &mut $crate::text::Printer<'_>) {
                p.word(self.name());
            }
            fn parse(p: &mut $crate::text::Parser<'_>) -> Result<Self, $crate::text::ParseError> {
                let choices: Vec<(&str, $name)> = $name::ALL.iter().map(|v| (v.name(), *v)).collect();
                p.one_of(stringify!($name), &choices)
            }
        }
    };
}
