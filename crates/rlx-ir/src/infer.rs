//! What a type rule sees and says: the operands' types, helpers that state constraints, and the run-time checks
//! that remain where symbolic sizes could not be compared.
//!
//! Each constraint carries the label (`C1`, `C2` …) under which the operation's documentation lists it.

use crate::dim::{Answer, Dim, Symbols};
use crate::dtype::{DType, DTypeClass};
use crate::error::{Locations, TypeError, TypeErrorParts};
use crate::types::{Shape, TensorType};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::fmt::Display;

/// The types of an operation's results.
pub type Types = SmallVec<[TensorType; 1]>;

/// A relation of sizes that must hold once the symbols are bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// The relation.
    pub relation: Relation,
    /// Left side.
    pub lhs: Dim,
    /// Right side.
    pub rhs: Dim,
    /// The error if it does not hold; expected and found are the two sides.
    pub error: TypeError,
}

/// How two sizes must compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// Equal.
    Equal,
    /// Less or equal.
    LessOrEqual,
}

/// The context of one type rule.
pub struct Infer<'a> {
    op: &'a str,
    operands: &'a [&'a TensorType],
    symbols: &'a Symbols,
    checks: RefCell<Vec<Check>>,
}

impl<'a> Infer<'a> {
    /// A context for the operation named `op` on these operands.
    pub fn new(op: &'a str, operands: &'a [&'a TensorType], symbols: &'a Symbols) -> Infer<'a> {
        Infer { op, operands, symbols, checks: RefCell::default() }
    }

    /// The checks that remain for run time.
    pub fn into_checks(self) -> Vec<Check> {
        self.checks.into_inner()
    }

    /// The number of operands.
    pub fn count(&self) -> usize {
        self.operands.len()
    }

    /// What is known of the symbols.
    pub fn symbols(&self) -> &Symbols {
        self.symbols
    }

    /// An error of this operation.
    pub fn error(
        &self,
        label: &'static str,
        operand: Option<usize>,
        what: impl Into<String>,
        expected: impl Display,
        found: impl Display,
    ) -> TypeError {
        TypeError::new(TypeErrorParts {
            op: self.op.to_string(),
            label,
            operand,
            what: what.into(),
            expected: expected.to_string(),
            found: found.to_string(),
            locations: Locations::none(),
        })
    }

    /// An error unless `holds`.
    pub fn ensure(
        &self,
        holds: bool,
        label: &'static str,
        operand: Option<usize>,
        what: &str,
        expected: impl Display,
        found: impl Display,
    ) -> Result<(), TypeError> {
        if holds { Ok(()) } else { Err(self.error(label, operand, what, expected, found)) }
    }

    /// C0: exactly `n` operands.
    pub fn arity(&self, n: usize) -> Result<(), TypeError> {
        self.ensure(self.count() == n, "C0", None, "number of operands", n, self.count())
    }

    /// C0: between `min` and `max` operands.
    pub fn arity_between(&self, min: usize, max: usize) -> Result<(), TypeError> {
        let n = self.count();
        self.ensure((min..=max).contains(&n), "C0", None, "number of operands", format!("{min} to {max}"), n)
    }

