//! Cases of operations that users add.

use crate::Array;
use crate::case::{Case, Stage, case, f32s};
use rlx_ir::infer::{Infer, Types};
use rlx_ir::op::{Custom, CustomOp};
use rlx_ir::{Builder, DType, Graph, Literal, TensorType, TypeError};
use std::sync::Arc;

/// x + c, refused for c = 13.
#[derive(Debug)]
struct AddConstant(f64);

impl CustomOp for AddConstant {
    fn name(&self) -> &str {
        "add_constant"
    }
    fn attributes(&self) -> String {
        self.0.to_string()
    }
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        Ok(rlx_ir::infer::one(cx.dtype("C1", 0, DType::F32)?.clone()))
    }
    fn eval(&self, operands: &[Literal]) -> Result<Vec<Literal>, String> {
        if self.0 == 13.0 {
            return Err("13 is not added".to_string());
        }
        let x = Array::from_literal(&operands[0]).ok_or("numbers are needed")?;
        Ok(vec![x.map(|v| v + self.0).to_literal(DType::F32)])
    }
}

fn graph(constant: f64, dtype: DType) -> Result<Graph, TypeError> {
    let mut b = Builder::new("custom");
    let x = b.input("x", TensorType::new(dtype, [2]))?;
    let y = b.push1(Custom(Arc::new(AddConstant(constant))), &[x])?;
    b.finish([("y", y)])
}

/// Cases of custom operations.
pub(super) fn custom() -> Vec<Case> {
    let made = |name: &str, constant: f64, dtype: DType| {
        let mut made = case("custom", name, "() { return }");
        made.graph = graph(constant, dtype).map(Arc::new).map_err(|e| e.to_string());
        made
    };
    vec![
        made("adds", 1.5, DType::F32).input(f32s([2], [1.0, 2.0])).values([f32s([2], [2.5, 3.5])]),
        made("fails", 13.0, DType::F32).input(f32s([2], [1.0, 2.0])).fails(Stage::Run, "13 is not added"),
        made("wrong_type", 1.0, DType::F64).fails_build("C1"),
    ]
}
