//! Rotary position embedding (Su et al. 2021): pairs of elements turned by angles that grow with the position.
//! Angles, their cosines and sines, and the turning are in f32 for narrower floats.

use super::elementwise::{BinaryOp, UnaryOp};
use super::norm::statistics_dtype;
use super::{CompositeDef, OpDef, Real};
use crate::builder::{Builder, Values};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::graph::Value;
use crate::infer::{Infer, Types, one};
use crate::operation;

type Built = Result<Value, TypeError>;

operation! {
    /// Turns pair i of each row by the angle whose cosine and sine are given:
    /// (a, b) becomes (a·cos − b·sin, a·sin + b·cos). Operands: x \[batch, heads, tokens, width\], cos and sin, then
    /// positions if `by_position`. The first n = 2 · (last size of cos) elements of a row form pairs (i, i + n/2), or
    /// (2i, 2i + 1) if interleaved; the rest stays.
    /// C1: x, cos and sin are floating point, cos and sin of one type. C2: x has rank 4. C3: without positions cos and
    /// sin are \[tokens, n/2\] or \[batch, tokens, n/2\], with them tables \[count, n/2\] and positions integers
    /// \[batch, tokens\]. C4: n ≤ width.
    pub struct RotaryEmbedding = "rotary_embedding" {
        /// Pairs are neighbours, not halves.
        interleaved: bool,
        /// cos and sin are tables, whose rows the positions pick.
        by_position: bool,
    }
}

operation! {
    /// `rotary_embedding` by angles position · theta^(−2i/n) / factorᵢ in f32, cosines and sines times `magnitude`.
    /// Operands: x \[batch, heads, tokens, width\], positions (integers \[tokens\] or \[batch, tokens\]), then if
    /// `factors` floats \[n/2\], by which frequencies are divided (extended contexts: linear, by parts, YaRN).
    /// C1: x is floating point. C2: x has rank 4. C3: integer positions of the sizes above. C4: n is even and
    /// 0 ≤ n ≤ width. C5: factors are floating point \[n/2\]. C6: theta > 0.
    pub struct RotaryFromPositions = "rotary_from_positions" {
        /// The base of the frequencies.
        theta: Real,
        /// How many elements of a row are turned; all without it.
        n_rot: Option<Dim>,
        /// Pairs are neighbours, not halves.
        interleaved: bool,
        /// Whether there are factors.
        factors: bool,
        /// The factor of cosines and sines; 1 without it.
        magnitude: Option<Real>,
    }
}

impl OpDef for RotaryEmbedding {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(if self.by_position { 4 } else { 3 })?;
        let x = cx.float("C1", 0)?;
        let cos = cx.float("C1", 1)?;
        cx.same_dtype("C1", 2, 1)?;
        cx.rank("C2", 0, 4)?;
        let [batch, tokens, width] = [0, 2, 3].map(|i| x.shape[i].clone());
        let both = [batch, tokens];
        if self.by_position {
            cx.rank("C3", 1, 2)?;
            cx.index("C3", 3)?;
            cx.same_dims("C3", 3, &both)?;
        } else {
            let ranks = (2..=3).contains(&cos.rank());
            cx.ensure(ranks, "C3", Some(1), "number of axes", "2 or 3", cos.rank())?;
            let rows = &both[3 - cos.rank()..];
            let expected: Vec<Dim> = rows.iter().chain(cos.shape.last()).cloned().collect();
            cx.same_dims("C3", 1, &expected)?;
        }
        cx.same_dims("C3", 2, cos.dims())?;
        let half = cos.shape.last().cloned().unwrap_or(Dim::ZERO);
        cx.at_most("C4", Some(1), "elements turned", &(half * 2), &width)?;
        Ok(one(x.clone()))
    }
}

impl CompositeDef for RotaryEmbedding {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (x, mut cos, mut sin) = (operands[0], operands[1], operands[2]);
        if self.by_position {
            cos = b.take(cos, operands[3], 0)?;
            sin = b.take(sin, operands[3], 0)?;
        }
        let dims = b.shape(x);
        let half = b.dim(cos, b.rank(cos) - 1);
        let turned = half.clone() * 2;
        let dtype = b.dtype(x);
        let wide = if b.dtype(cos) == DType::F64 { DType::F64 } else { statistics_dtype(dtype) };
        let part = b.slice_axis(x, 3, &Dim::ZERO, &turned)?;
        let rest = b.slice_axis(x, 3, &turned, &(dims[3].clone() - &turned))?;
        let part = b.cast(part, wide)?;
        let (first, second) = self.pairs(b, part, &half)?;
        let pair_dims = b.shape(first);
        let axes: &[usize] = if b.rank(cos) == 2 { &[2, 3] } else { &[0, 2, 3] };
        let table = |b: &mut Builder, t: Value| {
            let t = b.cast(t, wide)?;
            b.broadcast_in(t, &pair_dims, axes)
        };
        let (cos, sin) = (table(b, cos)?, table(b, sin)?);
        let product = |b: &mut Builder, x, y| b.mul(x, y);
        let (first_cos, second_sin) = (product(b, first, cos)?, product(b, second, sin)?);
        let (first_sin, second_cos) = (product(b, first, sin)?, product(b, second, cos)?);
        let first = b.sub(first_cos, second_sin)?;
        let second = b.add(first_sin, second_cos)?;
        let part_dims = dims.with_dim(3, turned);
        let part = if self.interleaved {
            let first = b.unsqueeze(first, 4)?;
            let second = b.unsqueeze(second, 4)?;
            let pairs = b.concat(&[first, second], 4)?;
            b.reshape(pairs, &part_dims)?
        } else {
            b.concat(&[first, second], 3)?
        };
        let part = b.cast(part, dtype)?;
        let y = b.concat(&[part, rest], 3)?;
        // Sizes n and width − n add up to the width, but as expressions they may be written otherwise.
        let y = b.reshape(y, &dims)?;
        Ok(Values::from_slice(&[y]))
    }
}

