//! Control flow: bodies are programs with instances of their own.

use crate::array::In;
use crate::error::RunError;
use crate::instance::{Input, Instance, Outputs, RunControl};
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use crate::load::{Loaded, PrepareContext};
use crate::memory::Aligned;
use rlx_eval::{EvalOptions, Fault};
use rlx_ir::op::control::{Scan, While};
use rlx_ir::{Bindings, DType, Literal, Op, Primitive, TensorType};
use std::sync::Arc;

/// Prepares `if`, `while` and `scan`.
pub(crate) fn prepare(op: &Op, cx: &PrepareContext<'_>) -> Box<dyn Kernel> {
    let types: Arc<[TensorType]> = cx.step.result_types.clone().into();
    let bodies: Vec<Arc<Loaded>> = cx.bodies.clone();
    match op {
        Op::Primitive(Primitive::While(op)) => {
            Box::new(Loop { kind: Kind::While(op.clone()), bodies, types })
        }
        Op::Primitive(Primitive::Scan(op)) => Box::new(Loop { kind: Kind::Scan(op.clone()), bodies, types }),
        _ => Box::new(Loop { kind: Kind::If, bodies, types }),
    }
}

#[derive(Clone)]
enum Kind {
    If,
    While(While),
    Scan(Scan),
}

struct Loop {
    kind: Kind,
    bodies: Vec<Arc<Loaded>>,
    types: Arc<[TensorType]>,
}

impl Kernel for Loop {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        Ok(Box::new(BoundLoop {
            kind: self.kind.clone(),
            instances: self.bodies.iter().map(Instance::new).collect(),
            types: Arc::clone(&self.types),
            bindings: cx.bindings.clone(),
            carried: [Vec::new(), Vec::new()],
        }))
    }
}

struct BoundLoop {
    kind: Kind,
    instances: Vec<Instance>,
    types: Arc<[TensorType]>,
    bindings: Bindings,
    /// What goes from trip to trip, this trip's and the next one's.
    carried: [Vec<Tensor>; 2],
}

/// A tensor that the loop owns.
#[derive(Default)]
struct Tensor {
    memory: Aligned,
    dtype: Option<DType>,
    dims: Vec<usize>,
}

impl Tensor {
    fn set(&mut self, dtype: DType, dims: &[usize]) -> Result<*mut u8, RunError> {
        let bytes = dtype.storage_bytes(dims).unwrap_or(0);
        self.memory.ensure(bytes)?;
        self.dtype = Some(dtype);
        self.dims.clear();
        self.dims.extend_from_slice(dims);
        Ok(self.memory.as_mut_ptr())
    }

    fn copy(&mut self, x: &In<'_>) -> Result<(), Fault> {
        self.set(x.dtype(), x.dims()).map_err(RunError::into_fault)?;
        let bytes = x.bytes();
        self.memory.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn bytes(&self) -> &[u8] {
        let bytes = self.dtype.and_then(|d| d.storage_bytes(&self.dims)).unwrap_or(0);
        &self.memory.bytes()[..bytes]
    }

    fn input(&self) -> Input<'_> {
        Input { dtype: self.dtype.unwrap_or(DType::I64), dims: &self.dims, pointer: self.memory.as_ptr() }
    }

    fn to_literal(&self) -> Result<Literal, Fault> {
        let dtype = self.dtype.unwrap_or(DType::I64);
        Literal::new(dtype, self.dims.as_slice(), self.bytes().to_vec())
            .map_err(|e| Fault::Custom(e.to_string()))
    }
}

fn input<'a>(x: &In<'a>) -> Input<'a> {
    Input { dtype: x.dtype(), dims: x.dims(), pointer: x.pointer() }
}

/// The rows stacked so far along a new first axis.
#[derive(Default)]
struct Stack {
    row: Tensor,
    dims: Option<Vec<usize>>,
    bytes: Vec<u8>,
}

