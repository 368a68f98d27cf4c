//! Arithmetic of dims, into normal form.

use super::{Atom, Dim, MAX_TERMS, Poly, Repr, Term};
use std::collections::BTreeMap;
use std::ops::{Add, Mul, Neg, Sub};
use std::sync::Arc;

type Monomial = smallvec::SmallVec<[Atom; 2]>;

fn from_terms(terms: BTreeMap<Monomial, i64>) -> Dim {
    let terms: Vec<Term> = terms
        .into_iter()
        .filter(|(_, c)| *c != 0)
        .map(|(monomial, coefficient)| Term { monomial, coefficient })
        .collect();
    match terms.as_slice() {
        [] => Dim::ZERO,
        [Term { monomial, coefficient }] if monomial.is_empty() => Dim::constant(*coefficient),
        _ if terms.len() > MAX_TERMS || terms.iter().any(|t| t.monomial.len() > MAX_TERMS) => Dim::OVERFLOW,
        _ => {
            // Of the atoms that are left: one that cancelled must leave no trace in the normal form.
            let depth = terms.iter().flat_map(|t| &t.monomial).map(Atom::depth).max().unwrap_or(0);
            Dim(Repr::Expr(Arc::new(Poly { terms, depth })))
        }
    }
}

fn add_term(terms: &mut BTreeMap<Monomial, i64>, monomial: Monomial, coefficient: i64) -> Option<()> {
    let slot = terms.entry(monomial).or_insert(0);
    *slot = slot.checked_add(coefficient)?;
    Some(())
}

fn sum(lhs: &Dim, rhs: &Dim, sign: i64) -> Option<Dim> {
    if let (Some(a), Some(b)) = (lhs.as_const(), rhs.as_const()) {
        return Some(Dim::constant(a.checked_add(b.checked_mul(sign)?)?));
    }
    let mut terms = BTreeMap::new();
    for term in lhs.terms() {
        add_term(&mut terms, term.monomial, term.coefficient)?;
    }
    for term in rhs.terms() {
        add_term(&mut terms, term.monomial, term.coefficient.checked_mul(sign)?)?;
    }
    Some(from_terms(terms))
}

fn product(lhs: &Dim, rhs: &Dim) -> Option<Dim> {
    if let (Some(a), Some(b)) = (lhs.as_const(), rhs.as_const()) {
        return Some(Dim::constant(a.checked_mul(b)?));
    }
    let (left, right) = (lhs.terms(), rhs.terms());
    if left.len() * right.len() > MAX_TERMS * 4 {
        return None;
    }
    let mut terms = BTreeMap::new();
    for a in &left {
        for b in &right {
            let mut monomial: Monomial = a.monomial.iter().chain(&b.monomial).cloned().collect();
            monomial.sort();
            add_term(&mut terms, monomial, a.coefficient.checked_mul(b.coefficient)?)?;
        }
    }
    Some(from_terms(terms))
}

/// `lhs / rhs` by polynomial long division, if it leaves no remainder.
fn exact_quotient(lhs: &Dim, rhs: &Dim) -> Option<Dim> {
    let divisor = rhs.terms();
    // The largest monomial leads; lexicographic order on sorted atoms is not a monomial order in general, so
    // the result is checked by multiplication at the end.
    let lead = divisor.last()?;
    let mut rest = lhs.clone();
    let mut quotient = Dim::ZERO;
    for _ in 0..MAX_TERMS {
        let terms = rest.terms();
        let Some(top) = terms.last() else {
            return (quotient.clone() * rhs.clone() == *lhs).then_some(quotient);
        };
        if top.coefficient.checked_rem(lead.coefficient)? != 0 {
            return None;
        }
        let mut monomial = top.monomial.clone();
        for atom in &lead.monomial {
            let at = monomial.iter().position(|a| a == atom)?;
            monomial.remove(at);
        }
        let coefficient = top.coefficient.checked_div(lead.coefficient)?;
        let step = from_terms(BTreeMap::from([(monomial, coefficient)]));
        rest = rest - step.clone() * rhs.clone();
        quotient = quotient + step;
        if rest.is_overflow() || quotient.is_overflow() {
            return None;
        }
    }
    None
}

