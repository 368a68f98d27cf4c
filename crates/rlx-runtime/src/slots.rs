//! Memory for outputs.

use crate::error::RunError;
use crate::tensor::Tensor;
use rlx_cpu::memory::Aligned;
use rlx_cpu::sentinel::{self, SENTINEL_BYTES};
use rlx_ir::DType;

/// Memory for outputs: one tensor each, allocated as sizes become known and used again where they stay the same.
#[derive(Default)]
pub struct Slots {
    slots: Vec<Slot>,
    /// Whether there is a sentinel behind each output.
    watched: bool,
}

/// Memory for one tensor.
#[derive(Default)]
pub(crate) struct Slot {
    memory: Aligned,
    dtype: Option<DType>,
    dims: Vec<usize>,
}

impl Slot {
    /// Memory for a tensor of this type; what was in it is lost where it must grow.
    pub(crate) fn set(&mut self, dtype: DType, dims: &[usize]) -> Result<*mut u8, RunError> {
        self.memory.ensure(dtype.storage_bytes(dims).unwrap_or(0))?;
        self.dtype = Some(dtype);
        if self.dims != dims {
            self.dims.clear();
            self.dims.extend_from_slice(dims);
        }
        Ok(self.memory.as_mut_ptr())
    }

    /// Holds a copy of `tensor`.
    pub(crate) fn fill(&mut self, tensor: &Tensor) -> Result<*mut u8, RunError> {
        let pointer = self.set(tensor.dtype(), tensor.dims())?;
        let bytes = tensor.bytes();
        self.memory.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(pointer)
    }

    /// Type, sizes and bytes, once they are set.
    pub(crate) fn view(&self) -> Option<(DType, &[usize], &[u8])> {
        let dtype = self.dtype?;
        let bytes = dtype.storage_bytes(&self.dims)?;
        Some((dtype, &self.dims, &self.memory.bytes()[..bytes]))
    }

    pub(crate) fn dims(&self) -> &[usize] {
        &self.dims
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr()
    }
}

impl rlx_cpu::Outputs for Slots {
    fn memory(&mut self, index: usize, dtype: DType, dims: &[usize]) -> Result<*mut u8, RunError> {
        let watched = self.watched;
        let slot = self.slot(index);
        if watched {
            let bytes = dtype.storage_bytes(dims).unwrap_or(0);
            slot.memory.ensure(bytes + SENTINEL_BYTES)?;
            sentinel::fill(&mut slot.memory.bytes_mut()[bytes..]);
        }
        slot.set(dtype, dims)
    }
}

impl Slots {
    /// Slots with sentinels behind the outputs, which [`Self::intact`] looks at; for tests.
    pub fn watched() -> Slots {
        Slots { slots: Vec::new(), watched: true }
    }

    /// Whether nothing was written behind an output in the last run; true where nobody looks.
    pub fn intact(&self) -> bool {
        let mut written = self.slots.iter().filter_map(|slot| {
            let (_, _, bytes) = slot.view()?;
            Some(&slot.memory.bytes()[bytes.len()..])
        });
        !self.watched || written.all(sentinel::is_pattern)
    }

    fn slot(&mut self, index: usize) -> &mut Slot {
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, Slot::default);
        }
        &mut self.slots[index]
    }

    pub(crate) fn fill(&mut self, index: usize, tensor: &Tensor) -> Result<*mut u8, RunError> {
        self.slot(index).fill(tensor)
    }

    /// The type, sizes and bytes of output `index` of the last run.
    pub fn output(&self, index: usize) -> Option<(DType, &[usize], &[u8])> {
        self.slots.get(index)?.view()
    }

    pub(crate) fn into_tensors(self) -> Vec<Tensor> {
        let tensor = |slot: Slot| Some(Tensor::owned(slot.dtype?, slot.dims, slot.memory));
        self.slots.into_iter().filter_map(tensor).collect()
    }
}
