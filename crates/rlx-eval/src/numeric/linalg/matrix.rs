//! A row-major matrix of `f64`: the operand and result of everything in this folder.

use std::ops::{Index, IndexMut};

use super::LinalgError;

/// A row-major matrix; `matrix[(row, column)]` is an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    data: Vec<f64>,
}

impl Matrix {
    /// A matrix of the given entries, row after row.
    ///
    /// # Errors
    /// [`LinalgError::Shape`] if there are not `rows · columns` entries (reported as one row of them).
    pub fn new(rows: usize, columns: usize, data: Vec<f64>) -> Result<Matrix, LinalgError> {
        if rows.checked_mul(columns) == Some(data.len()) {
            Ok(Matrix { rows, columns, data })
        } else {
            Err(LinalgError::Shape {
                operand: "matrix data",
                expected_rows: rows,
                expected_columns: columns,
                rows: 1,
                columns: data.len(),
            })
        }
    }

    /// A matrix of zeros.
    pub fn zeros(rows: usize, columns: usize) -> Matrix {
        Matrix { rows, columns, data: vec![0.0; rows * columns] }
    }

    /// The square matrix with ones on its diagonal.
    pub fn identity(size: usize) -> Matrix {
        Matrix::from_fn(size, size, |row, column| if row == column { 1.0 } else { 0.0 })
    }

    /// The matrix whose entries are `entry(row, column)`.
    pub fn from_fn(rows: usize, columns: usize, entry: impl Fn(usize, usize) -> f64) -> Matrix {
        let data = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        Matrix { rows, columns, data: data.map(|(row, column)| entry(row, column)).collect() }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The entries, row after row.
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    /// The entries, row after row.
    pub fn into_data(self) -> Vec<f64> {
        self.data
    }

    /// The matrix with rows and columns exchanged.
    pub fn transposed(&self) -> Matrix {
        Matrix::from_fn(self.columns, self.rows, |row, column| self[(column, row)])
    }

    /// The matrix of the first `columns` columns.
    pub fn first_columns(&self, columns: usize) -> Matrix {
        Matrix::from_fn(self.rows, columns, |row, column| self[(row, column)])
    }

    /// Every entry times `factor`.
    pub fn scaled(mut self, factor: f64) -> Matrix {
        self.data.iter_mut().for_each(|entry| *entry *= factor);
        self
    }

    /// The product `self · rhs`, each entry summed from the first index to the last.
    ///
    /// # Errors
    /// [`LinalgError::Shape`] if `rhs` does not have as many rows as `self` has columns.
    pub fn product(&self, rhs: &Matrix) -> Result<Matrix, LinalgError> {
        super::ensure_shape("right factor", rhs, self.columns, rhs.columns)?;
        Ok(Matrix::from_fn(self.rows, rhs.columns, |row, column| {
            (0..self.columns).map(|inner| self[(row, inner)] * rhs[(inner, column)]).sum()
        }))
    }

    /// Exchanges two rows.
    pub(super) fn swap_rows(&mut self, first: usize, second: usize) {
        for column in 0..self.columns {
            self.data.swap(first * self.columns + column, second * self.columns + column);
        }
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = f64;

    fn index(&self, (row, column): (usize, usize)) -> &f64 {
        assert!(column < self.columns, "column {column} of a matrix of {} columns", self.columns);
        &self.data[row * self.columns + column]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (row, column): (usize, usize)) -> &mut f64 {
        assert!(column < self.columns, "column {column} of a matrix of {} columns", self.columns);
        &mut self.data[row * self.columns + column]
    }
}
