//! The kernels, a file a family, and the one place that says which step runs by which.

mod along;
mod carrier;
mod codes;
pub mod control;
pub mod conv;
pub mod copy;
mod elementwise;
mod fft;
mod found;
pub mod gemm;
mod generate;
mod index;
mod movement;
mod number;
mod recurrent;
pub mod reference;
pub mod region;
mod scatter;
mod sort;
mod source;
mod total;
pub mod transfer;
mod transpose;
pub mod window;

use crate::error::RunError;
use crate::kernel::Kernel;
use crate::load::PrepareContext;
use crate::target::is_control;
use rlx_ir::{Composite, Op, Primitive, TensorType};
use rlx_opt::program::StepOp;
use rlx_opt::target::{OperandLayout, Route};

/// The operations of a file, whose kernels are made from the operation alone.
struct Family {
    /// The kernel's name in reports.
    name: &'static str,
    /// Whether it has this operation on operands of these types.
    has: fn(&Op, &[&TensorType]) -> bool,
    /// How many operands, from the first on, may have any strides.
    strided: usize,
    /// Moves elements whatever they mean, so that types below a byte go through codes of a byte.
    moves: bool,
    /// The kernel.
    prepare: fn(&Op, &PrepareContext<'_>) -> Option<Box<dyn Kernel>>,
}

/// In the order in which they are asked.
const FAMILIES: &[Family] = &[
    Family {
        name: "movement",
        has: |op, _| movement::is_movement(op),
        strided: usize::MAX,
        moves: true,
        prepare: |op, _| movement::prepare(op),
    },
    Family {
        name: "gather",
        has: |op, _| matches!(op, Op::Primitive(Primitive::Gather(_) | Primitive::GatherAlong(_))),
        strided: 1,
        moves: true,
        prepare: |op, _| index::prepare(op),
    },
    Family {
        name: "scatter",
        has: scatter::supports,
        strided: 1,
        moves: true,
        prepare: |op, _| scatter::prepare(op),
    },
    Family {
        name: "source",
        has: |op, _| source::is_source(op),
        strided: 0,
        moves: false,
        prepare: |op, _| source::prepare(op),
    },
    Family {
        name: "along",
        has: along::supports,
        strided: 0,
        moves: false,
        prepare: |op, _| along::prepare(op),
    },
    Family {
        name: "sort",
        has: sort::supports,
        strided: 0,
        moves: false,
        prepare: |op, _| sort::prepare(op),
    },
    Family { name: "total", has: total::supports, strided: 1, moves: false, prepare: total::prepare },
    Family {
        name: "found",
        has: found::supports,
        strided: 0,
        moves: false,
        prepare: |op, _| found::prepare(op),
    },
    Family {
        name: "generate",
        has: |op, _| matches!(op, Op::Primitive(Primitive::RandomBits(_) | Primitive::Dequantise(_))),
        strided: 0,
        moves: false,
        prepare: |op, _| generate::prepare(op),
    },
    Family {
        name: "fft",
        has: |op, _| matches!(op, Op::Primitive(Primitive::Fft(_))),
        strided: 0,
        moves: false,
        prepare: |op, _| fft::prepare(op),
    },
    Family {
        name: "recurrent",
        has: recurrent::supports,
        strided: 0,
        moves: false,
        prepare: recurrent::prepare,
    },
    Family {
        name: "elementwise",
        has: elementwise::supports,
        strided: 0,
        moves: false,
        prepare: |op, _| elementwise::prepare(op),
    },
];

/// The family of an operation.
fn family(op: &Op, operands: &[&TensorType]) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| (family.has)(op, operands))
}

/// Whether a composite has a kernel of its own; if not, why.
pub(crate) fn native(composite: &Composite, operands: &[&TensorType]) -> Result<(), String> {
    let bytes = matches!(composite, Composite::ConvInteger(_)) && conv::route_bytes(operands).is_some();
    if bytes || region::native(composite, operands) {
        return Ok(());
    }
    match composite {
        Composite::Gru(_) | Composite::Lstm(_) => recurrent::native(composite, operands),
        _ => Err("its decomposition is what runs here".into()),
    }
}

