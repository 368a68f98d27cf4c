//! Weights in memory: aligned, shared by all programs that use them, one copy for each layout in use.

use crate::error::RunError;
use crate::memory::Aligned;
use bytes::Bytes;
use rlx_ir::Literal;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The bytes of a weight, aligned for its element type.
#[derive(Clone)]
pub enum WeightBytes {
    /// The literal's own (perhaps a mapped file's).
    Shared(Bytes),
    /// A copy, where the literal's are not aligned.
    Copied(Arc<Packed<Aligned>>),
}

impl WeightBytes {
    /// Where they begin.
    pub fn as_ptr(&self) -> *const u8 {
        match self {
            WeightBytes::Shared(bytes) => bytes.as_ptr(),
            WeightBytes::Copied(copy) => copy.value.as_ptr(),
        }
    }
}

/// What a weight in a layout is found by: which bytes (address and length identify a shared slice while it lives), and
/// the layout's name with its parameters.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    address: usize,
    bytes: usize,
    layout: String,
}

/// A weight in a layout.
struct Entry {
    /// Dropped with the last program that uses it.
    packed: Weak<dyn Any + Send + Sync>,
    bytes: usize,
}

/// Weights by tensor and layout, shared by the programs of a session.
#[derive(Default)]
pub struct WeightStore {
    entries: Mutex<FxHashMap<Key, Entry>>,
}

/// A packed weight that keeps the bytes alive that it was found by.
pub struct Packed<T> {
    /// In the layout asked for.
    pub value: T,
    _source: Bytes,
}

impl WeightStore {
    /// The bytes of `literal`, aligned to `align`.
    ///
    /// # Errors
    /// If there is no memory for a copy.
    pub fn aligned(&self, literal: &Literal, align: usize) -> Result<WeightBytes, RunError> {
        let bytes = literal.bytes();
        if bytes.as_ptr().addr().is_multiple_of(align.max(1)) {
            return Ok(WeightBytes::Shared(bytes.clone()));
        }
        let copy = self.packed(literal, "aligned", || {
            let memory = Aligned::copy_of(bytes)?;
            Ok((memory, bytes.len()))
        })?;
        Ok(WeightBytes::Copied(copy))
    }

    /// `literal` in the layout of this name: found, or made by `make`, which also says how many bytes it takes.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn packed<T: Send + Sync + 'static>(
        &self,
        literal: &Literal,
        layout: &str,
        make: impl FnOnce() -> Result<(T, usize), RunError>,
    ) -> Result<Arc<Packed<T>>, RunError> {
        let source = literal.bytes();
        let key = Key { address: source.as_ptr().addr(), bytes: source.len(), layout: layout.to_string() };
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let found = entries.get(&key).and_then(|e| e.packed.upgrade());
        if let Some(found) = found.and_then(|f| f.downcast::<Packed<T>>().ok()) {
            return Ok(found);
        }
        let (value, bytes) = make()?;
        let packed = Arc::new(Packed { value, _source: source.clone() });
        let weak: Weak<dyn Any + Send + Sync> = {
            let any: Arc<dyn Any + Send + Sync> = packed.clone();
            Arc::downgrade(&any)
        };
        entries.retain(|_, entry| entry.packed.strong_count() > 0);
        entries.insert(key, Entry { packed: weak, bytes });
        Ok(packed)
    }

    /// The copies in use by layout: its name, how many there are, and their bytes.
    pub fn layouts(&self) -> BTreeMap<String, (usize, usize)> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut layouts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (key, entry) in entries.iter().filter(|(_, entry)| entry.packed.strong_count() > 0) {
            let (count, bytes) = layouts.entry(key.layout.clone()).or_default();
            *count += 1;
            *bytes += entry.bytes;
        }
        layouts
    }

    /// The bytes of all copies in use, those that share the file's not counted.
    pub fn bytes(&self) -> usize {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.values().filter(|e| e.packed.strong_count() > 0).map(|e| e.bytes).sum()
    }
}
