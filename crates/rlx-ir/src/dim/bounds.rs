//! What is known of symbols, and what follows for expressions: intervals, and three-valued comparisons.

use super::{Atom, Dim, Repr, Symbol};
use indexmap::IndexMap;

/// An interval of integers, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Range {
    /// The least value.
    pub min: i64,
    /// The greatest value; `i64::MAX` where there is no bound.
    pub max: i64,
}

impl Range {
    /// Every size: 0 and up.
    pub const SIZE: Range = Range { min: 0, max: i64::MAX };
}

/// What is known of one symbol.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SymbolInfo {
    /// The values it may take.
    pub range: Range,
    /// Every value is a multiple of this (1: nothing known).
    pub multiple_of: i64,
    /// A likely value, for cost models.
    pub likely: Option<i64>,
}

impl Default for SymbolInfo {
    fn default() -> Self {
        SymbolInfo { range: Range::SIZE, multiple_of: 1, likely: None }
    }
}

/// What is known of a graph's symbols. A symbol that is not listed is any size.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Symbols {
    known: IndexMap<Symbol, SymbolInfo>,
}

/// The answer to a question about symbolic sizes. `Unknown` becomes a check at run time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// True for every value of the symbols.
    Yes,
    /// False for every value of the symbols.
    No,
    /// It depends, or could not be found out.
    Unknown,
}

impl Symbols {
    /// Declares what is known of a symbol; a second declaration replaces the first.
    pub fn declare(&mut self, symbol: Symbol, info: SymbolInfo) {
        self.known.insert(symbol, info);
    }

    /// What is known of a symbol.
    pub fn info(&self, symbol: &Symbol) -> SymbolInfo {
        self.known.get(symbol).cloned().unwrap_or_default()
    }

    /// The declared symbols, in order of declaration.
    pub fn iter(&self) -> impl Iterator<Item = (&Symbol, &SymbolInfo)> {
        self.known.iter()
    }

    /// Whether the symbol was declared.
    pub fn contains(&self, symbol: &Symbol) -> bool {
        self.known.contains_key(symbol)
    }

    /// An interval that holds every value of `dim` (interval arithmetic; ends saturate).
    pub fn range(&self, dim: &Dim) -> Range {
        match &dim.0 {
            Repr::Const(c) => Range { min: *c, max: *c },
            Repr::Overflow => Range { min: i64::MIN, max: i64::MAX },
            Repr::Expr(poly) => {
                let mut total = Range { min: 0, max: 0 };
                for term in &poly.terms {
                    let mut product = Range { min: term.coefficient, max: term.coefficient };
                    for atom in &term.monomial {
                        product = multiply(product, self.atom_range(atom));
                    }
                    total = Range {
                        min: saturating_add(total.min, product.min),
                        max: saturating_add(total.max, product.max),
                    };
                }
                total
            }
        }
    }

    fn atom_range(&self, atom: &Atom) -> Range {
        match atom {
            Atom::Symbol(s) => self.info(s).range,
            Atom::FloorDiv(a, b) => {
                let (a, b) = (self.range(a), self.range(b));
                if b.min > 0 {
                    Range {
                        min: if a.min < 0 { a.min.div_euclid(b.min) } else { a.min.div_euclid(b.max) },
                        max: if a.max == i64::MAX {
                            i64::MAX
                        } else if a.max < 0 {
                            a.max.div_euclid(b.max)
                        } else {
                            a.max.div_euclid(b.min)
                        },
                    }
                } else if a.min >= 0 && b.min >= 0 {
                    Range { min: 0, max: a.max }
                } else {
                    Range { min: i64::MIN, max: i64::MAX }
                }
            }
            Atom::Mod(_, b) => {
                let b = self.range(b);
                if b.min >= 0 {
                    Range { min: 0, max: if b.max == i64::MAX { i64::MAX } else { b.max - 1 } }
                } else {
                    Range { min: i64::MIN, max: i64::MAX }
                }
            }
            Atom::Min(a, b) => {
                let (a, b) = (self.range(a), self.range(b));
                Range { min: a.min.min(b.min), max: a.max.min(b.max) }
            }
            Atom::Max(a, b) => {
                let (a, b) = (self.range(a), self.range(b));
                Range { min: a.min.max(b.min), max: a.max.max(b.max) }
            }
            Atom::Bcast(a, b) => {
                let (a, b) = (self.range(a), self.range(b));
                // bcast(1, 0) is 0, so the lesser minimum holds.
                Range { min: a.min.min(b.min), max: a.max.max(b.max) }
            }
        }
    }

    /// Whether two sizes are equal.
    pub fn known_eq(&self, lhs: &Dim, rhs: &Dim) -> Answer {
        if lhs.is_overflow() || rhs.is_overflow() {
            return Answer::No;
        }
        if lhs == rhs {
            return Answer::Yes;
        }
        let difference = lhs - rhs;
        if difference.is_overflow() {
            return Answer::Unknown;
        }
        let range = self.range(&difference);
        if range.min > 0 || range.max < 0 {
            return Answer::No;
        }
        // An expression whose every coefficient is a multiple of m cannot reach a constant that is not.
        if self.cannot_be_zero_by_divisibility(&difference) {
            return Answer::No;
        }
        Answer::Unknown
    }

    /// Whether `lhs ≤ rhs`.
    pub fn known_le(&self, lhs: &Dim, rhs: &Dim) -> Answer {
        let difference = rhs - lhs;
        if difference.is_overflow() {
            return Answer::Unknown;
        }
        let range = self.range(&difference);
        if range.min >= 0 {
            Answer::Yes
        } else if range.max < 0 {
            Answer::No
        } else {
            Answer::Unknown
        }
    }

    fn cannot_be_zero_by_divisibility(&self, difference: &Dim) -> bool {
        let Repr::Expr(poly) = &difference.0 else { return false };
        let (mut divisor, mut constant) = (0u64, 0i64);
        for term in &poly.terms {
            if term.monomial.is_empty() {
                constant = term.coefficient;
                continue;
            }
            let mut step = term.coefficient.unsigned_abs();
            for atom in &term.monomial {
                if let Atom::Symbol(s) = atom {
                    let multiple = self.info(s).multiple_of.unsigned_abs().max(1);
                    step = step.checked_mul(multiple).unwrap_or(1);
                }
            }
            divisor = greatest_common_divisor(divisor, step);
        }
        divisor > 1 && !constant.unsigned_abs().is_multiple_of(divisor)
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Ends at the edge of `i64` mean "no bound" and stay there.
fn saturating_add(a: i64, b: i64) -> i64 {
    if a == i64::MAX || b == i64::MAX {
        return i64::MAX;
    }
    if a == i64::MIN || b == i64::MIN {
        return i64::MIN;
    }
    a.saturating_add(b)
}

fn multiply(a: Range, b: Range) -> Range {
    let ends = [
        a.min.saturating_mul(b.min),
        a.min.saturating_mul(b.max),
        a.max.saturating_mul(b.min),
        a.max.saturating_mul(b.max),
    ];
    ends.into_iter()
        .fold(Range { min: i64::MAX, max: i64::MIN }, |r, e| Range { min: r.min.min(e), max: r.max.max(e) })
}
