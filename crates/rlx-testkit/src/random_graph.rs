//! Random graphs: well-typed, of primitives, with several outputs, symbolic sizes and control flow, and inputs on which
//! nothing fails.
//!
//! Their use is comparison: what two ways of running one graph give must agree. No node divides by what may be zero, indexes
//! outside, or leaves the domain of its function, so every run succeeds; numbers stay moderate, so errors stay comparable.

use crate::random::{Domain, Random};
use rlx_ir::builder::Carried;
use rlx_ir::op::contract::Dot;
use rlx_ir::op::elementwise::{BinaryOp, CompareOp, UnaryOp};
use rlx_ir::op::reduce::{ArgReduce, ArgReduceOp, Cumulative, CumulativeOp, ReduceOp, Sort};
use rlx_ir::{Bindings, Builder, DType, Dim, Graph, Literal, Symbol, TensorType, TypeError, Value};

/// A graph and inputs for it.
#[derive(Clone, Debug)]
pub struct RandomGraph {
    /// The graph.
    pub graph: Graph,
    /// Inputs in order.
    pub inputs: Vec<Literal>,
}

/// What the graphs have.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many operations to add to the inputs.
    pub nodes: usize,
    /// The element type of the floats.
    pub float: DType,
}

/// The most elements of a value; operations that would give more are not chosen.
const MOST_ELEMENTS: i64 = 4096;

struct Generator {
    random: Random,
    b: Builder,
    float: DType,
    /// The values of the symbols.
    sizes: Bindings,
    values: Vec<Value>,
}

/// The graph of this seed; equal seeds give equal graphs.
pub fn random_graph(seed: u64, shape: Shape) -> Result<RandomGraph, TypeError> {
    let mut random = Random::new(seed);
    let mut sizes = Bindings::new();
    sizes.set(Symbol::new("n"), 1 + random.below(5) as i64);
    sizes.set(Symbol::new("m"), 1 + random.below(70) as i64);
    let mut g =
        Generator { random, b: Builder::new("random"), float: shape.float, sizes, values: Vec::new() };
    let symbol = Dim::symbol("n");
    let types = [
        TensorType::new(shape.float, vec![symbol.clone(), 3.into()]),
        TensorType::new(shape.float, vec![2.into(), symbol.clone()]),
        TensorType::new(shape.float, vec![symbol.clone(), 3.into()]),
        TensorType::new(shape.float, vec![symbol, Dim::symbol("m")]),
        TensorType::new(DType::I32, vec![4.into()]),
    ];
    let mut inputs = Vec::new();
    for (i, t) in types.iter().enumerate() {
        g.values.push(g.b.input(&format!("x{i}"), t.clone())?);
        let dims: Vec<usize> = t.dims().iter().map(|d| d.eval_size(&g.sizes).unwrap_or(0)).collect();
        let domain = if t.dtype.is_float() { Domain::Range(-1.0, 1.0) } else { Domain::Whole(-9, 9) };
        inputs.push(g.random.literal(t.dtype, &dims, &domain));
    }
    while g.values.len() < types.len() + shape.nodes {
        let value = g.step()?;
        g.values.push(value);
    }
    // The last values, and some before, so that several outputs share what they need.
    let mut outputs = vec![g.values[g.values.len() - 1]];
    for _ in 0..3 {
        let value = *g.random.pick(&g.values);
        outputs.push(value);
    }
    let names: Vec<String> = (0..outputs.len()).map(|i| format!("y{i}")).collect();
    let graph = g.b.finish(names.iter().map(String::as_str).zip(outputs))?;
    Ok(RandomGraph { graph, inputs })
}

impl Generator {
    fn any(&mut self) -> Value {
        *self.random.pick(&self.values)
    }

    fn float(&mut self) -> Value {
        let floats: Vec<Value> =
            self.values.iter().copied().filter(|v| self.b.dtype(*v) == self.float).collect();
        *self.random.pick(&floats)
    }

    /// The number of elements, with the symbols bound.
    fn elements(&self, dims: &[Dim]) -> i64 {
        Dim::product(dims.iter()).eval(&self.sizes).unwrap_or(i64::MAX)
    }

    /// A float value kept within −1 and 1: tanh keeps errors from growing along a chain.
    fn bounded(&mut self, x: Value) -> Result<Value, TypeError> {
        self.b.unary(UnaryOp::Tanh, x)
    }