impl Stack {
    fn push(&mut self) {
        self.dims.get_or_insert_with(|| self.row.dims.clone());
        self.bytes.extend_from_slice(self.row.bytes());
    }

    /// Rows in the opposite order.
    fn reverse(&mut self, trips: usize) {
        let row = self.bytes.len() / trips.max(1);
        if row > 0 {
            self.bytes = self.bytes.chunks(row).rev().flatten().copied().collect();
        }
    }

    /// The tensor; without any trip its other sizes are `declared`, 0 where a size is only known inside the body.
    fn finish(self, trips: usize, declared: &TensorType, bindings: &Bindings) -> Result<Literal, Fault> {
        let element = self.dims.unwrap_or_else(|| {
            declared.dims()[1..].iter().map(|d| d.eval_size(bindings).unwrap_or(0)).collect()
        });
        let dims: Vec<usize> = std::iter::once(trips).chain(element).collect();
        Literal::new(declared.dtype, dims, self.bytes).map_err(|e| Fault::Custom(e.to_string()))
    }
}

/// Where a body's outputs go: a condition, carried values, rows of stacks.
struct LoopOutputs<'a> {
    condition: Option<&'a mut Tensor>,
    carried: &'a mut [Tensor],
    stacks: &'a mut [Stack],
}

impl Outputs for LoopOutputs<'_> {
    fn memory(&mut self, index: usize, dtype: DType, dims: &[usize]) -> Result<*mut u8, RunError> {
        let mut index = index;
        if let Some(condition) = &mut self.condition {
            if index == 0 {
                return condition.set(dtype, dims);
            }
            index -= 1;
        }
        let carried = self.carried.len();
        match self.carried.get_mut(index) {
            Some(tensor) => tensor.set(dtype, dims),
            None => self.stacks[index - carried].row.set(dtype, dims),
        }
    }
}

/// Results written where the step's results are.
struct Direct<'a, 'b>(&'a Arguments<'b>);

impl Outputs for Direct<'_, '_> {
    fn memory(&mut self, index: usize, dtype: DType, dims: &[usize]) -> Result<*mut u8, RunError> {
        let out = self.0.result(index);
        if out.dtype() != dtype || out.dims() != dims {
            return Err(RunError::OutputType {
                name: format!("#{index}"),
                expected: format!("{}{:?}", out.dtype(), out.dims()),
                found: format!("{dtype}{dims:?}"),
            });
        }
        Ok(out.pointer())
    }
}

