//! Operands and results as kernels see them: a layout and an address.
//!
//! All promises about memory are made where an [`In`] or [`Out`] is made; what kernels call after that is checked
//! against the layout or by debug assertions.
#![allow(unsafe_code)]

use rlx_ir::{DType, Literal};
use rlx_opt::program::Layout;
use std::marker::PhantomData;

/// A Rust type whose values are the elements of a type: any bit pattern is one of its values.
///
/// # Safety
/// Implementors have no padding and no invalid bit pattern.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($t:ty),*) => {$(
        // SAFETY: a number without padding; every pattern is a value.
        unsafe impl Plain for $t {}
    )*};
}
plain!(f64, f32, half::f16, half::bf16, i64, i32, i16, i8, u64, u32, u16, u8, u128);

/// An operand: elements that may be read.
#[derive(Clone, Copy)]
pub struct In<'a> {
    layout: &'a Layout,
    pointer: *const u8,
    lifetime: PhantomData<&'a [u8]>,
}

/// A result: elements that may be written.
#[derive(Clone, Copy)]
pub struct Out<'a> {
    layout: &'a Layout,
    pointer: *mut u8,
    lifetime: PhantomData<&'a mut [u8]>,
}

// SAFETY: an `In` is a shared borrow of memory that nothing writes while it lives.
unsafe impl Send for In<'_> {}
// SAFETY: as above.
unsafe impl Sync for In<'_> {}
// SAFETY: kernels write disjoint parts of a result from different threads, through `slice_at` and `write`.
unsafe impl Send for Out<'_> {}
// SAFETY: as above.
unsafe impl Sync for Out<'_> {}

impl<'a> In<'a> {
    /// An operand at `pointer`.
    ///
    /// # Safety
    /// For `'a`, every element of `layout`, counted from `pointer`, lies in initialised memory that is aligned for its
    /// type and that nothing but the same step writes.
    pub unsafe fn new(layout: &'a Layout, pointer: *const u8) -> In<'a> {
        In { layout, pointer, lifetime: PhantomData }
    }

    /// The layout.
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// The sizes.
    pub fn dims(&self) -> &'a [usize] {
        &self.layout.dims
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.layout.dtype
    }

    /// The address of the first element.
    pub fn pointer(&self) -> *const u8 {
        self.pointer
    }

    /// The elements of a packed operand.
    ///
    /// # Panics
    /// If it is not packed, or its elements have another width: faults of the kernel that asks.
    pub fn slice<T: Plain>(&self) -> &'a [T] {
        assert!(self.layout.is_packed() && width(self.dtype()) == size_of::<T>(), "{:?}", self.layout);
        // SAFETY: `new` promises the elements; packed, they are one slice.
        unsafe { slice(self.pointer.cast(), self.layout.count()) }
    }

    /// The bytes of a packed operand of any type.
    ///
    /// # Panics
    /// If it is not packed.
    pub fn bytes(&self) -> &'a [u8] {
        assert!(self.layout.is_packed());
        // SAFETY: as in `slice`.
        unsafe { slice(self.pointer, self.layout.packed_bytes().unwrap_or(0)) }
    }

    /// The element at `offset` (in elements, as strides add up to).
    ///
    /// # Safety
    /// `offset` is that of an element of the layout, whose width is `T`'s.
    pub unsafe fn read<T: Plain>(&self, offset: isize) -> T {
        debug_assert_eq!(width(self.dtype()), size_of::<T>());
        // SAFETY: promised by the caller.
        unsafe { self.pointer.cast::<T>().offset(offset).read() }
    }

    /// The only element of a scalar, as an integer; 0 for types that are none.
    pub fn scalar(&self) -> i64 {
        let literal = self.to_literal();
        literal.to_i64_vec().and_then(|v| v.first().copied()).unwrap_or(0)
    }

    /// A copy as a literal, whatever the layout.
    pub fn to_literal(&self) -> Literal {
        let bytes = if self.layout.is_packed() {
            self.bytes().to_vec()
        } else {
            let packed = Layout::packed(self.dtype(), self.dims());
            let mut bytes = vec![0u8; packed.packed_bytes().unwrap_or(0)];
            // SAFETY: `bytes` is as large as the packed layout says; only addressable types have other layouts.
            let out = unsafe { Out::new(&packed, bytes.as_mut_ptr()) };
            crate::kernels::copy::copy(self, &out);
            bytes
        };
        Literal::new(self.dtype(), self.dims(), bytes)
            .unwrap_or_else(|e| unreachable!("bytes of the layout's own size: {e}"))
    }
}

impl<'a> Out<'a> {
    /// A result at `pointer`.
    ///
    /// # Safety
    /// For `'a`, every element of `layout`, counted from `pointer`, lies in memory that is aligned for its type and that
    /// nothing else uses, but operands that the kernel said may share it.
    pub unsafe fn new(layout: &'a Layout, pointer: *mut u8) -> Out<'a> {
        Out { layout, pointer, lifetime: PhantomData }
    }

    /// The layout, which is packed.
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// The sizes.
    pub fn dims(&self) -> &'a [usize] {
        &self.layout.dims
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.layout.dtype
    }

    /// The address of the first element.
    pub fn pointer(&self) -> *mut u8 {
        self.pointer
    }

    /// All elements.
    ///
    /// # Panics
    /// If the elements have another width.
    #[allow(clippy::mut_from_ref)]
    pub fn slice<T: Plain>(&self) -> &'a mut [T] {
        self.slice_at(0, self.layout.count())
    }

    /// `count` elements from `start` on. Parts taken at the same time must not overlap.
    ///
    /// # Panics
    /// If they leave the result, or have another width.
    #[allow(clippy::mut_from_ref)]
    pub fn slice_at<T: Plain>(&self, start: usize, count: usize) -> &'a mut [T] {
        assert!(width(self.dtype()) == size_of::<T>(), "{:?}", self.layout);
        assert!(start.checked_add(count).is_some_and(|end| end <= self.layout.count()));
        if count == 0 {
            return &mut [];
        }
        // SAFETY: in range by the assertions; `new` promises the memory, the caller that parts do not overlap.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.cast::<T>().add(start), count) }
    }

    /// All bytes.
    #[allow(clippy::mut_from_ref)]
    pub fn bytes(&self) -> &'a mut [u8] {
        let bytes = self.layout.packed_bytes().unwrap_or(0);
        if bytes == 0 {
            return &mut [];
        }
        // SAFETY: `new` promises the memory.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, bytes) }
    }
}

/// Bytes of an element; 0 for types below a byte and block formats.
pub fn width(dtype: DType) -> usize {
    dtype.bits().map_or(0, |bits| bits as usize / 8)
}

/// # Safety
/// As for `std::slice::from_raw_parts`, unless `count` is 0.
unsafe fn slice<'a, T>(pointer: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(pointer, count) }
}

impl Out<'_> {
    /// The only element of an i64 scalar that was written.
    pub fn scalar_i64(&self) -> i64 {
        self.slice::<i64>().first().copied().unwrap_or(0)
    }
}
