//! The functions that a model brings along.

use rustc_hash::FxHashMap;

use crate::error::ImportError;
use crate::proto::{FunctionProto, NodeProto};
use crate::registry::normal_domain;

/// Functions by domain, name and overload.
pub(crate) type Functions<'m> = FxHashMap<(&'m str, &'m str, &'m str), &'m FunctionProto>;

/// The functions by identity; two of one identity are an error.
pub(crate) fn by_identity(functions: &[FunctionProto]) -> Result<Functions<'_>, ImportError> {
    let mut all = Functions::default();
    for function in functions {
        let key = (normal_domain(function.domain()), function.name(), function.overload());
        if all.insert(key, function).is_some() {
            return Err(ImportError::DuplicateFunction { function: shown(function) });
        }
    }
    Ok(all)
}

/// The function that a node calls, if it calls one.
pub(crate) fn find<'m>(functions: &Functions<'m>, node: &NodeProto) -> Option<&'m FunctionProto> {
    let key = (normal_domain(node.domain()), node.op_type(), node.overload());
    functions.get(&key).copied()
}

/// Domain and name, for errors.
pub(crate) fn shown(function: &FunctionProto) -> String {
    format!("{}:{}", function.domain(), function.name())
}