impl BoundLoop {
    fn control<'a>(cx: &RunContext<'a>) -> RunControl<'a> {
        RunControl {
            cancel: cx.cancel,
            deadline: cx.deadline,
            sentinels: cx.sentinels,
            ..RunControl::default()
        }
    }

    fn branch(
        &mut self,
        cx: &RunContext<'_>,
        arguments: &Arguments<'_>,
        outputs: &mut dyn Outputs,
    ) -> Result<(), Fault> {
        let taken = usize::from(arguments.operand(0).scalar() == 0);
        let inputs: smallvec::SmallVec<[Input<'_>; 8]> =
            (1..arguments.operand_count()).map(|i| input(&arguments.operand(i))).collect();
        let outer = Some((&self.bindings, 0));
        self.instances[taken]
            .run(&inputs, outputs, outer, cx.pool, &Self::control(cx))
            .map_err(RunError::into_fault)
    }

    /// The results of a loop, carried ones first.
    fn repeat(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<Vec<Literal>, Fault> {
        let options = EvalOptions::default();
        let (first, carried_count, bound, scanned, reverse) = match &self.kind {
            Kind::While(op) => (2, op.carried, u64::try_from(arguments.operand(0).scalar()).ok(), 0, false),
            Kind::Scan(op) => {
                let length = op.length.eval_size(&self.bindings)? as u64;
                if length > options.trip_limit {
                    return Err(Fault::Trips { limit: options.trip_limit });
                }
                (0, op.carried, Some(length), op.scanned, op.reverse)
            }
            Kind::If => return Ok(Vec::new()),
        };
        let is_while = matches!(self.kind, Kind::While(_));
        for set in &mut self.carried {
            set.resize_with(carried_count, Tensor::default);
        }
        for i in 0..carried_count {
            self.carried[0][i].copy(&arguments.operand(first + i))?;
        }
        let mut stacks: Vec<Stack> = self.types[carried_count..].iter().map(|_| Stack::default()).collect();
        let mut condition = Tensor::default();
        let mut goes_on = !is_while || arguments.operand(1).scalar() != 0;
        let mut trip = 0u64;
        while goes_on && bound.is_none_or(|b| trip < b) {
            if trip >= options.trip_limit {
                return Err(Fault::Trips { limit: options.trip_limit });
            }
            let index = [trip as i64];
            let [this, next] = &mut self.carried;
            let mut inputs: Vec<Input<'_>> = Vec::with_capacity(1 + arguments.operand_count());
            if is_while {
                inputs.push(Input { dtype: DType::I64, dims: &[], pointer: index.as_ptr().cast() });
            }
            inputs.extend(this.iter().map(Tensor::input));
            for i in 0..scanned {
                let x = arguments.operand(first + carried_count + i);
                let at = match (reverse, bound) {
                    (true, Some(length)) => length - 1 - trip,
                    _ => trip,
                };
                let row = x.dtype().storage_bytes(&x.dims()[1..]).unwrap_or(0);
                let pointer = x.pointer().wrapping_add(row * at as usize);
                inputs.push(Input { dtype: x.dtype(), dims: &x.dims()[1..], pointer });
            }
            for i in first + carried_count + scanned..arguments.operand_count() {
                inputs.push(input(&arguments.operand(i)));
            }
            let mut outputs = LoopOutputs {
                condition: is_while.then_some(&mut condition),
                carried: next,
                stacks: &mut stacks,
            };
            self.instances[0]
                .run(&inputs, &mut outputs, Some((&self.bindings, 0)), cx.pool, &Self::control(cx))
                .map_err(RunError::into_fault)?;
            stacks.iter_mut().for_each(Stack::push);
            self.carried.swap(0, 1);
            if is_while {
                goes_on = condition.bytes().iter().any(|b| *b != 0);
            }
            trip += 1;
        }
        let trips = trip as usize;
        let mut bindings = self.bindings.clone();
        if let Kind::While(op) = &self.kind {
            bindings.set(op.count.clone(), trip as i64);
        }
        let mut results: Vec<Literal> =
            self.carried[0].iter().map(Tensor::to_literal).collect::<Result<_, _>>()?;
        for (mut stack, declared) in stacks.into_iter().zip(&self.types[carried_count..]) {
            if reverse {
                stack.reverse(trips);
            }
            results.push(stack.finish(trips, declared, &bindings)?);
        }
        Ok(results)
    }
}

impl Bound for BoundLoop {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        if let Kind::If = self.kind {
            return self.branch(cx, arguments, &mut Direct(arguments));
        }
        for (i, literal) in self.repeat(cx, arguments)?.iter().enumerate() {
            let out = arguments.result(i);
            if literal.dtype() != out.dtype() || literal.dims() != out.dims() {
                let found = format!("{}{:?}", literal.dtype(), literal.dims());
                return Err(Fault::Result { output: i, declared: self.types[i].clone(), found });
            }
            out.bytes().copy_from_slice(literal.bytes());
        }
        Ok(())
    }

    fn run_dynamic(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<Vec<Literal>, Fault> {
        let Kind::If = self.kind else { return self.repeat(cx, arguments) };
        let mut results: Vec<Tensor> = self.types.iter().map(|_| Tensor::default()).collect();
        let mut outputs = LoopOutputs { condition: None, carried: &mut results, stacks: &mut [] };
        self.branch(cx, arguments, &mut outputs)?;
        results.iter().map(Tensor::to_literal).collect()
    }
}
