//! The table as data: what documentation and coverage reports are made from.

use super::{Attributes, OpKind, table};

/// What is known of one operation without an instance of it.
#[derive(Clone, Debug)]
pub struct OpInfo {
    /// The name in the text form.
    pub name: &'static str,
    /// The family, which is the name of its file.
    pub family: &'static str,
    /// Primitive or composite, and which.
    pub kind: OpKind,
    /// Its documentation: the formula, then the constraints.
    pub doc: &'static str,
    /// Attribute name, type and documentation.
    pub fields: &'static [(&'static str, &'static str, &'static str)],
}

impl OpInfo {
    pub(super) fn of<T: Attributes>(family: &'static str, kind: OpKind, into: &mut Vec<OpInfo>) {
        for (name, doc) in T::NAMES.iter().zip(T::DOCS) {
            into.push(OpInfo { name, family, kind, doc, fields: T::FIELDS });
        }
    }
}

/// Every operation, in the order of the table. Custom operations are not in it.
pub fn catalogue() -> Vec<OpInfo> {
    table::entries()
}
