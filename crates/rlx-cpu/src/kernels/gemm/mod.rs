//! Products of matrices: [`Gemm`] is the arithmetic and its tiles, [`product`] cuts the work in blocks, [`panels`] lays
//! matrices out for the tiles, [`axes`] makes matrices of a dot's operands, [`finish`] stores sums.
//!
//! A sum's terms are grouped by the depth alone, in the same order whatever the tile, the processor's registers, the
//! batch or the threads: a row gives the same bits in any batch.

pub mod axes;
pub mod finish;
pub mod panels;
pub mod product;
pub mod tile;

use crate::array::width;
use crate::error::RunError;
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use crate::load::PrepareContext;
use crate::weights::Packed;
use axes::{Axes, Matrices};
use finish::{Finish, Stored, Wrap};
use panels::{Convert, Fill, Left, Offsets, Panels, Right, RowSource, Rows, Side, Source, Strided, Takes};
use product::{Operand, Product, Sums};
use rlx_eval::Fault;
use rlx_ir::{DType, DTypeClass, Op, Primitive, TensorType};
use std::marker::PhantomData;
use std::sync::Arc;
pub use tile::Gemm;

/// The arithmetic of a contraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arithmetic {
    /// f32 sums of f32 and narrower.
    F32,
    /// f64 sums.
    F64,
    /// i32 sums of at most 16 bits.
    I16,
    /// Modulo 2³².
    I32,
    /// Modulo 2⁶⁴.
    I64,
}

/// A contraction's types: the arithmetic, and what its sums are wrapped to.
#[derive(Clone, Copy, Debug)]
pub struct Types {
    /// The arithmetic.
    pub arithmetic: Arithmetic,
    /// The accumulator of integers.
    pub wrap: Wrap,
    /// The result's type.
    pub out: DType,
}

impl Types {
    /// Those of a contraction of operands of one type; `None` where there is no arithmetic for them.
    pub fn new(operand: DType, accum: Option<DType>, out: Option<DType>) -> Option<Types> {
        let out = out.unwrap_or(operand);
        let wider = if out.bits() > operand.bits() { out } else { operand };
        let accum = accum.unwrap_or(if operand.is_float() { operand.dot_accumulator() } else { wider });
        let narrow = [DType::F16, DType::BF16, DType::F32];
        let whole = [DType::F64].iter().chain(&narrow);
        let bits = accum.bits()?;
        let arithmetic = if operand.is_float() {
            if !whole.clone().any(|d| *d == operand) || !whole.clone().any(|d| *d == out) {
                return None;
            }
            let wide = operand == DType::F64 || accum == DType::F64;
            if wide { Arithmetic::F64 } else { Arithmetic::F32 }
        } else if operand.is_int() && operand.bits()? >= 8 && out.bits()? >= 8 && bits >= 8 {
            let short = matches!(operand, DType::I8 | DType::U8 | DType::I16);
            match bits {
                64 => Arithmetic::I64,
                _ if short => Arithmetic::I16,
                _ => Arithmetic::I32,
            }
        } else {
            return None;
        };
        Some(Types { arithmetic, wrap: Wrap { bits, signed: accum.class() == DTypeClass::Signed }, out })
    }

    /// Those of `integer_dot`.
    pub fn bytes() -> Types {
        let wrap = Wrap { bits: 32, signed: true };
        Types { arithmetic: Arithmetic::I16, wrap, out: DType::I32 }
    }
}

/// Calls `$f::<G>(…)` with the arithmetic that this processor does best.
macro_rules! with_arithmetic {
    ($arithmetic:expr, $f:ident ( $($argument:expr),* )) => {
        match $arithmetic {
            #[cfg(target_arch = "x86_64")]
            $crate::kernels::gemm::Arithmetic::F32 if $crate::kernels::gemm::tile::F32Wide::available() => {
                $f::<$crate::kernels::gemm::tile::F32Wide>($($argument),*)
            }
            #[cfg(target_arch = "x86_64")]
            $crate::kernels::gemm::Arithmetic::I16 if $crate::kernels::gemm::tile::I16Wide::available() => {
                $f::<$crate::kernels::gemm::tile::I16Wide>($($argument),*)
            }
            $crate::kernels::gemm::Arithmetic::F32 => $f::<$crate::kernels::gemm::tile::F32>($($argument),*),
            $crate::kernels::gemm::Arithmetic::F64 => $f::<$crate::kernels::gemm::tile::F64>($($argument),*),
            $crate::kernels::gemm::Arithmetic::I16 => $f::<$crate::kernels::gemm::tile::I16>($($argument),*),
            $crate::kernels::gemm::Arithmetic::I32 => $f::<$crate::kernels::gemm::tile::I32>($($argument),*),
            $crate::kernels::gemm::Arithmetic::I64 => $f::<$crate::kernels::gemm::tile::I64>($($argument),*),
        }
    };
}
pub(crate) use with_arithmetic;