impl RotaryEmbedding {
    /// The first and the second elements of the pairs.
    fn pairs(&self, b: &mut Builder, x: Value, half: &Dim) -> Result<(Value, Value), TypeError> {
        if self.interleaved {
            let dims = b.shape(x);
            let split: Vec<Dim> = dims[..3].iter().cloned().chain([half.clone(), 2.into()]).collect();
            let pairs = b.reshape(x, &split)?;
            return Ok((b.index_axis(pairs, 4, &Dim::ZERO)?, b.index_axis(pairs, 4, &Dim::ONE)?));
        }
        Ok((b.slice_axis(x, 3, &Dim::ZERO, half)?, b.slice_axis(x, 3, half, half)?))
    }
}

impl RotaryFromPositions {
    /// How many elements of a row are turned.
    fn turned(&self, width: &Dim) -> Dim {
        self.n_rot.clone().unwrap_or_else(|| width.clone())
    }
}

impl OpDef for RotaryFromPositions {
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        cx.arity(if self.factors { 3 } else { 2 })?;
        let x = cx.float("C1", 0)?;
        cx.rank("C2", 0, 4)?;
        let [batch, tokens, width] = [0, 2, 3].map(|i| x.shape[i].clone());
        let positions = cx.index("C3", 1)?;
        if positions.rank() == 1 {
            cx.same_dims("C3", 1, &[tokens])?;
        } else {
            cx.same_dims("C3", 1, &[batch, tokens])?;
        }
        let turned = self.turned(&width);
        cx.at_most("C4", None, "elements turned", &Dim::ZERO, &turned)?;
        cx.at_most("C4", None, "elements turned", &turned, &width)?;
        cx.equal("C4", None, "elements turned, modulo 2", &Dim::ZERO, &turned.modulo(&2.into()))?;
        if self.factors {
            cx.float("C5", 2)?;
            cx.same_dims("C5", 2, &[turned.floor_div(&2.into())])?;
        }
        let theta = self.theta.get();
        cx.ensure(theta > 0.0, "C6", None, "theta", "above 0", theta)?;
        Ok(one(x.clone()))
    }
}

impl CompositeDef for RotaryFromPositions {
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Values, TypeError> {
        let (x, positions) = (operands[0], operands[1]);
        let wide = statistics_dtype(b.dtype(x));
        let turned = self.turned(&b.dim(x, 3));
        let mut frequencies = self.frequencies(b, wide, &turned)?;
        if self.factors {
            let factors = b.cast(operands[2], wide)?;
            frequencies = b.div(frequencies, factors)?;
        }
        let positions = b.cast(positions, wide)?;
        let mut dims = b.shape(positions).to_vec();
        let rank = dims.len();
        dims.push(turned.floor_div(&2.into()));
        let rows: Vec<usize> = (0..rank).collect();
        let positions = b.broadcast_in(positions, &dims, &rows)?;
        let frequencies = b.broadcast_to(frequencies, &dims)?;
        let angles = b.mul(positions, frequencies)?;
        let mut tables = [b.unary(UnaryOp::Cos, angles)?, b.unary(UnaryOp::Sin, angles)?];
        if let Some(magnitude) = self.magnitude {
            for table in &mut tables {
                *table = b.mul_scalar(*table, magnitude.get())?;
            }
        }
        let op = RotaryEmbedding { interleaved: self.interleaved, by_position: false };
        b.push(op, &[x, tables[0], tables[1]])
    }
}

impl RotaryFromPositions {
    /// theta^(−2i/n) for i below n/2.
    fn frequencies(&self, b: &mut Builder, wide: DType, turned: &Dim) -> Built {
        let half = turned.floor_div(&2.into());
        let index = b.iota(wide, std::slice::from_ref(&half), 0)?;
        let n = b.dim_as(turned, wide)?;
        let n = b.broadcast_to(n, &[half])?;
        let doubled = b.mul_scalar(index, -2.0)?;
        let exponent = b.div(doubled, n)?;
        let base = b.like(self.theta.get(), exponent)?;
        b.binary(BinaryOp::Pow, base, exponent)
    }
}