/// Splits `dim` into (what is divisible by `k` term by term, the rest), for a constant `k > 0`.
fn split_multiples(dim: &Dim, k: i64) -> (Dim, Dim) {
    let (mut multiples, mut rest) = (BTreeMap::new(), BTreeMap::new());
    for term in dim.terms() {
        let quotient = term.coefficient.div_euclid(k);
        let remainder = term.coefficient.rem_euclid(k);
        if remainder == 0 || term.monomial.is_empty() {
            multiples.insert(term.monomial.clone(), quotient);
            rest.insert(term.monomial, remainder);
        } else {
            rest.insert(term.monomial, term.coefficient);
        }
    }
    (from_terms(multiples), from_terms(rest))
}

impl Dim {
    /// `self / rhs` if the division is exact as polynomials, for every value of the symbols where `rhs ≠ 0`.
    pub fn exact_div(&self, rhs: &Dim) -> Option<Dim> {
        match (&self.0, &rhs.0) {
            (Repr::Overflow, _) | (_, Repr::Overflow) | (_, Repr::Const(0)) => None,
            (Repr::Const(0), _) => Some(Dim::ZERO),
            (_, Repr::Const(1)) => Some(self.clone()),
            _ if self == rhs => Some(Dim::ONE),
            _ => exact_quotient(self, rhs),
        }
    }

    /// `⌊self / rhs⌋`. Evaluating it with `rhs = 0` is an error; a constant 0 gives [`Dim::OVERFLOW`].
    pub fn floor_div(&self, rhs: &Dim) -> Dim {
        if self.is_overflow() || rhs.is_overflow() || rhs.as_const() == Some(0) {
            return Dim::OVERFLOW;
        }
        if let (Some(a), Some(b)) = (self.as_const(), rhs.as_const()) {
            let Some(quotient) = a.checked_div(b) else { return Dim::OVERFLOW };
            return Dim::constant(quotient - i64::from(a % b != 0 && (a < 0) != (b < 0)));
        }
        if let Some(exact) = self.exact_div(rhs) {
            return exact;
        }
        if let Some(k) = rhs.as_const().filter(|k| *k > 0) {
            let (multiples, rest) = split_multiples(self, k);
            if let Some(r) = rest.as_const() {
                return multiples + Dim::constant(r.div_euclid(k));
            }
            return multiples + Dim::from_atom(Atom::FloorDiv(rest, rhs.clone()));
        }
        Dim::from_atom(Atom::FloorDiv(self.clone(), rhs.clone()))
    }

    /// `⌈self / rhs⌉`.
    pub fn ceil_div(&self, rhs: &Dim) -> Dim {
        -(-self.clone()).floor_div(rhs)
    }

    /// `self - rhs · ⌊self / rhs⌋`, which has the sign of `rhs`.
    pub fn modulo(&self, rhs: &Dim) -> Dim {
        if self.is_overflow() || rhs.is_overflow() || rhs.as_const() == Some(0) {
            return Dim::OVERFLOW;
        }
        if self.as_const().is_some() && rhs.as_const().is_some() {
            return self.clone() - rhs.clone() * self.floor_div(rhs);
        }
        if self.exact_div(rhs).is_some() {
            return Dim::ZERO;
        }
        if let Some(k) = rhs.as_const().filter(|k| *k > 0) {
            let (_, rest) = split_multiples(self, k);
            if let Some(r) = rest.as_const() {
                return Dim::constant(r.rem_euclid(k));
            }
            return Dim::from_atom(Atom::Mod(rest, rhs.clone()));
        }
        Dim::from_atom(Atom::Mod(self.clone(), rhs.clone()))
    }

    /// The lesser of two sizes.
    pub fn min(&self, rhs: &Dim) -> Dim {
        self.extremum(rhs, i64::min, Atom::Min)
    }

