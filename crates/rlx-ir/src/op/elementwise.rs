//! Elementwise primitives. Operands have equal sizes: broadcasting is explicit.

use super::OpDef;
use crate::dtype::{DType, DTypeClass};
use crate::error::TypeError;
use crate::infer::{Infer, Types, one};
use crate::{names, operation};

names! {
    /// Functions of one number.
    pub enum UnaryOp {
        /// −x; integers wrap.
        Neg = "neg",
        /// |x|; for a complex number its modulus, of the part's type.
        Abs = "abs",
        /// −1, ±0 or 1; NaN stays.
        Sign = "sign",
        /// The greatest whole number ≤ x.
        Floor = "floor",
        /// The least whole number ≥ x.
        Ceil = "ceil",
        /// The nearest whole number, half to even.
        Round = "round",
        /// x without its fraction.
        Trunc = "trunc",
        /// √x.
        Sqrt = "sqrt",
        /// 1/√x.
        Rsqrt = "rsqrt",
        /// eˣ.
        Exp = "exp",
        /// eˣ − 1, exact near 0.
        Expm1 = "expm1",
        /// ln x.
        Log = "log",
        /// ln (1 + x), exact near 0.
        Log1p = "log1p",
        /// sin x (radians).
        Sin = "sin",
        /// cos x (radians).
        Cos = "cos",
        /// tan x (radians).
        Tan = "tan",
        /// arcsin x.
        Asin = "asin",
        /// arccos x.
        Acos = "acos",
        /// arctan x.
        Atan = "atan",
        /// sinh x.
        Sinh = "sinh",
        /// cosh x.
        Cosh = "cosh",
        /// tanh x.
        Tanh = "tanh",
        /// arsinh x.
        Asinh = "asinh",
        /// arcosh x.
        Acosh = "acosh",
        /// artanh x.
        Atanh = "atanh",
        /// The error function 2/√π ∫₀ˣ e^(−t²) dt.
        Erf = "erf",
        /// 1 − erf x, exact where erf x nears 1.
        Erfc = "erfc",
        /// The inverse of erf.
        Erfinv = "erfinv",
        /// ln |Γ(x)|.
        Lgamma = "lgamma",
        /// d/dx ln Γ(x).
        Digamma = "digamma",
        /// 1 / (1 + e^(−x)).
        Sigmoid = "sigmoid",
        /// Logical not of a bool.
        Not = "not",
        /// Bitwise not of an integer.
        BitNot = "bit_not",
        /// Whether x is NaN.
        IsNan = "is_nan",
        /// Whether x is an infinity.
        IsInf = "is_inf",
        /// Whether x is neither NaN nor an infinity.
        IsFinite = "is_finite",
        /// The real part of a complex number.
        RealPart = "real",
        /// The imaginary part of a complex number.
        ImagPart = "imag",
        /// The complex conjugate.
        Conj = "conj",
    }
}

names! {
    /// Functions of two numbers.
    pub enum BinaryOp {
        /// x + y; integers wrap.
        Add = "add",
        /// x − y; integers wrap.
        Sub = "sub",
        /// x · y; integers wrap.
        Mul = "mul",
        /// x / y; integers truncate toward zero, and division by zero is an error at run time.
        Div = "div",
        /// The remainder of truncating division, with the sign of x (C's fmod for floats).
        Rem = "rem",
        /// xʸ (IEEE pow). Integers: wraps; a negative y gives 0 except for bases ±1.
        Pow = "pow",
        /// The greater; NaN if either is; max(−0, +0) = +0.
        Max = "max",
        /// The lesser; NaN if either is; min(−0, +0) = −0.
        Min = "min",
        /// The angle of the point (y, x): atan2(lhs, rhs).
        Atan2 = "atan2",
        /// Logical and of bools, bitwise of integers.
        And = "and",
        /// Logical or of bools, bitwise of integers.
        Or = "or",
        /// Exclusive or.
        Xor = "xor",
        /// Shift left; by the width or more gives 0.
        Shl = "shl",
        /// Shift right, arithmetic for signed types; by the width or more gives 0 (signed: the sign).
        Shr = "shr",
    }
}

names! {
    /// Comparisons; with NaN all are false but `ne`.
    pub enum CompareOp {
        /// x = y.
        Eq = "eq",
        /// x ≠ y.
        Ne = "ne",
        /// x < y.
        Lt = "lt",
        /// x ≤ y.
        Le = "le",
        /// x > y.
        Gt = "gt",
        /// x ≥ y.
        Ge = "ge",
    }
}

names! {
    /// Which way a cast to e8m0 rounds.
    pub enum RoundMode {
        /// To the nearest, half to even.
        Nearest = "nearest",
        /// Toward +∞.
        Up = "up",
        /// Toward −∞.
        Down = "down",
    }
}

operation! {
    /// y = f(x). C1: an element type that f is defined on.
    pub struct Unary: UnaryOp {}
}

operation! {
    /// z = f(x, y). C1: an element type that f is defined on. C2: both operands have one type.
    pub struct Binary: BinaryOp {}
}

operation! {
    /// z = x ∘ y as bool. C1: an ordered type (eq and ne: any). C2: both operands have one type.
    pub struct Compare: CompareOp {}
}

