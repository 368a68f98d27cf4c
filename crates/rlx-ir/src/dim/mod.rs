//! Symbolic sizes. A [`Dim`] is a constant or a polynomial with integer coefficients over atoms (symbols,
//! `floor_div`, `mod`, `min`, `max` and `bcast` of dims), always in normal form, so that equal expressions are
//! equal values. Arithmetic never panics: what leaves the range of `i64`, or grows past
//! [`MAX_TERMS`] terms, becomes [`Dim::OVERFLOW`], which type inference refuses.

mod arith;
mod bounds;
mod eval;

pub use bounds::{Answer, Range, SymbolInfo, Symbols};
pub use eval::{Bindings, DimError};

use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Products of sums grow fast; an expression with more terms than this is refused as an overflow.
pub const MAX_TERMS: usize = 256;

/// Atoms may nest (`floor_div(floor_div(…))`); deeper ones than this are refused as an overflow, so that
/// recursive walks of a dim have a bounded depth.
pub const MAX_DEPTH: u32 = 64;

/// A named size that is not known when the graph is built. Two symbols with one name are one symbol.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(Arc<str>);

impl Symbol {
    /// The symbol with this name.
    pub fn new(name: impl AsRef<str>) -> Symbol {
        Symbol(Arc::from(name.as_ref()))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// Names that mean something else in the text form.
const RESERVED: [&str; 8] = ["floor_div", "mod", "min", "max", "bcast", "overflow", "none", "symbol"];

impl fmt::Display for Symbol {
    /// The name; in quotes where it is no identifier.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = self.0.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && self.0.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !RESERVED.contains(&&*self.0);
        if plain { f.write_str(&self.0) } else { write!(f, "{:?}", self.0) }
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A size: a constant or an expression over symbols, in normal form.
///
/// It has no `Ord`: whether one size is less than another depends on the symbols ([`Symbols::known_le`]).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Dim(Repr);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Repr {
    Const(i64),
    Expr(Arc<Poly>),
    Overflow,
}

/// At least one term with a non-empty monomial; terms sorted by monomial, no zero coefficient.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Poly {
    terms: Vec<Term>,
    depth: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Term {
    /// Sorted atoms; a power is a repetition.
    monomial: SmallVec<[Atom; 2]>,
    coefficient: i64,
}

/// What a monomial is a product of.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Atom {
    Symbol(Symbol),
    FloorDiv(Dim, Dim),
    Mod(Dim, Dim),
    Min(Dim, Dim),
    Max(Dim, Dim),
    Bcast(Dim, Dim),
}

impl Atom {
    /// How deep atoms nest in this one.
    fn depth(&self) -> u32 {
        match self {
            Atom::Symbol(_) => 1,
            Atom::FloorDiv(a, b)
            | Atom::Mod(a, b)
            | Atom::Min(a, b)
            | Atom::Max(a, b)
            | Atom::Bcast(a, b) => 1 + a.depth().max(b.depth()),
        }
    }

