//! States: what a model keeps from run to run, in memory that runs update in place.

use crate::error::RunError;
use crate::slots::Slot;
use crate::tensor::Tensor;
use rlx_cpu::Input;
use rlx_eval::EvalError;
use rlx_ir::{Bindings, Symbol, TensorType};
use rlx_opt::Program;
use std::sync::Arc;

/// The states of one executable.
pub struct State {
    names: Vec<Arc<str>>,
    types: Vec<TensorType>,
    slots: Vec<Slot>,
}

impl State {
    pub(crate) fn new(program: &Program, sizes: &[(&str, usize)]) -> Result<State, RunError> {
        let mut bindings = Bindings::new();
        for (symbol, size) in sizes {
            bindings.set(Symbol::new(symbol), *size as i64);
        }
        let mut state = State { names: Vec::new(), types: Vec::new(), slots: Vec::new() };
        for port in program.states.iter().map(|s| &program.inputs[s.input]) {
            let dims = port.ty.shape.eval(&bindings).map_err(|cause| EvalError::InputSize {
                name: port.name.to_string(),
                expected: Box::new(port.ty.clone()),
                found: Box::new(port.ty.clone()),
                cause,
            })?;
            let mut slot = Slot::default();
            slot.set(port.ty.dtype, &dims)?;
            state.names.push(Arc::clone(&port.name));
            state.types.push(port.ty.clone());
            state.slots.push(slot);
        }
        Ok(state)
    }

    /// The names of the states, which are those of their inputs.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|n| &**n)
    }

    /// A copy of the state of this name.
    pub fn get(&self, name: &str) -> Option<Tensor> {
        let position = self.names.iter().position(|n| &**n == name)?;
        let (dtype, dims, bytes) = self.slots[position].view()?;
        Tensor::from_bytes(dtype, dims, bytes.to_vec()).ok()
    }

    /// Gives a state a value, as when one is loaded that was saved.
    ///
    /// # Errors
    /// If there is no state of this name, or the tensor has another type or rank.
    pub fn set(&mut self, name: &str, value: &Tensor) -> Result<(), RunError> {
        let Some(position) = self.names.iter().position(|n| &**n == name) else {
            let known = self.names.iter().map(|n| n.to_string()).collect();
            return Err(EvalError::UnknownInput { name: name.to_string(), known }.into());
        };
        let expected = &self.types[position];
        if expected.dtype != value.dtype() || expected.rank() != value.dims().len() {
            return Err(EvalError::InputType {
                name: name.to_string(),
                expected: Box::new(expected.clone()),
                found: Box::new(value.tensor_type()),
            }
            .into());
        }
        self.slots[position].fill(value).map(|_| ())
    }

    /// A copy that goes its own way from here.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn fork(&self) -> Result<State, RunError> {
        let mut fork = State { names: self.names.clone(), types: self.types.clone(), slots: Vec::new() };
        for slot in &self.slots {
            let mut copy = Slot::default();
            if let Some((dtype, dims, bytes)) = slot.view() {
                let tensor = Tensor::from_bytes(dtype, dims, bytes.to_vec())
                    .unwrap_or_else(|e| unreachable!("a slot's bytes are those of its type: {e}"));
                copy.fill(&tensor)?;
            }
            fork.slots.push(copy);
        }
        Ok(fork)
    }

    /// The states as inputs, in order.
    pub(crate) fn inputs(&mut self) -> impl Iterator<Item = Input<'_>> {
        self.slots.iter_mut().zip(&self.types).map(|(slot, ty)| {
            let pointer = slot.as_mut_ptr().cast_const();
            Input { dtype: ty.dtype, dims: slot.dims(), pointer }
        })
    }
}