    /// One operation, or the value itself where the operation chosen does not fit it.
    fn step(&mut self) -> Result<Value, TypeError> {
        match self.random.below(20) {
            0 => self.unary(),
            1 | 2 => self.binary(),
            3 => self.choice(),
            4 => self.transpose(),
            5 => self.reshape(),
            6 => self.broadcast(),
            7 => self.slice(),
            8 => self.pad(),
            9 => self.concat(),
            10 => self.reduce(),
            11 => self.along(),
            12 => self.dot(),
            13 => self.integers(),
            14 | 15 => self.softmax(),
            16 => self.normalised(),
            17 => self.take(),
            18 => self.branch(),
            _ => self.repeated(),
        }
    }

    fn unary(&mut self) -> Result<Value, TypeError> {
        let x = self.float();
        let functions = [
            UnaryOp::Neg,
            UnaryOp::Abs,
            UnaryOp::Exp,
            UnaryOp::Sin,
            UnaryOp::Cos,
            UnaryOp::Tanh,
            UnaryOp::Sigmoid,
            UnaryOp::Erf,
            UnaryOp::Atan,
            UnaryOp::Expm1,
        ];
        let op = *self.random.pick(&functions);
        let y = self.b.unary(op, x)?;
        self.bounded(y)
    }

    fn binary(&mut self) -> Result<Value, TypeError> {
        let (x, y) = (self.float(), self.float());
        if self.b.shape(x) != self.b.shape(y) {
            return self.unary();
        }
        let op =
            *self.random.pick(&[BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Max, BinaryOp::Min]);
        let z = if self.random.below(4) == 0 {
            // A divisor that is at least 1.
            let size = self.b.unary(UnaryOp::Abs, y)?;
            let divisor = self.b.add_scalar(size, 1.0)?;
            self.b.div(x, divisor)?
        } else {
            self.b.binary(op, x, y)?
        };
        self.bounded(z)
    }

    /// A selection by where the values are in order, which rounding may not turn: it compares integers.
    fn choice(&mut self) -> Result<Value, TypeError> {
        let x = self.float();
        let shape = self.b.shape(x);
        if shape.rank() == 0 {
            return self.unary();
        }
        let counter = self.b.iota(DType::I32, &shape, shape.rank() - 1)?;
        let c = self.b.compare_scalar(CompareOp::Lt, counter, 1.0)?;
        let y = self.b.unary(UnaryOp::Neg, x)?;
        self.b.select(c, x, y)
    }

    fn transpose(&mut self) -> Result<Value, TypeError> {
        let x = self.any();
        let mut perm: Vec<usize> = (0..self.b.rank(x)).collect();
        for i in (1..perm.len()).rev() {
            perm.swap(i, self.random.below(i + 1));
        }
        self.b.transpose(x, &perm)
    }

    fn reshape(&mut self) -> Result<Value, TypeError> {
        let x = self.any();
        let shape = self.b.shape(x);
        let dims = if self.random.below(2) == 0 {
            vec![shape.element_count()]
        } else {
            [&shape[..], &[Dim::ONE]].concat()
        };
        self.b.reshape(x, &dims)
    }

    fn broadcast(&mut self) -> Result<Value, TypeError> {
        let x = self.any();
        let dims: Vec<Dim> = std::iter::once(Dim::from(2)).chain(self.b.shape(x).iter().cloned()).collect();
        if dims.len() > 5 || self.elements(&dims) > MOST_ELEMENTS {
            return self.reduce();
        }
        self.b.broadcast_to(x, &dims)
    }

    /// Every element of an axis in reverse, or one of two of a constant axis.
    fn slice(&mut self) -> Result<Value, TypeError> {
        let x = self.any();
        let shape = self.b.shape(x);
        if shape.rank() == 0 {
            return self.unary();
        }
        let axis = self.random.below(shape.rank());
        let size = shape[axis].clone();
        match size.as_const() {
            Some(constant) if constant >= 2 && self.random.below(2) == 0 => {
                self.b.slice_strided(x, axis, &Dim::ONE, &Dim::from(constant / 2), 2)
            }
            _ => self.b.slice_strided(x, axis, &(size.clone() - 1), &size, -1),
        }
    }

