//! Aligned memory.
#![allow(unsafe_code)]

use crate::error::RunError;

/// A cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Zeroed bytes at an address that is a multiple of 64. Growing drops what was in it.
#[derive(Default)]
pub struct Aligned {
    lines: Vec<Line>,
}

impl Aligned {
    /// Memory for at least `bytes`.
    ///
    /// # Errors
    /// If the system has none.
    pub fn new(bytes: usize) -> Result<Aligned, RunError> {
        let mut memory = Aligned::default();
        memory.ensure(bytes)?;
        Ok(memory)
    }

    /// A copy of `bytes`.
    ///
    /// # Errors
    /// If the system has no memory.
    pub fn copy_of(bytes: &[u8]) -> Result<Aligned, RunError> {
        let mut memory = Aligned::new(bytes.len())?;
        memory.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(memory)
    }

    /// Makes room for `bytes`; contents are lost if there was not.
    ///
    /// # Errors
    /// If the system has none.
    pub fn ensure(&mut self, bytes: usize) -> Result<(), RunError> {
        let lines = bytes.div_ceil(size_of::<Line>());
        if lines <= self.lines.len() {
            return Ok(());
        }
        self.lines = Vec::new();
        self.lines
            .try_reserve_exact(lines)
            .map_err(|e| RunError::Memory { needed: bytes, reason: e.to_string() })?;
        self.lines.resize(lines, Line([0; 64]));
        Ok(())
    }

    /// The room there is.
    pub fn len(&self) -> usize {
        self.lines.len() * size_of::<Line>()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: lines are 64 initialised bytes each, without padding, one after the other.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len()) }
    }

    /// The bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; every bit pattern is a valid line.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len()) }
    }

    /// Where it begins.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }

    /// Where it begins.
    pub fn as_ptr(&self) -> *const u8 {
        self.lines.as_ptr().cast()
    }
}