operation! {
    /// z = c ? x : y. C1: c is bool. C2: x and y have one type. C3: c has their sizes.
    pub struct Select = "select" {}
}

operation! {
    /// The same number in another type. float → int truncates, saturates, NaN gives 0; int → narrower int wraps;
    /// to bool is x ≠ 0; float → float rounds to nearest even. C1: text and block formats are not cast.
    /// C2: complex only to complex.
    pub struct Cast = "cast" {
        /// The result's element type.
        to: DType,
        /// To the 8-bit and 4-bit floats: whether what is out of range becomes the largest finite number.
        saturate: bool,
        /// To e8m0: the rounding.
        round: Option<RoundMode>,
    }
}

operation! {
    /// The same bits as another type. C1: equal widths, 8 bits or more.
    pub struct Bitcast = "bitcast" {
        /// The result's element type.
        to: DType,
    }
}

operation! {
    /// z = x + i·y. C1: f32 or f64. C2: both operands have one type.
    pub struct MakeComplex = "complex" {}
}

impl OpDef for Unary {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        use UnaryOp::*;
        cx.arity(1)?;
        let x = cx.operand(0)?;
        let class = x.dtype.class();
        let (accepts, expected) = match self.op {
            Neg => (x.dtype.is_int() || x.dtype.is_float() || x.dtype.is_complex(), "a number type"),
            Abs => (x.dtype.is_int() || x.dtype.is_float() || x.dtype.is_complex(), "a number type"),
            Sign => (x.dtype.is_int() || x.dtype.is_float(), "an integer or floating-point type"),
            Not => (class == DTypeClass::Bool, "bool"),
            BitNot => (x.dtype.is_int(), "an integer type"),
            RealPart | ImagPart | Conj => (x.dtype.is_complex(), "a complex type"),
            _ => (x.dtype.is_float(), "a floating-point type"),
        };
        cx.ensure(accepts, "C1", Some(0), "element type", expected, x.dtype)?;
        let dtype = match self.op {
            IsNan | IsInf | IsFinite => DType::Bool,
            RealPart | ImagPart | Abs => x.dtype.complex_part().unwrap_or(x.dtype),
            _ => x.dtype,
        };
        Ok(one(x.with_dtype(dtype)))
    }
}

impl OpDef for Binary {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        use BinaryOp::*;
        cx.arity(2)?;
        let x = cx.operand(0)?;
        let (int, float, complex) = (x.dtype.is_int(), x.dtype.is_float(), x.dtype.is_complex());
        let (accepts, expected) = match self.op {
            Add | Sub | Mul | Div => (int || float || complex, "a number type"),
            Rem | Pow | Max | Min => (int || float, "an integer or floating-point type"),
            Atan2 => (float, "a floating-point type"),
            And | Or | Xor => (int || x.dtype == DType::Bool, "an integer type or bool"),
            Shl | Shr => (int, "an integer type"),
        };
        cx.ensure(accepts, "C1", Some(0), "element type", expected, x.dtype)?;
        cx.same_type("C2", 1, 0)?;
        Ok(one(x.clone()))
    }
}

impl OpDef for Compare {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.operand(0)?;
        let equality = matches!(self.op, CompareOp::Eq | CompareOp::Ne);
        let accepts = match x.dtype.class() {
            DTypeClass::Block => false,
            DTypeClass::Complex | DTypeClass::String => equality,
            _ => true,
        };
        cx.ensure(accepts, "C1", Some(0), "element type", "a type with this comparison", x.dtype)?;
        cx.same_type("C2", 1, 0)?;
        Ok(one(x.with_dtype(DType::Bool)))
    }
}

impl OpDef for Select {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(3)?;
        cx.dtype("C1", 0, DType::Bool)?;
        cx.same_type("C2", 2, 1)?;
        cx.whole_rows(1, false)?;
        let x = cx.operand(1)?;
        cx.same_dims("C3", 0, x.dims())?;
        Ok(one(x.clone()))
    }
}

impl OpDef for Cast {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.operand(0)?;
        for (operand, dtype) in [(Some(0), x.dtype), (None, self.to)] {
            let plain = !matches!(dtype.class(), DTypeClass::String | DTypeClass::Block);
            cx.ensure(plain, "C1", operand, "element type", "a number type or bool", dtype)?;
        }
        let complex_ok = !x.dtype.is_complex() || self.to.is_complex();
        cx.ensure(complex_ok, "C2", Some(0), "element type", "a real type (take `real` first)", x.dtype)?;
        Ok(one(x.with_dtype(self.to)))
    }
}

impl OpDef for Bitcast {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = cx.operand(0)?;
        let (from, to) = (x.dtype.bits(), self.to.bits());
        let fits = from == to && from.is_some_and(|b| b >= 8);
        cx.ensure(
            fits,
            "C1",
            Some(0),
            "bit widths differ",
            format!("a type as wide as {}", self.to),
            x.dtype,
        )?;
        Ok(one(x.with_dtype(self.to)))
    }
}

impl OpDef for MakeComplex {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(2)?;
        let x = cx.operand(0)?;
        let Some(dtype) = x.dtype.to_complex() else {
            return Err(cx.error("C1", Some(0), "element type", "f32 or f64", x.dtype));
        };
        cx.same_type("C2", 1, 0)?;
        Ok(one(x.with_dtype(dtype)))
    }
}