/// The types of a dot that runs here.
fn types_of(op: &Op, operands: &[&TensorType]) -> Option<Types> {
    match op {
        Op::Primitive(Primitive::Dot(dot)) => Types::new(operands.first()?.dtype, dot.accum, dot.out),
        Op::Primitive(Primitive::IntegerDot(_)) => Some(Types::bytes()),
        _ => None,
    }
}

/// Why a dot runs here; `None` if it does not.
pub(crate) fn route(op: &Op, operands: &[&TensorType]) -> Option<String> {
    let types = types_of(op, operands)?;
    Some(match types.arithmetic {
        Arithmetic::F32 => "blocked product with f32 sums".into(),
        Arithmetic::F64 => "blocked product with f64 sums".into(),
        Arithmetic::I16 => "blocked product of pairs of 16-bit integers, exact in i32".into(),
        Arithmetic::I32 | Arithmetic::I64 => "blocked product of integers, which wraps".into(),
    })
}

/// The kernel of a dot.
pub(crate) fn prepare(op: &Op, cx: &PrepareContext<'_>) -> Result<Box<dyn Kernel>, RunError> {
    let operands: Vec<&TensorType> = cx.step.operand_types.iter().collect();
    let axes = match op {
        Op::Primitive(Primitive::Dot(dot)) => Axes::of_dot(dot),
        Op::Primitive(Primitive::IntegerDot(dot)) => Axes::of_integer_dot(dot),
        _ => return Err(unsupported(op, "no dot")),
    };
    let types = types_of(op, &operands).ok_or_else(|| unsupported(op, "these types"))?;
    with_arithmetic!(types.arithmetic, prepare_as(op, axes, types, cx))
}

pub(crate) fn unsupported(op: &Op, found: &str) -> RunError {
    let fault = Fault::Unsupported { what: op.name().to_string(), found: found.into() };
    rlx_eval::EvalError::Node {
        op: op.name().to_string(),
        locations: Default::default(),
        fault: Box::new(fault),
    }
    .into()
}

fn prepare_as<G: Takes>(
    op: &Op,
    axes: Axes,
    types: Types,
    cx: &PrepareContext<'_>,
) -> Result<Box<dyn Kernel>, RunError>
where
    G::Sum: Stored,
{
    let [lhs, rhs] = [0, 1].map(|i| cx.step.operand_types[i].dtype);
    let lhs_functions = (G::fill_of::<Left>(lhs), G::convert_of(lhs));
    let functions = (lhs_functions, G::fill_of::<Right>(rhs), G::Sum::finish_of(types.out));
    let ((Some(lhs_fill), Some(lhs_convert)), Some(rhs_fill), Some(finish)) = functions else {
        return Err(unsupported(op, &format!("{lhs} and {rhs}")));
    };
    Ok(Box::new(Multiply::<G> {
        lhs_panels: constant_panels::<G, Left>(0, &axes, lhs_fill, cx)?,
        rhs_panels: constant_panels::<G, Right>(1, &axes, rhs_fill, cx)?,
        direct: direct::<G>(types),
        rows_in_place: width(lhs) == size_of::<G::Element>() && lhs.is_float() && G::GROUP == 1,
        axes: Arc::new(axes),
        lhs_fill,
        lhs_convert,
        rhs_fill,
        finish,
        wrap: types.wrap,
    }))
}

/// Whether sums are results as they are.
pub(crate) fn direct<G: Gemm>(types: Types) -> bool {
    let bits = 8 * size_of::<G::Sum>() as u32;
    width(types.out) == size_of::<G::Sum>() && (types.out.is_float() || types.wrap.bits == bits)
}

/// Panels of a weight, shared by the programs that use it.
pub(crate) type Shared<G> = Arc<Packed<Panels<G>>>;

/// The panels of an operand that is a constant, and one matrix for the whole batch.
fn constant_panels<G: Takes, S: Side>(
    operand: usize,
    axes: &Axes,
    fill: Fill<G>,
    cx: &PrepareContext<'_>,
) -> Result<Option<Shared<G>>, RunError> {
    let Some(view) = cx.constant_view(operand) else { return Ok(None) };
    let Some(one) = axes.one_matrix(operand, &view.dims, &view.strides) else { return Ok(None) };
    let dtype = cx.step.operand_types[operand].dtype;
    let layout = format!(
        "{} {} {dtype} {} {} {:?} {:?}",
        G::NAME,
        S::NAME,
        one.free,
        one.depth,
        one.matrix.free.key(view.offset),
        one.matrix.depth.key(0),
    );
    let source = Strided::<G, S> {
        pointer: view.pointer,
        width: width(dtype),
        batch: one.matrix.batch,
        free: one.matrix.free,
        depth: one.matrix.depth,
        fill,
        side: PhantomData,
    };
    let make = || {
        let panels = Panels::new::<S>(&source, 1, one.free, one.depth)?;
        let bytes = panels.bytes();
        Ok((panels, bytes))
    };
    cx.store.packed(&view.source, &layout, make).map(Some)
}