    /// A key that orders atoms; the order means nothing beyond making the normal form unique.
    fn key(&self) -> (u8, Option<&Symbol>, Option<(&Repr, &Repr)>) {
        match self {
            Atom::Symbol(s) => (0, Some(s), None),
            Atom::FloorDiv(a, b) => (1, None, Some((&a.0, &b.0))),
            Atom::Mod(a, b) => (2, None, Some((&a.0, &b.0))),
            Atom::Min(a, b) => (3, None, Some((&a.0, &b.0))),
            Atom::Max(a, b) => (4, None, Some((&a.0, &b.0))),
            Atom::Bcast(a, b) => (5, None, Some((&a.0, &b.0))),
        }
    }
}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Atom) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Atom {
    fn cmp(&self, other: &Atom) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Dim {
    /// What arithmetic gives when a coefficient leaves `i64`.
    pub const OVERFLOW: Dim = Dim(Repr::Overflow);
    /// 0.
    pub const ZERO: Dim = Dim(Repr::Const(0));
    /// 1.
    pub const ONE: Dim = Dim(Repr::Const(1));

    /// A constant.
    pub const fn constant(value: i64) -> Dim {
        Dim(Repr::Const(value))
    }

    /// The symbol with this name.
    pub fn symbol(name: impl AsRef<str>) -> Dim {
        Dim::from(Symbol::new(name))
    }

    /// The value, if constant.
    pub fn as_const(&self) -> Option<i64> {
        match self.0 {
            Repr::Const(value) => Some(value),
            _ => None,
        }
    }

    /// The value, if it is a constant that is a size.
    pub fn as_size(&self) -> Option<usize> {
        self.as_const().and_then(|v| usize::try_from(v).ok())
    }

    /// Whether this is the result of an overflow.
    pub fn is_overflow(&self) -> bool {
        matches!(self.0, Repr::Overflow)
    }

    /// The symbol, if this is one and nothing else.
    pub fn as_symbol(&self) -> Option<&Symbol> {
        let Repr::Expr(poly) = &self.0 else { return None };
        match poly.terms.as_slice() {
            [Term { monomial, coefficient: 1 }] => match monomial.as_slice() {
                [Atom::Symbol(symbol)] => Some(symbol),
                _ => None,
            },
            _ => None,
        }
    }

    /// Calls `visit` with every symbol in the expression (repetitions included).
    pub fn for_each_symbol(&self, visit: &mut dyn FnMut(&Symbol)) {
        let Repr::Expr(poly) = &self.0 else { return };
        for atom in poly.terms.iter().flat_map(|t| &t.monomial) {
            match atom {
                Atom::Symbol(symbol) => visit(symbol),
                Atom::FloorDiv(a, b)
                | Atom::Mod(a, b)
                | Atom::Min(a, b)
                | Atom::Max(a, b)
                | Atom::Bcast(a, b) => {
                    a.for_each_symbol(visit);
                    b.for_each_symbol(visit);
                }
            }
        }
    }

    /// The expression with each symbol replaced by what `value` gives for it (kept where that is `None`).
    pub fn substitute(&self, value: &dyn Fn(&Symbol) -> Option<Dim>) -> Dim {
        let Repr::Expr(poly) = &self.0 else { return self.clone() };
        let mut sum = Dim::ZERO;
        for term in &poly.terms {
            let mut product = Dim::constant(term.coefficient);
            for atom in &term.monomial {
                let factor = match atom {
                    Atom::Symbol(s) => value(s).unwrap_or_else(|| Dim::from(s.clone())),
                    Atom::FloorDiv(a, b) => a.substitute(value).floor_div(&b.substitute(value)),
                    Atom::Mod(a, b) => a.substitute(value).modulo(&b.substitute(value)),
                    Atom::Min(a, b) => a.substitute(value).min(&b.substitute(value)),
                    Atom::Max(a, b) => a.substitute(value).max(&b.substitute(value)),
                    Atom::Bcast(a, b) => a.substitute(value).bcast(&b.substitute(value)),
                };
                product = product * factor;
            }
            sum = sum + product;
        }
        sum
    }

    fn depth(&self) -> u32 {
        match &self.0 {
            Repr::Expr(poly) => poly.depth,
            _ => 0,
        }
    }

    fn terms(&self) -> Vec<Term> {
        match &self.0 {
            Repr::Const(0) | Repr::Overflow => Vec::new(),
            Repr::Const(c) => vec![Term { monomial: SmallVec::new(), coefficient: *c }],
            Repr::Expr(poly) => poly.terms.clone(),
        }
    }

    fn from_atom(atom: Atom) -> Dim {
        let depth = atom.depth();
        if depth > MAX_DEPTH {
            return Dim::OVERFLOW;
        }
        let mut monomial = SmallVec::new();
        monomial.push(atom);
        Dim(Repr::Expr(Arc::new(Poly { terms: vec![Term { monomial, coefficient: 1 }], depth })))
    }
}

impl From<Symbol> for Dim {
    fn from(symbol: Symbol) -> Dim {
        Dim::from_atom(Atom::Symbol(symbol))
    }
}

impl From<i64> for Dim {
    fn from(value: i64) -> Dim {
        Dim::constant(value)
    }
}

impl From<i32> for Dim {
    fn from(value: i32) -> Dim {
        Dim::constant(value.into())
    }
}

impl From<usize> for Dim {
    fn from(value: usize) -> Dim {
        i64::try_from(value).map_or(Dim::OVERFLOW, Dim::constant)
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Symbol(s) => write!(f, "{s}"),
            Atom::FloorDiv(a, b) => write!(f, "floor_div({a}, {b})"),
            Atom::Mod(a, b) => write!(f, "mod({a}, {b})"),
            Atom::Min(a, b) => write!(f, "min({a}, {b})"),
            Atom::Max(a, b) => write!(f, "max({a}, {b})"),
            Atom::Bcast(a, b) => write!(f, "bcast({a}, {b})"),
        }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let poly = match &self.0 {
            Repr::Const(c) => return write!(f, "{c}"),
            Repr::Overflow => return f.write_str("overflow"),
            Repr::Expr(poly) => poly,
        };
        // The constant term sorts first in normal form; people expect it last.
        let ordered = poly.terms.iter().filter(|t| !t.monomial.is_empty());
        for (i, term) in ordered.chain(poly.terms.iter().filter(|t| t.monomial.is_empty())).enumerate() {
            let negative = term.coefficient < 0;
            match (i, negative) {
                (0, true) => f.write_str("-")?,
                (0, false) => {}
                (_, true) => f.write_str(" - ")?,
                (_, false) => f.write_str(" + ")?,
            }
            let magnitude = term.coefficient.unsigned_abs();
            if magnitude != 1 || term.monomial.is_empty() {
                write!(f, "{magnitude}")?;
                if !term.monomial.is_empty() {
                    f.write_str("*")?;
                }
            }
            for (j, atom) in term.monomial.iter().enumerate() {
                if j > 0 {
                    f.write_str("*")?;
                }
                write!(f, "{atom}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
