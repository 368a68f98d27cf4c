//! Random numbers. Each node draws from a Philox stream of its own: the key is the attribute `seed` where there is one,
//! else the node's name, so that a model gives the same numbers in every run.

use rlx_ir::op::sample::{Bernoulli, Multinomial, RandomNormal, RandomUniform};
use rlx_ir::{DType, Dim, Literal, TensorType, Value};

use crate::error::NodeProblem;
use crate::import::node_name;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("Bernoulli", &[15, 22], bernoulli),
    onnx("Multinomial", &[7, 22], multinomial),
    onnx("RandomNormal", &[1, 22], |cx| shaped(cx, normal)),
    onnx("RandomNormalLike", &[1, 22], |cx| like(cx, normal)),
    onnx("RandomUniform", &[1, 22], |cx| shaped(cx, uniform)),
    onnx("RandomUniformLike", &[1, 22], |cx| like(cx, uniform)),
];

/// FNV-1a over 64 bits (Fowler, Noll & Vo; RFC 9923).
fn stream_of(name: &str) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    name.bytes().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// The key and the counter of the node's stream.
fn stream(cx: &mut NodeContext<'_, '_>) -> Result<[Value; 2], NodeProblem> {
    // A body that runs again would draw the same numbers again.
    if cx.importer.bodies.len() > 1 {
        return Err(NodeProblem::Unsupported("random numbers in a subgraph".to_owned()));
    }
    let key = match cx.optional_float("seed")? {
        Some(seed) => [u64::from((seed as f32).to_bits()), 0],
        None => [0, stream_of(&format!("{}{}", cx.importer.scope().path, node_name(cx.node)))],
    };
    let b = cx.builder();
    Ok([b.vector(&key), b.constant(Literal::scalar(0u64))])
}

fn normal(cx: &mut NodeContext<'_, '_>, ty: TensorType) -> Result<Value, NodeProblem> {
    let (mean, deviation) = (cx.float("mean", 0.0)?.into(), cx.float("scale", 1.0)?.into());
    let stream = stream(cx)?;
    Ok(cx.builder().push1(RandomNormal { ty, mean, deviation }, &stream)?)
}

fn uniform(cx: &mut NodeContext<'_, '_>, ty: TensorType) -> Result<Value, NodeProblem> {
    let (low, high) = (cx.float("low", 0.0)?.into(), cx.float("high", 1.0)?.into());
    let stream = stream(cx)?;
    Ok(cx.builder().push1(RandomUniform { ty, low, high }, &stream)?)
}

type Draw = fn(&mut NodeContext<'_, '_>, TensorType) -> Result<Value, NodeProblem>;

fn shaped(cx: &mut NodeContext<'_, '_>, draw: Draw) -> Handled {
    let dtype = cx.element_type("dtype")?.unwrap_or(DType::F32);
    let shape =
        cx.ints("shape")?.ok_or_else(|| NodeProblem::MissingAttribute { name: "shape".to_owned() })?;
    if shape.iter().any(|size| *size < 0) {
        return Err(cx.bad_attribute("shape", "sizes of at least 0", format!("{shape:?}")));
    }
    let dims: Vec<Dim> = shape.into_iter().map(Dim::constant).collect();
    Ok(draw(cx, TensorType::new(dtype, dims))?.into())
}

fn like(cx: &mut NodeContext<'_, '_>, draw: Draw) -> Handled {
    let x = cx.input(0)?;
    let t = cx.builder().type_of(x).clone();
    let dtype = cx.element_type("dtype")?.unwrap_or(t.dtype);
    Ok(draw(cx, t.with_dtype(dtype))?.into())
}

fn bernoulli(cx: &mut NodeContext<'_, '_>) -> Handled {
    let p = cx.input(0)?;
    let to = cx.element_type("dtype")?.unwrap_or(cx.dtype(p));
    let [key, counter] = stream(cx)?;
    Ok(cx.builder().push1(Bernoulli { to }, &[p, key, counter])?.into())
}

fn multinomial(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let to = cx.element_type("dtype")?.unwrap_or(DType::I32);
    let samples = cx.int("sample_size", 1)?;
    if samples < 1 {
        return Err(cx.bad_attribute("sample_size", "at least 1", samples));
    }
    let [key, counter] = stream(cx)?;
    Ok(cx.builder().push1(Multinomial { samples: samples.into(), to }, &[x, key, counter])?.into())
}