    fn pad(&mut self) -> Result<Value, TypeError> {
        let x = self.float();
        let rank = self.b.rank(x);
        let low: Vec<Dim> = (0..rank).map(|_| Dim::from(self.random.below(2))).collect();
        let high: Vec<Dim> = (0..rank).map(|_| Dim::from(self.random.below(2))).collect();
        let dims: Vec<Dim> =
            self.b.shape(x).iter().zip(&low).zip(&high).map(|((d, l), h)| d + l + h).collect();
        if self.elements(&dims) > MOST_ELEMENTS {
            return self.reduce();
        }
        self.b.pad(x, &low, &high, 0.5)
    }

    fn concat(&mut self) -> Result<Value, TypeError> {
        let (x, y) = (self.float(), self.float());
        let shape = self.b.shape(x);
        if shape != self.b.shape(y) || shape.rank() == 0 || 2 * self.elements(&shape) > MOST_ELEMENTS {
            return self.unary();
        }
        let axis = self.random.below(shape.rank());
        self.b.concat(&[x, y], axis)
    }

    fn reduce(&mut self) -> Result<Value, TypeError> {
        let x = self.float();
        let rank = self.b.rank(x);
        let axes: Vec<usize> = (0..rank).filter(|_| self.random.below(2) == 0).collect();
        let keep = self.random.below(2) == 0;
        let op = *self.random.pick(&[ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min]);
        let y = self.b.reduce(op, x, &axes, keep)?;
        self.bounded(y)
    }

    /// A running sum, a sort, or the index of an extreme of a counter.
    fn along(&mut self) -> Result<Value, TypeError> {
        let x = self.float();
        let shape = self.b.shape(x);
        if shape.rank() == 0 {
            return self.unary();
        }
        let axis = self.random.below(shape.rank());
        match self.random.below(3) {
            0 => {
                let reverse = self.random.below(2) == 0;
                let sum = Cumulative { op: CumulativeOp::Sum, axis, exclusive: false, reverse };
                let y = self.b.push1(sum, &[x])?;
                self.bounded(y)
            }
            1 => self.b.push1(Sort { axis, descending: self.random.below(2) == 0 }, &[x]),
            _ => {
                let counter = self.b.iota(DType::I32, &shape, axis)?;
                let last = ArgReduce { op: ArgReduceOp::ArgMax, axis, keep_dims: true, last: false };
                let index = self.b.push1(last, &[counter])?;
                let y = self.b.cast(index, self.float)?;
                let y = self.bounded(y)?;
                self.b.broadcast_to(y, &shape)
            }
        }
    }

    /// x · yᵀ over the last axes, where they agree.
    fn dot(&mut self) -> Result<Value, TypeError> {
        let (x, y) = (self.float(), self.float());
        let (xs, ys) = (self.b.shape(x), self.b.shape(y));
        let (Some((contracted, left)), Some((other, right))) = (xs.split_last(), ys.split_last()) else {
            return self.unary();
        };
        let dims: Vec<Dim> = left.iter().chain(right).cloned().collect();
        if contracted != other || dims.len() > 4 || self.elements(&dims) > MOST_ELEMENTS {
            return self.binary();
        }
        let dot = Dot {
            lhs_batch: Vec::new(),
            rhs_batch: Vec::new(),
            lhs_contract: vec![left.len()],
            rhs_contract: vec![right.len()],
            accum: None,
            out: None,
        };
        let z = self.b.push1(dot, &[x, y])?;
        self.bounded(z)
    }

    /// exp(x − max) / Σ exp(x − max) along an axis.
    fn softmax(&mut self) -> Result<Value, TypeError> {
        let x = self.float();
        let rank = self.b.rank(x);
        if rank == 0 {
            return self.unary();
        }
        let axis = [self.random.below(rank)];
        let most = self.b.reduce(ReduceOp::Max, x, &axis, true)?;
        let shifted = self.b.broadcasting(BinaryOp::Sub, x, most)?;
        let powers = self.b.unary(UnaryOp::Exp, shifted)?;
        let sum = self.b.sum(powers, &axis, true)?;
        self.b.broadcasting(BinaryOp::Div, powers, sum)
    }

