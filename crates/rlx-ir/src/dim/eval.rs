//! Sizes when the symbols are bound.

use super::{Atom, Dim, Repr, Symbol};
use rustc_hash::FxHashMap;

/// Values of symbols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings {
    values: FxHashMap<Symbol, i64>,
}

/// Why a size has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DimError {
    /// A symbol has no value yet.
    #[error("size `{dim}`: symbol `{symbol}` is not bound")]
    Unbound {
        /// The symbol.
        symbol: Symbol,
        /// The expression it stands in.
        dim: Dim,
    },
    /// The value leaves `i64`, or a division by zero.
    #[error("size `{dim}` overflows or divides by zero")]
    Overflow {
        /// The expression.
        dim: Dim,
    },
    /// Two sizes that do not broadcast.
    #[error("sizes {lhs} and {rhs} do not broadcast (in `{dim}`)")]
    Broadcast {
        /// One size.
        lhs: i64,
        /// The other.
        rhs: i64,
        /// The expression.
        dim: Dim,
    },
    /// A symbol is bound to two different values.
    #[error("symbol `{symbol}` is {first} and cannot be {second} as well")]
    Conflict {
        /// The symbol.
        symbol: Symbol,
        /// Its value.
        first: i64,
        /// The other value asked for.
        second: i64,
    },
    /// A size is not what its expression gives.
    #[error("size `{dim}` is {expected}, found {found}")]
    Mismatch {
        /// The expression.
        dim: Dim,
        /// Its value.
        expected: usize,
        /// The size found.
        found: usize,
    },
    /// A value that is no size.
    #[error("size `{dim}` is {value}")]
    Negative {
        /// The expression.
        dim: Dim,
        /// Its value.
        value: i64,
    },
}

impl Bindings {
    /// No symbol bound.
    pub fn new() -> Bindings {
        Bindings::default()
    }

    /// The value of a symbol.
    pub fn get(&self, symbol: &Symbol) -> Option<i64> {
        self.values.get(symbol).copied()
    }

    /// Sets a symbol's value, whatever it was.
    pub fn set(&mut self, symbol: Symbol, value: i64) {
        self.values.insert(symbol, value);
    }

    /// Binds a symbol; an error if it has another value already.
    pub fn bind(&mut self, symbol: &Symbol, value: i64) -> Result<(), DimError> {
        match self.values.insert(symbol.clone(), value) {
            Some(first) if first != value => {
                self.values.insert(symbol.clone(), first);
                Err(DimError::Conflict { symbol: symbol.clone(), first, second: value })
            }
            _ => Ok(()),
        }
    }
}

impl Dim {
    /// The value under `bindings`.
    pub fn eval(&self, bindings: &Bindings) -> Result<i64, DimError> {
        let poly = match &self.0 {
            Repr::Const(c) => return Ok(*c),
            Repr::Overflow => return Err(DimError::Overflow { dim: self.clone() }),
            Repr::Expr(poly) => poly,
        };
        let overflow = || DimError::Overflow { dim: self.clone() };
        // i128 holds every product of two i64, so intermediate sums do not fail where the result fits.
        let mut sum = 0i128;
        for term in &poly.terms {
            let mut product = i128::from(term.coefficient);
            for atom in &term.monomial {
                product = product
                    .checked_mul(i128::from(atom.eval(self, bindings)?))
                    .filter(|p| p.unsigned_abs() < 1 << 100)
                    .ok_or_else(overflow)?;
            }
            sum = sum.checked_add(product).ok_or_else(overflow)?;
        }
        i64::try_from(sum).map_err(|_| overflow())
    }

    /// The value under `bindings`, which must be a size.
    pub fn eval_size(&self, bindings: &Bindings) -> Result<usize, DimError> {
        let value = self.eval(bindings)?;
        usize::try_from(value).map_err(|_| DimError::Negative { dim: self.clone(), value })
    }
}

impl Atom {
    fn eval(&self, whole: &Dim, bindings: &Bindings) -> Result<i64, DimError> {
        let overflow = || DimError::Overflow { dim: whole.clone() };
        match self {
            Atom::Symbol(s) => {
                bindings.get(s).ok_or_else(|| DimError::Unbound { symbol: s.clone(), dim: whole.clone() })
            }
            Atom::FloorDiv(a, b) => {
                let (a, b) = (a.eval(bindings)?, b.eval(bindings)?);
                let quotient = a.checked_div(b).ok_or_else(overflow)?;
                Ok(quotient - i64::from(a % b != 0 && (a < 0) != (b < 0)))
            }
            Atom::Mod(a, b) => {
                let (a, b) = (a.eval(bindings)?, b.eval(bindings)?);
                let remainder = a.checked_rem(b).ok_or_else(overflow)?;
                Ok(if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder })
            }
            Atom::Min(a, b) => Ok(a.eval(bindings)?.min(b.eval(bindings)?)),
            Atom::Max(a, b) => Ok(a.eval(bindings)?.max(b.eval(bindings)?)),
            Atom::Bcast(a, b) => match (a.eval(bindings)?, b.eval(bindings)?) {
                (x, y) if x == y => Ok(x),
                (1, y) => Ok(y),
                (x, 1) => Ok(x),
                (lhs, rhs) => Err(DimError::Broadcast { lhs, rhs, dim: whole.clone() }),
            },
        }
    }
}