/// How operand `index` of an operation must lie.
pub(crate) fn operand_layout(op: &Op, index: usize, operands: &[&TensorType]) -> OperandLayout {
    if is_control(op) {
        return OperandLayout::Contiguous;
    }
    match route(op, operands).kernel {
        "window" if matches!(op, Op::Primitive(Primitive::ReduceWindowGrad(_))) => OperandLayout::Contiguous,
        "conv" if matches!(op, Op::Composite(_)) => OperandLayout::Contiguous,
        "region" | "reference" | "gemm" | "conv" | "window" => OperandLayout::Strided,
        _ => match family(op, operands) {
            // Where a block begins is read as one piece.
            Some(family) if index < family.strided && !movement::is_start(op, index) => {
                OperandLayout::Strided
            }
            _ => OperandLayout::Contiguous,
        },
    }
}

/// Whether a result may be written over an operand.
pub(crate) fn in_place(op: &Op, operand: usize, _result: usize, operands: &[&TensorType]) -> bool {
    match route(op, operands).kernel {
        "region" => region::in_place(op, operand, operands),
        "scatter" => operand == 0,
        "movement" => operand == 0 && matches!(op, Op::Primitive(Primitive::DynamicUpdate(_))),
        _ => false,
    }
}

/// The kernel of an operation.
pub(crate) fn route(op: &Op, operands: &[&TensorType]) -> Route {
    let because = |kernel, reason: &str| Route { kernel, reason: reason.to_string() };
    match op {
        Op::Primitive(Primitive::If(_) | Primitive::While(_) | Primitive::Scan(_)) => because("control", ""),
        Op::Primitive(Primitive::Call(_)) => because("region", "fused"),
        Op::Primitive(Primitive::Dot(_) | Primitive::IntegerDot(_)) => match gemm::route(op, operands) {
            Some(reason) => Route { kernel: "gemm", reason },
            None => because("reference", "no tiles for these element types: the oracle's loops"),
        },
        Op::Primitive(Primitive::Conv(conv)) => match conv::route(conv, operands) {
            Some(reason) => Route { kernel: "conv", reason },
            None => because("reference", "no tiles for these element types: the oracle's loops"),
        },
        Op::Composite(Composite::ConvInteger(_)) => match conv::route_bytes(operands) {
            Some(reason) => Route { kernel: "conv", reason },
            None => because("reference", "no bytes: the oracle's loops"),
        },
        Op::Primitive(Primitive::ReduceWindow(_)) => {
            match operands.first().and_then(|x| window::route(x.dtype)) {
                Some(reason) => Route { kernel: "window", reason },
                None => because("reference", "no lanes for this element type: the oracle's loops"),
            }
        }
        Op::Primitive(Primitive::ReduceWindowGrad(_)) => {
            match operands.first().and_then(|x| window::route_gradient(x.dtype)) {
                Some(reason) => Route { kernel: "window", reason },
                None => because("reference", "no lanes for this element type: the oracle's loops"),
            }
        }
        op if region::runs_alone(op, operands) => because("region", "one operation"),
        Op::Primitive(
            Primitive::Cholesky(_)
            | Primitive::TriangularSolve(_)
            | Primitive::Lu(_)
            | Primitive::Qr(_)
            | Primitive::Eigh(_)
            | Primitive::Svd(_),
        ) => {
            because("reference", "matrix decompositions are the oracle's loops: correct in f64, rarely large")
        }
        op => match family(op, operands) {
            Some(family) => because(family.name, ""),
            None => because("reference", "no kernel of its own yet: the oracle's loops"),
        },
    }
}

/// The kernel of a step, prepared.
pub(crate) fn prepare(cx: PrepareContext<'_>) -> Result<Box<dyn Kernel>, RunError> {
    let op = match &cx.step.op {
        StepOp::Copy => return Ok(Box::new(copy::Copy)),
        StepOp::Op(op) => op,
    };
    match cx.step.kernel {
        "conv" => return conv::prepare(op, &cx),
        "window" => return window::prepare(op, cx.step.operand_types[0].dtype),
        "gemm" => return gemm::prepare(op, &cx),
        "control" => return Ok(control::prepare(op, &cx)),
        "region" => return region::prepare(op, &cx),
        _ => {}
    }
    let family = FAMILIES.iter().find(|family| family.name == cx.step.kernel);
    let kernel = family.and_then(|family| Some((family, (family.prepare)(op, &cx)?)));
    Ok(match kernel {
        Some((family, inner)) => {
            let types = cx.step.operand_types.iter().chain(&cx.step.result_types);
            match family.moves && types.into_iter().any(|t| carrier::below_a_byte(t.dtype)) {
                true => Box::new(codes::Codes { inner }),
                false => inner,
            }
        }
        None => Box::new(reference::Reference::new(op, &cx)),
    })
}
