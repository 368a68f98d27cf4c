//! Values that are files of their own: tensors, sequences and optionals, as the inputs and outputs of ONNX test data
//! are (`onnx-data.proto`).

use bytes::Bytes;
use thiserror::Error;

use crate::error::NodeProblem;
use crate::external::ExternalFiles;
use crate::literal;
use crate::load::{LoadError, LoadOptions, message_from_bytes};
use crate::proto::{OptionalProto, SequenceProto, TensorProto, TypeProto, optional_proto, type_proto};
use crate::tensor;
use crate::values::Constant;

/// Why a file holds no value.
#[derive(Debug, Error)]
pub enum DataError {
    /// The bytes are not the message that the type asks for, or too much.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A tensor in it has no form in RLX.
    #[error(transparent)]
    Value(#[from] NodeProblem),
    /// Values of this kind are not read.
    #[error("a value of type {0} is not supported")]
    Kind(String),
}

/// The value in `bytes`, of the type that a model declares for it.
pub fn value_from_bytes(bytes: Bytes, t: &TypeProto, options: &LoadOptions) -> Result<Constant, DataError> {
    match &t.value {
        Some(type_proto::Value::TensorType(_)) => of_tensor(&message_from_bytes(bytes, options)?),
        Some(type_proto::Value::SequenceType(_)) => of_sequence(&message_from_bytes(bytes, options)?, t),
        Some(type_proto::Value::OptionalType(optional)) => {
            let message: OptionalProto = message_from_bytes(bytes, options)?;
            of_optional(&message, optional.elem_type.as_deref().unwrap_or(t))
        }
        other => Err(DataError::Kind(format!("{other:?}"))),
    }
}

fn of_tensor(message: &TensorProto) -> Result<Constant, DataError> {
    let tensor = tensor::decode(message, &ExternalFiles::none()).map_err(NodeProblem::from)?;
    Ok(literal::constant(tensor)?)
}

fn of_sequence(message: &SequenceProto, t: &TypeProto) -> Result<Constant, DataError> {
    let dtype = crate::interface::element_type(t).transpose()?;
    let tensors = message.tensor_values.iter().map(of_tensor);
    let sequences = message.sequence_values.iter().map(|s| of_sequence(s, t));
    let optionals = message.optional_values.iter().map(|o| of_optional(o, t));
    let elements = tensors.chain(sequences).chain(optionals).collect::<Result<_, _>>()?;
    Ok(Constant::Sequence(elements, dtype))
}

fn of_optional(message: &OptionalProto, element: &TypeProto) -> Result<Constant, DataError> {
    use optional_proto::DataType;
    let number = message.elem_type();
    let inner = match DataType::try_from(number).unwrap_or(DataType::Undefined) {
        DataType::Undefined => None,
        DataType::Tensor => message.tensor_value.as_ref().map(of_tensor),
        DataType::Sequence => message.sequence_value.as_ref().map(|s| of_sequence(s, element)),
        DataType::Optional => message.optional_value.as_deref().map(|o| of_optional(o, element)),
        other => return Err(DataError::Kind(other.as_str_name().to_lowercase())),
    };
    Ok(Constant::Optional(inner.transpose()?.map(Box::new)))
}