    /// (x − mean) / √(variance + 1) along the last axes.
    fn normalised(&mut self) -> Result<Value, TypeError> {
        let x = self.float();
        let rank = self.b.rank(x);
        if rank == 0 {
            return self.unary();
        }
        let axes: Vec<usize> = (self.random.below(rank)..rank).collect();
        let mean = self.b.mean(x, &axes, true)?;
        let centred = self.b.broadcasting(BinaryOp::Sub, x, mean)?;
        let squares = self.b.mul(centred, centred)?;
        let variance = self.b.mean(squares, &axes, true)?;
        let above = self.b.add_scalar(variance, 1.0)?;
        let deviation = self.b.unary(UnaryOp::Sqrt, above)?;
        let y = self.b.broadcasting(BinaryOp::Div, centred, deviation)?;
        self.bounded(y)
    }

    /// Rows 0, 1, 2 of an axis; the last one for those that are not there.
    fn take(&mut self) -> Result<Value, TypeError> {
        let x = self.any();
        let shape = self.b.shape(x);
        if shape.rank() == 0 {
            return self.unary();
        }
        let axis = self.random.below(shape.rank());
        if self.elements(&shape) * 3 > MOST_ELEMENTS {
            return self.reduce();
        }
        let counter = self.b.iota(DType::I64, &[3.into()], 0)?;
        let last = self.b.dim_value(&(shape[axis].clone() - 1))?;
        let index = self.b.broadcasting(BinaryOp::Min, counter, last)?;
        self.b.take(x, index, axis)
    }

    /// −x or max(x, −x) plus another value, as n has it.
    fn branch(&mut self) -> Result<Value, TypeError> {
        let (x, y) = (self.float(), self.float());
        let other = if self.b.shape(x) == self.b.shape(y) { y } else { x };
        let n = self.b.dim_value(&Dim::symbol("n"))?;
        let condition = self.b.compare_scalar(CompareOp::Lt, n, 3.0)?;
        let results = self.b.branch(
            condition,
            &[x, other],
            |b, v| Ok(vec![b.unary(UnaryOp::Neg, v[0])?]),
            |b, v| {
                let negative = b.unary(UnaryOp::Neg, v[0])?;
                let most = b.max(v[0], negative)?;
                Ok(vec![b.add(most, v[1])?])
            },
        )?;
        self.bounded(results[0])
    }

    /// A loop over the rows of x, or one of three trips: each trip's value is the tangent's of a sum.
    fn repeated(&mut self) -> Result<Value, TypeError> {
        let x = self.float();
        let shape = self.b.shape(x);
        if shape.rank() == 0 || self.elements(&shape) > 512 {
            return self.unary();
        }
        if self.random.below(2) == 0 {
            let start = self.b.full(0.25, &TensorType::new(self.float, &shape[1..]))?;
            let reverse = self.random.below(2) == 0;
            let rows = self.b.scan(&[start], &[x], &[], &shape[0], reverse, |b, trip| {
                let sum = b.add(trip.carried[0], trip.scanned[0])?;
                let next = b.unary(UnaryOp::Tanh, sum)?;
                Ok(Carried { carried: vec![next], stacked: vec![next] })
            })?;
            return Ok(rows.stacked[0]);
        }
        let trips = self.b.scalar(3.0, DType::I64)?;
        let go = self.b.compare_scalar(CompareOp::Gt, trips, 0.0)?;
        let (end, _) = self.b.while_loop(trips, go, &[x], &[x], |b, trip, values| {
            let sum = b.add(values.carried[0], values.captured[0])?;
            let next = b.unary(UnaryOp::Tanh, sum)?;
            let more = b.compare_scalar(CompareOp::Lt, trip, 9.0)?;
            Ok((more, Carried { carried: vec![next], stacked: Vec::new() }))
        })?;
        Ok(end.carried[0])
    }

    fn integers(&mut self) -> Result<Value, TypeError> {
        let integers: Vec<Value> =
            self.values.iter().copied().filter(|v| self.b.dtype(*v) == DType::I32).collect();
        let x = *self.random.pick(&integers);
        let op = *self.random.pick(&[BinaryOp::Add, BinaryOp::Mul, BinaryOp::Xor, BinaryOp::Max]);
        let y = self.b.binary_scalar(op, x, 7.0)?;
        let numerator = self.b.unary(UnaryOp::Abs, y)?;
        self.b.binary_scalar(BinaryOp::Rem, numerator, 11.0)
    }
}