    /// The greater of two sizes.
    pub fn max(&self, rhs: &Dim) -> Dim {
        self.extremum(rhs, i64::max, Atom::Max)
    }

    fn extremum(&self, rhs: &Dim, pick: fn(i64, i64) -> i64, atom: fn(Dim, Dim) -> Atom) -> Dim {
        if self.is_overflow() || rhs.is_overflow() {
            return Dim::OVERFLOW;
        }
        if self == rhs {
            return self.clone();
        }
        // A difference that is constant decides: min(s + 2, s + 5) is s + 2.
        if let Some(difference) = (self.clone() - rhs.clone()).as_const() {
            let keep_self = pick(difference, 0) == difference;
            return if keep_self { self.clone() } else { rhs.clone() };
        }
        let (a, b) = if self.0 <= rhs.0 { (self, rhs) } else { (rhs, self) };
        Dim::from_atom(atom(a.clone(), b.clone()))
    }

    /// The size that two sizes broadcast to: 1 with k gives k, equal sizes stay; anything else is an error,
    /// found when the symbols are bound. Two different constants above 1 give [`Dim::OVERFLOW`].
    pub fn bcast(&self, rhs: &Dim) -> Dim {
        if self.is_overflow() || rhs.is_overflow() {
            return Dim::OVERFLOW;
        }
        match (self.as_const(), rhs.as_const()) {
            _ if self == rhs => self.clone(),
            (Some(1), _) => rhs.clone(),
            (_, Some(1)) => self.clone(),
            (Some(_), Some(_)) => Dim::OVERFLOW,
            // A constant k other than 1 leaves 1 or k for the other side: the result is k.
            (Some(_), None) => self.clone(),
            (None, Some(_)) => rhs.clone(),
            (None, None) => {
                let (a, b) = if self.0 <= rhs.0 { (self, rhs) } else { (rhs, self) };
                Dim::from_atom(Atom::Bcast(a.clone(), b.clone()))
            }
        }
    }

    /// The product of sizes.
    pub fn product<'a>(dims: impl IntoIterator<Item = &'a Dim>) -> Dim {
        dims.into_iter().fold(Dim::ONE, |n, d| n * d.clone())
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, |$a:ident, $b:ident| $body:expr) => {
        impl $trait<&Dim> for &Dim {
            type Output = Dim;
            fn $method(self, rhs: &Dim) -> Dim {
                if self.is_overflow() || rhs.is_overflow() {
                    return Dim::OVERFLOW;
                }
                let ($a, $b) = (self, rhs);
                $body.unwrap_or(Dim::OVERFLOW)
            }
        }
        impl $trait<Dim> for Dim {
            type Output = Dim;
            fn $method(self, rhs: Dim) -> Dim {
                $trait::$method(&self, &rhs)
            }
        }
        impl $trait<Dim> for &Dim {
            type Output = Dim;
            fn $method(self, rhs: Dim) -> Dim {
                $trait::$method(self, &rhs)
            }
        }
        impl $trait<&Dim> for Dim {
            type Output = Dim;
            fn $method(self, rhs: &Dim) -> Dim {
                $trait::$method(&self, rhs)
            }
        }
        impl $trait<i64> for Dim {
            type Output = Dim;
            fn $method(self, rhs: i64) -> Dim {
                $trait::$method(&self, &Dim::constant(rhs))
            }
        }
        impl $trait<i64> for &Dim {
            type Output = Dim;
            fn $method(self, rhs: i64) -> Dim {
                $trait::$method(self, &Dim::constant(rhs))
            }
        }
    };
}

operator!(Add, add, |a, b| sum(a, b, 1));
operator!(Sub, sub, |a, b| sum(a, b, -1));
operator!(Mul, mul, |a, b| product(a, b));

impl Neg for Dim {
    type Output = Dim;
    fn neg(self) -> Dim {
        Dim::ZERO - self
    }
}
