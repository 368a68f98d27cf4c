//! Average pooling and its gradient: the sum of a window over the number of elements that count.

use super::contract::{Conv, dilated};
use super::norm::statistics_dtype;
use super::pool::{images, pooled};
use super::unfold::{Windows, windows};
use super::window::WindowOp;
use super::{CompositeDef, OpDef};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::operation;
use crate::types::TensorType;

operation! {
    /// The mean of each window of x \[n, c, s…\]. What counts are the elements of the image, or with
    /// `count_include_pad` those of the padded image (never what ceil mode adds beyond).
    /// C1: rank ≥ 2, floating point. C2, C3: as `max_pool`.
    pub struct AveragePool = "average_pool" {
        /// Window sizes.
        window: Vec<Dim>,
        /// Distance of windows.
        strides: Vec<i64>,
        /// Distance of neighbours in a window.
        dilations: Vec<i64>,
        /// Padding before and after each spatial axis.
        padding: Vec<(Dim, Dim)>,
        /// Whether windows only partly inside count.
        ceil_mode: bool,
        /// Whether the padding counts.
        count_include_pad: bool,
    }
}

operation! {
    /// dx of `average_pool` on \[n, c, dims…\] for dy (operand 0): each element of dy, divided by its window's count,
    /// is added to every element of that window. C1: floating point, rank as dims + 2. C2, C3: as `max_pool`.
    /// C4: dy has the pool's sizes.
    pub struct AveragePoolGrad = "average_pool_grad" {
        /// The spatial sizes of x.
        dims: Vec<Dim>,
        /// Window sizes.
        window: Vec<Dim>,
        /// Distance of windows.
        strides: Vec<i64>,
        /// Distance of neighbours in a window.
        dilations: Vec<i64>,
        /// Padding before and after each spatial axis.
        padding: Vec<(Dim, Dim)>,
        /// Whether windows only partly inside count.
        ceil_mode: bool,
        /// Whether the padding counts.
        count_include_pad: bool,
    }
}

impl Windows<'_> {
    /// How many elements of each window count, over the windows, in this type.
    fn element_counts(
        &self,
        b: &mut Builder,
        sizes: &[Dim],
        include_pad: bool,
        t: &TensorType,
    ) -> Result<Value, TypeError> {
        let unpadded = self.padding.iter().all(|p| *p == (Dim::ZERO, Dim::ZERO));
        if !self.ceil_mode && (include_pad || unpadded) {
            let count = b.dim_as(&Dim::product(self.window), t.dtype)?;
            return b.broadcast_to(count, t.dims());
        }
        let exact = self.exact_padding(sizes);
        let mut counts = b.full(1.0, t)?;
        for (axis, size) in sizes.iter().enumerate() {
            let (low, high) = &self.padding[axis];
            // With the padding counted, it is part of what is summed.
            let (size, padding) = if include_pad {
                (size + low + high, (Dim::ZERO, &exact[axis].1 - high))
            } else {
                (size.clone(), exact[axis].clone())
            };
            let one_axis = Windows {
                window: &self.window[axis..=axis],
                strides: &self.strides[axis..=axis],
                dilations: &self.dilations[axis..=axis],
                padding: &[padding],
                ceil_mode: false,
            };
            let ones = b.full(1.0, &TensorType::new(t.dtype, vec![size]))?;
            let along = one_axis.reduce(b, WindowOp::Sum, ones, 0.0)?;
            let along = b.broadcast_in(along, t.dims(), &[2 + axis])?;
            counts = b.mul(counts, along)?;
        }
        Ok(counts)
    }
}

impl OpDef for AveragePool {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let x = images(cx, false)?;
        Ok(one(pooled(x, windows!(self, self.ceil_mode).check(cx, &x.shape[2..])?)))
    }
}

impl CompositeDef for AveragePool {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let t = b.type_of(operands[0]).clone();
        let windows = windows!(self, self.ceil_mode);
        let wide = b.cast(operands[0], statistics_dtype(t.dtype))?;
        let sums = windows.reduce(b, WindowOp::Sum, wide, 0.0)?;
        let sums_type = b.type_of(sums).clone();
        let counts = windows.element_counts(b, &t.shape[2..], self.count_include_pad, &sums_type)?;
        let mean = b.div(sums, counts)?;
        Ok(Values::from_slice(&[b.cast(mean, t.dtype)?]))
    }
}

impl OpDef for AveragePoolGrad {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(1)?;
        let dy = images(cx, false)?;
        cx.rank("C1", 0, self.dims.len() + 2)?;
        let y = pooled(dy, windows!(self, self.ceil_mode).check(cx, &self.dims)?);
        cx.same_dims("C4", 0, y.dims())?;
        Ok(one(pooled(dy, self.dims.clone())))
    }
}

impl CompositeDef for AveragePoolGrad {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let t = b.type_of(operands[0]).clone();
        let windows = windows!(self, self.ceil_mode);
        let wide_type = t.with_dtype(statistics_dtype(t.dtype));
        let wide = b.cast(operands[0], wide_type.dtype)?;
        let counts = windows.element_counts(b, &self.dims, self.count_include_pad, &wide_type)?;
        let share = b.div(wide, counts)?;
        // Every channel by itself, spread by a kernel of ones.
        let planes = &t.shape[0] * &t.shape[1];
        let mut flat = vec![planes.clone(), Dim::ONE];
        flat.extend_from_slice(&t.shape[2..]);
        let share = b.reshape(share, &flat)?;
        let spread = spread(b, share, &windows, &self.dims, wide_type.dtype)?;
        let mut dims = t.shape[..2].to_vec();
        dims.extend_from_slice(&self.dims);
        let dx = b.reshape(spread, &dims)?;
        Ok(Values::from_slice(&[b.cast(dx, t.dtype)?]))
    }
}

/// Σ over the windows that hold a position, of the window's element of y \[planes, 1, o…\].
fn spread(
    b: &mut Builder,
    y: Value,
    windows: &Windows<'_>,
    sizes: &[Dim],
    dtype: DType,
) -> Result<Value, TypeError> {
    let mut kernel = vec![Dim::ONE, Dim::ONE];
    kernel.extend_from_slice(windows.window);
    let ones = b.full(1.0, &TensorType::new(dtype, kernel))?;
    let conv = Conv {
        strides: vec![1; sizes.len()],
        padding: transposed_padding(&b.shape(y)[2..], windows, sizes),
        lhs_dilation: windows.strides.to_vec(),
        rhs_dilation: windows.dilations.to_vec(),
        groups: 1,
        accum: None,
        out: None,
    };
    b.push1(conv, &[y, ones])
}

/// The padding with which a convolution of windows' values `counts`, dilated by the strides, gives `sizes`.
pub(super) fn transposed_padding(counts: &[Dim], windows: &Windows<'_>, sizes: &[Dim]) -> Vec<(Dim, Dim)> {
    (0..sizes.len())
        .map(|i| {
            let low = &windows.padding[i].0;
            let reach = (windows.window[i].clone() - 1) * windows.dilations[i];
            let high = &sizes[i] + low - dilated(&counts[i], windows.strides[i]);
            (reach - low, high)
        })
        .collect()
}