    /// Operand `i`; an error of C0 if there is none.
    pub fn operand(&self, i: usize) -> Result<&'a TensorType, TypeError> {
        self.operands.get(i).copied().ok_or_else(|| {
            self.error("C0", None, "number of operands", format!("more than {i}"), self.count())
        })
    }

    /// Operand `i`, which must satisfy `accepts`.
    pub fn of(
        &self,
        label: &'static str,
        i: usize,
        expected: &str,
        accepts: impl Fn(DType) -> bool,
    ) -> Result<&'a TensorType, TypeError> {
        let t = self.operand(i)?;
        self.ensure(accepts(t.dtype), label, Some(i), "element type", expected, t.dtype)?;
        Ok(t)
    }

    /// Operand `i`, which must be floating point.
    pub fn float(&self, label: &'static str, i: usize) -> Result<&'a TensorType, TypeError> {
        self.of(label, i, "a floating-point type", DType::is_float)
    }

    /// Operand `i`, which must be a signed or unsigned integer.
    pub fn int(&self, label: &'static str, i: usize) -> Result<&'a TensorType, TypeError> {
        self.of(label, i, "an integer type", DType::is_int)
    }

    /// Operand `i`, which must have this element type.
    pub fn dtype(&self, label: &'static str, i: usize, dtype: DType) -> Result<&'a TensorType, TypeError> {
        self.of(label, i, dtype.name(), |d| d == dtype)
    }

    /// Operand `i`, which must be a number: integer, float or complex.
    pub fn number(&self, label: &'static str, i: usize) -> Result<&'a TensorType, TypeError> {
        self.of(label, i, "a number type", |d| d.is_float() || d.is_int() || d.is_complex())
    }

    /// Operand `i`, which must be of integers that index or count.
    pub fn index(&self, label: &'static str, i: usize) -> Result<&'a TensorType, TypeError> {
        self.of(label, i, "i32 or i64", |d| matches!(d, DType::I32 | DType::I64))
    }

    /// Operand `i` must have the element type of operand `j`.
    pub fn same_dtype(&self, label: &'static str, i: usize, j: usize) -> Result<(), TypeError> {
        let (found, expected) = (self.operand(i)?.dtype, self.operand(j)?.dtype);
        self.ensure(
            found == expected,
            label,
            Some(i),
            &format!("element type differs from operand {j}'s"),
            expected,
            found,
        )
    }

    /// Operand `i` must have exactly these sizes.
    pub fn same_dims(&self, label: &'static str, i: usize, expected: &[Dim]) -> Result<(), TypeError> {
        let found = &self.operand(i)?.shape;
        let differ = || self.error(label, Some(i), "sizes differ", Shape::from(expected), found);
        if found.rank() != expected.len() {
            return Err(differ());
        }
        for (found, expected) in found.iter().zip(expected) {
            self.equal_or(expected, found, differ)?;
        }
        Ok(())
    }

    /// Operand `i` must have the element type and the sizes of operand `j`.
    pub fn same_type(&self, label: &'static str, i: usize, j: usize) -> Result<(), TypeError> {
        self.same_dtype(label, i, j)?;
        self.same_dims(label, i, self.operand(j)?.dims())
    }

    /// Operand `i` must have this many axes.
    pub fn rank(&self, label: &'static str, i: usize, rank: usize) -> Result<&'a TensorType, TypeError> {
        let t = self.operand(i)?;
        self.ensure(t.rank() == rank, label, Some(i), "number of axes", rank, t.rank())?;
        Ok(t)
    }

    /// Operand `i` must have at least this many axes.
    pub fn rank_at_least(
        &self,
        label: &'static str,
        i: usize,
        rank: usize,
    ) -> Result<&'a TensorType, TypeError> {
        let t = self.operand(i)?;
        self.ensure(
            t.rank() >= rank,
            label,
            Some(i),
            "number of axes",
            format!("at least {rank}"),
            t.rank(),
        )?;
        Ok(t)
    }

    /// CB: rows of a block-quantised operand stay whole: `whole` says whether this operation leaves the last axis as it
    /// is. Operands of other types pass.
    pub fn whole_rows(&self, i: usize, whole: bool) -> Result<(), TypeError> {
        let t = self.operand(i)?;
        let passes = whole || t.dtype.class() != DTypeClass::Block;
        self.ensure(
            passes,
            "CB",
            Some(i),
            "rows of block formats stay whole",
            "a last axis that is left as it is",
            t,
        )
    }

    /// `axis` must be an axis of a tensor of rank `rank`.
    pub fn axis_in(&self, label: &'static str, axis: usize, rank: usize) -> Result<(), TypeError> {
        self.ensure(axis < rank, label, None, "axis is out of range", format!("below {rank}"), axis)
    }

    /// `axes` must be axes of a tensor of rank `rank`, strictly increasing.
    pub fn axes_in(&self, label: &'static str, axes: &[usize], rank: usize) -> Result<(), TypeError> {
        for (i, axis) in axes.iter().enumerate() {
            self.axis_in(label, *axis, rank)?;
            self.ensure(
                i == 0 || axes[i - 1] < *axis,
                label,
                None,
                "axes must increase",
                "increasing axes",
                format!("{axes:?}"),
            )?;
        }
        Ok(())
    }

    /// `lhs` and `rhs` must be equal: an error if they are known to differ, a run-time check if unknown.
    pub fn equal(
        &self,
        label: &'static str,
        operand: Option<usize>,
        what: &str,
        expected: &Dim,
        found: &Dim,
    ) -> Result<(), TypeError> {
        self.equal_or(expected, found, || self.error(label, operand, what, expected, found))
    }

    fn equal_or(&self, lhs: &Dim, rhs: &Dim, error: impl Fn() -> TypeError) -> Result<(), TypeError> {
        match self.symbols.known_eq(lhs, rhs) {
            Answer::Yes => Ok(()),
            Answer::No => Err(error()),
            Answer::Unknown => {
                self.check(Relation::Equal, lhs, rhs, error());
                Ok(())
            }
        }
    }

    /// `lhs ≤ rhs` must hold: an error if it is known not to, a run-time check if unknown.
    pub fn at_most(
        &self,
        label: &'static str,
        operand: Option<usize>,
        what: &str,
        lhs: &Dim,
        rhs: &Dim,
    ) -> Result<(), TypeError> {
        let error = || self.error(label, operand, what, format!("at most {rhs}"), lhs);
        match self.symbols.known_le(lhs, rhs) {
            Answer::Yes => Ok(()),
            Answer::No => Err(error()),
            Answer::Unknown => {
                self.check(Relation::LessOrEqual, lhs, rhs, error());
                Ok(())
            }
        }
    }

    fn check(&self, relation: Relation, lhs: &Dim, rhs: &Dim, error: TypeError) {
        let check = Check { relation, lhs: lhs.clone(), rhs: rhs.clone(), error };
        let mut checks = self.checks.borrow_mut();
        if !checks.contains(&check) {
            checks.push(check);
        }
    }
}

/// One result of this type.
pub fn one(t: TensorType) -> Types {
    smallvec::smallvec![t]
}
