//! Shapes and tensor types: what a value of the graph is.

use crate::dim::{Bindings, Dim, DimError};
use crate::dtype::DType;
use smallvec::SmallVec;
use std::fmt;
use std::ops::Deref;

/// The sizes of a tensor, outermost first. Dereferences to a slice of [`Dim`].
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(SmallVec<[Dim; 4]>);

impl Shape {
    /// The shape of a scalar.
    pub fn scalar() -> Shape {
        Shape::default()
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The sizes.
    pub fn dims(&self) -> &[Dim] {
        &self.0
    }

    /// The number of elements.
    pub fn element_count(&self) -> Dim {
        Dim::product(self.0.iter())
    }

    /// The sizes, if all are constants.
    pub fn as_const(&self) -> Option<Vec<usize>> {
        self.0.iter().map(Dim::as_size).collect()
    }

    /// The sizes under `bindings`.
    pub fn eval(&self, bindings: &Bindings) -> Result<Vec<usize>, DimError> {
        self.0.iter().map(|d| d.eval_size(bindings)).collect()
    }

    /// Appends an axis.
    pub fn push(&mut self, dim: Dim) {
        self.0.push(dim);
    }

    /// The same shape with one axis's size replaced. `axis` must be below the rank.
    pub fn with_dim(&self, axis: usize, dim: Dim) -> Shape {
        let mut shape = self.clone();
        shape.0[axis] = dim;
        shape
    }

    /// The same shape without the axes in `axes`.
    pub fn without(&self, axes: &[usize]) -> Shape {
        self.0.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, d)| d.clone()).collect()
    }
}

impl Deref for Shape {
    type Target = [Dim];
    fn deref(&self) -> &[Dim] {
        &self.0
    }
}

impl FromIterator<Dim> for Shape {
    fn from_iter<I: IntoIterator<Item = Dim>>(dims: I) -> Shape {
        Shape(dims.into_iter().collect())
    }
}

impl From<&[Dim]> for Shape {
    fn from(dims: &[Dim]) -> Shape {
        dims.iter().cloned().collect()
    }
}

impl From<Vec<Dim>> for Shape {
    fn from(dims: Vec<Dim>) -> Shape {
        Shape(SmallVec::from_vec(dims))
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Shape {
        dims.iter().map(|d| Dim::from(*d)).collect()
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Shape {
        dims.as_slice().into()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, dim) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{dim}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Element type and shape. Prints as `f32[b, 576]`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// The element type.
    pub dtype: DType,
    /// The sizes.
    pub shape: Shape,
}

impl TensorType {
    /// A tensor of `dtype` with these sizes.
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> TensorType {
        TensorType { dtype, shape: shape.into() }
    }

    /// A tensor without axes.
    pub fn scalar(dtype: DType) -> TensorType {
        TensorType { dtype, shape: Shape::scalar() }
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// The sizes.
    pub fn dims(&self) -> &[Dim] {
        &self.shape
    }

    /// The same shape with another element type.
    pub fn with_dtype(&self, dtype: DType) -> TensorType {
        TensorType { dtype, shape: self.shape.clone() }
    }

    /// The same element type with another shape.
    pub fn with_shape(&self, shape: impl Into<Shape>) -> TensorType {
        TensorType { dtype: self.dtype, shape: shape.into() }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}

impl fmt::Debug for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