struct Multiply<G: Takes> {
    axes: Arc<Axes>,
    lhs_panels: Option<Shared<G>>,
    rhs_panels: Option<Shared<G>>,
    lhs_fill: Fill<G>,
    lhs_convert: Convert<G>,
    rhs_fill: Fill<G>,
    /// Whether sums are written straight to the result.
    direct: bool,
    /// Whether rows of the left operand can be used where they lie.
    rows_in_place: bool,
    finish: Finish<G::Sum>,
    wrap: Wrap,
}

impl<G: Takes> Kernel for Multiply<G>
where
    G::Sum: Stored,
{
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let m = self.axes.matrices(&cx.operands[0], &cx.operands[1]);
        let together = m.depth <= 1 || matches!(m.lhs.depth, Offsets::Even(1));
        let lhs_dtype = cx.operands[0].dtype;
        let lhs = match m.lhs.free {
            _ if !together => Lhs::Fill(strided(&m.lhs, lhs_dtype, self.lhs_fill)),
            Offsets::Even(row) if self.rows_in_place => Lhs::InPlace { row },
            _ => Lhs::Convert(Rows {
                pointer: std::ptr::null(),
                width: width(lhs_dtype),
                batch: m.lhs.batch.clone(),
                rows: m.lhs.free.clone(),
                convert: self.lhs_convert,
            }),
        };
        let lhs_panels = self.lhs_panels.clone().filter(|_| m.lhs_shared);
        Ok(Box::new(BoundMultiply::<G> {
            lhs_panels,
            rhs_panels: self.rhs_panels.clone(),
            lhs,
            rhs: strided(&m.rhs, cx.operands[1].dtype, self.rhs_fill),
            m,
            direct: self.direct,
            finish: self.finish,
            wrap: self.wrap,
        }))
    }
}

fn strided<G: Gemm, S>(m: &axes::Matrix, dtype: DType, fill: Fill<G>) -> Strided<G, S> {
    Strided {
        pointer: std::ptr::null(),
        width: width(dtype),
        batch: m.batch.clone(),
        free: m.free.clone(),
        depth: m.depth.clone(),
        fill,
        side: PhantomData,
    }
}

/// How the left operand comes to the tiles if it is not in panels.
enum Lhs<G: Gemm> {
    /// Rows are used where they lie; from one to the next.
    InPlace { row: isize },
    /// Rows are converted.
    Convert(Rows<G>),
    /// Panels are filled.
    Fill(Strided<G, Left>),
}

struct BoundMultiply<G: Takes> {
    m: Matrices,
    lhs_panels: Option<Shared<G>>,
    rhs_panels: Option<Shared<G>>,
    lhs: Lhs<G>,
    rhs: Strided<G, Right>,
    direct: bool,
    finish: Finish<G::Sum>,
    wrap: Wrap,
}

impl<G: Takes> Bound for BoundMultiply<G>
where
    G::Sum: Stored,
{
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let (x, y, out) = (arguments.operand(0), arguments.operand(1), arguments.result(0));
        match &mut self.lhs {
            Lhs::InPlace { .. } => {}
            Lhs::Convert(rows) => rows.pointer = x.pointer(),
            Lhs::Fill(panels) => panels.pointer = x.pointer(),
        }
        self.rhs.pointer = y.pointer();
        let once = |panels: &Shared<G>| panels.value.view().repeated(1);
        let lhs = match (&self.lhs_panels, &self.lhs) {
            (Some(panels), _) => Operand::Panels(once(panels)),
            (None, Lhs::InPlace { row }) => {
                Operand::Rows { first: x.pointer().cast(), row: *row, batch: &self.m.lhs.batch }
            }
            (None, Lhs::Convert(rows)) => Operand::Converted(rows as &dyn RowSource<G>),
            (None, Lhs::Fill(panels)) => Operand::Source(panels as &dyn Source<G>),
        };
        let rhs = match &self.rhs_panels {
            Some(panels) => Operand::Panels(once(panels)),
            None => Operand::Source(&self.rhs as &dyn Source<G>),
        };
        let store = |sums: &[G::Sum], place: usize| (self.finish)(sums, &out, place, self.wrap);
        let sums = if self.direct { Sums::To(out.pointer().cast()) } else { Sums::Through(&store) };
        let m = &self.m;
        let (batch, rows, columns, depth) = (m.batch, m.rows, m.columns, m.depth);
        Product::<G> { batch, rows, columns, depth, lhs, rhs, sums, tiles: G::tiles() }.run(cx.pool);
        Ok(())
    }
}
