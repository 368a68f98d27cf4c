//! Where values come from: inputs, constants, counters, and the passage between sizes and values.

use super::{OpDef, Real};
use crate::dim::{Dim, Symbol};
use crate::dtype::DType;
use crate::error::TypeError;
use crate::infer::{Infer, Types, one};
use crate::literal::Literal;
use crate::operation;
use crate::types::TensorType;
use std::sync::Arc;

operation! {
    /// A value given from outside. C1: no overflow in the type's sizes.
    pub struct Input = "input" {
        /// Its name, unique in the graph.
        name: Arc<str>,
        /// Its type.
        ty: TensorType,
    }
}

operation! {
    /// A constant tensor.
    pub struct Constant = "constant" {
        /// Its elements.
        value: Literal,
    }
}

operation! {
    /// y\[i\] = start + step · i\[axis\], computed exactly and rounded (or wrapped) once.
    /// C1: a number type. C2: axis < rank. C3: integer types need whole start and step.
    pub struct Iota = "iota" {
        /// The result's type.
        ty: TensorType,
        /// The axis along which it counts.
        axis: usize,
        /// The first value.
        start: Real,
        /// The difference of neighbours.
        step: Real,
    }
}

operation! {
    /// The value of a size, as an i64 scalar.
    pub struct DimValue = "dim_value" {
        /// The size.
        dim: Dim,
    }
}

operation! {
    /// Binds a fresh symbol to the value of an i64 scalar, which passes through. At run time a value below `min`
    /// is an error. On devices it is a host wait. C1: an i64. C2: a scalar.
    pub struct BindDim = "bind_dim" {
        /// The symbol.
        symbol: Symbol,
        /// The least value allowed.
        min: i64,
    }
}

impl OpDef for Input {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(0)?;
        Ok(one(self.ty.clone()))
    }
}

impl OpDef for Constant {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(0)?;
        Ok(one(self.value.tensor_type()))
    }
}

impl OpDef for Iota {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(0)?;
        let dtype = self.ty.dtype;
        cx.ensure(dtype.is_float() || dtype.is_int(), "C1", None, "element type", "a number type", dtype)?;
        cx.axis_in("C2", self.axis, self.ty.rank())?;
        let (start, step) = (self.start.get(), self.step.get());
        let whole = start.fract() == 0.0 && step.fract() == 0.0;
        cx.ensure(
            dtype.is_float() || whole,
            "C3",
            None,
            "start and step",
            "whole numbers",
            format!("{start}, {step}"),
        )?;
        Ok(one(self.ty.clone()))
    }
}

impl OpDef for DimValue {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(0)?;
        cx.ensure(!self.dim.is_overflow(), "C1", None, "size overflows", "a size", &self.dim)?;
        Ok(one(TensorType::scalar(DType::I64)))
    }
}

impl OpDef for BindDim {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.dtype("C1", 0, DType::I64)?;
        cx.rank("C2", 0, 0)?;
        Ok(one(x.clone()))
    }
}
