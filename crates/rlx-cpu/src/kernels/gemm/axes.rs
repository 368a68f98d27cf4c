//! A dot product's axes as matrices: batch, rows, depth and columns.

use super::panels::Offsets;
use rlx_ir::op::contract::{Dot, IntegerDot};
use rlx_opt::program::Layout;
use smallvec::SmallVec;

/// Which axes of the operands are which.
#[derive(Clone, Debug)]
pub struct Axes {
    lhs: SideAxes,
    rhs: SideAxes,
}

#[derive(Clone, Debug)]
struct SideAxes {
    batch: Vec<usize>,
    contract: Vec<usize>,
}

/// Sizes and strides of some axes.
type Part = (SmallVec<[usize; 6]>, SmallVec<[isize; 6]>);

impl SideAxes {
    fn free(&self, rank: usize) -> impl Iterator<Item = usize> {
        (0..rank).filter(|axis| !self.batch.contains(axis) && !self.contract.contains(axis))
    }
}

fn part(dims: &[usize], strides: &[isize], axes: impl IntoIterator<Item = usize>) -> Part {
    axes.into_iter().map(|axis| (dims[axis], strides[axis])).unzip()
}

fn offsets((dims, strides): &Part) -> Offsets {
    Offsets::new(dims, strides)
}

fn count((dims, _): &Part) -> usize {
    dims.iter().product()
}

/// A matrix of a batch: where its elements lie.
pub struct Matrix {
    /// Along the batch.
    pub batch: Offsets,
    /// Along rows of the left, columns of the right.
    pub free: Offsets,
    /// Along the depth.
    pub depth: Offsets,
}

/// The product that a dot is, for some sizes.
pub struct Matrices {
    /// How many products.
    pub batch: usize,
    /// Rows of each.
    pub rows: usize,
    /// Columns of each.
    pub columns: usize,
    /// Terms of a sum.
    pub depth: usize,
    /// The left matrices.
    pub lhs: Matrix,
    /// The right matrices.
    pub rhs: Matrix,
    /// Whether all left matrices are one, and not repeated along the rows.
    pub lhs_shared: bool,
}

/// A constant operand whose matrices are one, whatever the batch.
pub struct OneMatrix {
    /// Rows or columns.
    pub free: usize,
    /// Terms of a sum.
    pub depth: usize,
    /// Where its elements lie.
    pub matrix: Matrix,
}

impl Axes {
    /// Those of a dot.
    pub fn of_dot(op: &Dot) -> Axes {
        Axes {
            lhs: SideAxes { batch: op.lhs_batch.clone(), contract: op.lhs_contract.clone() },
            rhs: SideAxes { batch: op.rhs_batch.clone(), contract: op.rhs_contract.clone() },
        }
    }

    /// Those of a dot of bytes.
    pub fn of_integer_dot(op: &IntegerDot) -> Axes {
        Axes {
            lhs: SideAxes { batch: op.lhs_batch.clone(), contract: op.lhs_contract.clone() },
            rhs: SideAxes { batch: op.rhs_batch.clone(), contract: op.rhs_contract.clone() },
        }
    }

    /// The product for these layouts. Where all right matrices are one, the batch is part of the rows.
    pub fn matrices(&self, lhs: &Layout, rhs: &Layout) -> Matrices {
        let left = |axes: Vec<usize>| part(&lhs.dims, &lhs.strides, axes);
        let right = |axes: Vec<usize>| part(&rhs.dims, &rhs.strides, axes);
        let rhs_batch = right(self.rhs.batch.clone());
        let shared = rhs_batch.0.iter().zip(&rhs_batch.1).all(|(dim, stride)| *dim == 1 || *stride == 0);
        let (batch, rows) = if shared {
            (Vec::new(), self.lhs.batch.iter().copied().chain(self.lhs.free(lhs.dims.len())).collect())
        } else {
            (self.lhs.batch.clone(), self.lhs.free(lhs.dims.len()).collect::<Vec<_>>())
        };
        let rhs_batch = if shared { right(Vec::new()) } else { rhs_batch };
        let (lhs_batch, rows) = (left(batch), left(rows));
        let (lhs_depth, rhs_depth) = (left(self.lhs.contract.clone()), right(self.rhs.contract.clone()));
        let columns = right(self.rhs.free(rhs.dims.len()).collect());
        Matrices {
            batch: count(&lhs_batch),
            rows: count(&rows),
            columns: count(&columns),
            depth: count(&lhs_depth),
            lhs_shared: lhs_batch.1.iter().zip(&lhs_batch.0).all(|(stride, dim)| *stride == 0 || *dim == 1)
                && (!shared || self.lhs.batch.iter().all(|axis| lhs.dims[*axis] == 1)),
            lhs: Matrix { batch: offsets(&lhs_batch), free: offsets(&rows), depth: offsets(&lhs_depth) },
            rhs: Matrix { batch: offsets(&rhs_batch), free: offsets(&columns), depth: offsets(&rhs_depth) },
        }
    }

    /// The one matrix of a constant operand (0: left, 1: right), if its batch axes have stride 0 and the sizes of the
    /// others are known.
    pub fn one_matrix(&self, operand: usize, dims: &[Option<usize>], strides: &[isize]) -> Option<OneMatrix> {
        let side = if operand == 0 { &self.lhs } else { &self.rhs };
        if side.batch.iter().any(|axis| strides[*axis] != 0 && dims[*axis] != Some(1)) {
            return None;
        }
        let known = |axes: Vec<usize>| -> Option<Part> {
            axes.into_iter()
                .map(|axis| Some((dims[axis]?, strides[axis])))
                .collect::<Option<Vec<_>>>()
                .map(|v| v.into_iter().unzip())
        };
        let (free, depth) = (known(side.free(dims.len()).collect())?, known(side.contract.clone())?);
        let matrix = Matrix { batch: Offsets::Even(0), free: offsets(&free), depth: offsets(&depth) };
        Some(OneMatrix { free: count(&free), depth: count(&depth), matrix })
    }
}
