//! Small models made in place.

use bytes::Bytes;
use prost::Message;
use rlx_onnx::load::{LoadOptions, ModelFile, from_bytes};
use rlx_onnx::proto::attribute_proto::AttributeType;
use rlx_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use rlx_onnx::proto::*;
use rlx_onnx::{ImportError, ImportOptions, Imported, import};

pub(crate) fn node(op: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let owned = |names: &[&str]| names.iter().map(|n| n.to_string()).collect();
    NodeProto {
        op_type: Some(op.into()),
        name: Some(name.into()),
        input: owned(inputs),
        output: owned(outputs),
        ..Default::default()
    }
}

pub(crate) fn with(mut node: NodeProto, attribute: AttributeProto) -> NodeProto {
    node.attribute.push(attribute);
    node
}

pub(crate) fn int(name: &str, value: i64) -> AttributeProto {
    let r#type = Some(AttributeType::Int as i32);
    AttributeProto { name: Some(name.into()), r#type, i: Some(value), ..Default::default() }
}

pub(crate) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    let r#type = Some(AttributeType::Ints as i32);
    AttributeProto { name: Some(name.into()), r#type, ints: values.to_vec(), ..Default::default() }
}

pub(crate) fn float(name: &str, value: f32) -> AttributeProto {
    let r#type = Some(AttributeType::Float as i32);
    AttributeProto { name: Some(name.into()), r#type, f: Some(value), ..Default::default() }
}

pub(crate) fn reference(name: &str, of: &str, r#type: AttributeType) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        r#type: Some(r#type as i32),
        ref_attr_name: Some(of.into()),
        ..Default::default()
    }
}

pub(crate) fn subgraph(name: &str, graph: GraphProto) -> AttributeProto {
    let r#type = Some(AttributeType::Graph as i32);
    AttributeProto { name: Some(name.into()), r#type, g: Some(Box::new(graph)), ..Default::default() }
}

/// A tensor's declaration; sizes are numbers, names, or `?`.
pub(crate) fn value(name: &str, data_type: DataType, sizes: &[&str]) -> ValueInfoProto {
    let dim = |size: &&str| Dimension {
        value: match (*size, size.parse()) {
            ("?", _) => None,
            (_, Ok(size)) => Some(dimension::Value::DimValue(size)),
            (name, _) => Some(dimension::Value::DimParam(name.into())),
        },
        ..Default::default()
    };
    let shape = Some(TensorShapeProto { dim: sizes.iter().map(dim).collect() });
    let tensor = type_proto::Tensor { elem_type: Some(data_type as i32), shape };
    let r#type = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..Default::default() };
    ValueInfoProto { name: Some(name.into()), r#type: Some(r#type), ..Default::default() }
}

pub(crate) fn f32s(name: &str, sizes: &[&str]) -> ValueInfoProto {
    value(name, DataType::Float, sizes)
}

/// A declaration of a name only, as outputs of subgraphs are written.
pub(crate) fn named(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.into()), ..Default::default() }
}

pub(crate) fn i64_tensor(name: &str, dims: &[i64], values: &[i64]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: dims.to_vec(),
        data_type: Some(DataType::Int64 as i32),
        int64_data: PackedValues::from_i64(values),
        ..Default::default()
    }
}

pub(crate) fn f32_tensor(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: dims.to_vec(),
        data_type: Some(DataType::Float as i32),
        raw_data: Some(values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into()),
        ..Default::default()
    }
}

pub(crate) fn graph(nodes: Vec<NodeProto>, inputs: Vec<ValueInfoProto>, outputs: &[&str]) -> GraphProto {
    GraphProto {
        name: Some("g".into()),
        node: nodes,
        input: inputs,
        output: outputs.iter().map(|name| named(name)).collect(),
        ..Default::default()
    }
}

pub(crate) fn opset(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) }
}

pub(crate) fn model(graph: GraphProto) -> ModelProto {
    ModelProto {
        ir_version: Some(10),
        opset_import: vec![opset("", 21), opset("local", 1)],
        graph: Some(graph),
        ..Default::default()
    }
}

pub(crate) fn file(model: &ModelProto) -> ModelFile {
    from_bytes(Bytes::from(model.encode_to_vec()), &LoadOptions::default()).expect("the model loads")
}

pub(crate) fn imported(graph: GraphProto) -> Result<Imported, ImportError> {
    import(&file(&model(graph)), &ImportOptions::default())
}

/// The names of a graph's operations, in order.
pub(crate) fn operations(imported: &Imported) -> Vec<&str> {
    imported.graph.nodes().map(|(_, node)| node.op.name()).collect()
}
