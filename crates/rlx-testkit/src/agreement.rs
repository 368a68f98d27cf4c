//! Whether two runs of a random graph agree: integers and truth values to the bit, floats within what rounding in
//! another order makes of values that tanh keeps between −1 and 1.

use crate::array::Array;
use rlx_ir::{DType, Literal};

/// The greatest difference of two results of type `dtype`: some fifty roundings of values of at most 1, through
/// functions whose slope is at most 1 but for sums (of at most 16 terms each, in chains that tanh bounds) and exp
/// (at most e).
fn bound(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-12,
        DType::F32 => 2e-5,
        DType::F16 => 0.02,
        DType::BF16 => 0.15,
        _ => 0.0,
    }
}

/// Whether the outputs are of the same types and sizes, and agree.
///
/// # Errors
/// The first difference, in words.
pub fn agree(found: &[Literal], expected: &[Literal]) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} outputs instead of {}", found.len(), expected.len()));
    }
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        if f.dtype() != e.dtype() || f.dims() != e.dims() {
            return Err(format!("output {i} is {f:?} instead of {e:?}"));
        }
        if f.bytes() == e.bytes() {
            continue;
        }
        let (Some(found), Some(expected)) = (Array::from_literal(f), Array::from_literal(e)) else {
            return Err(format!("output {i}, of {}, has other bytes", e.dtype()));
        };
        let pairs = found.data.iter().zip(&expected.data);
        for (element, (f, x)) in pairs.enumerate() {
            let same = f == x || f.is_nan() && x.is_nan();
            let close = (f - x).abs() <= bound(e.dtype());
            if !(same || close) {
                return Err(format!("output {i} of {}, element {element}: {f} instead of {x}", e.dtype()));
            }
        }
    }
    Ok(())
}
