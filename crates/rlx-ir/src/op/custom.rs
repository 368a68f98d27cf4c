//! Operations that users add without forking.

use crate::error::TypeError;
use crate::infer::{Infer, Types};
use crate::literal::Literal;
use crate::text::Printer;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What a user's operation must say. Executors other than the oracle may look for kernels by its name.
pub trait CustomOp: Debug + Send + Sync {
    /// The name; it prints as `custom<name="…">`.
    fn name(&self) -> &str;
    /// The attributes in a text form, which with the name identifies the operation.
    fn attributes(&self) -> String {
        String::new()
    }
    /// The types of the results.
    fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError>;
    /// The results on operands with these values.
    fn eval(&self, operands: &[Literal]) -> Result<Vec<Literal>, String>;
}

/// A user's operation in a graph. Equality and hash are by name and attributes.
#[derive(Clone, Debug)]
pub struct Custom(pub Arc<dyn CustomOp>);

impl Custom {
    pub(crate) fn name(&self) -> &str {
        "custom"
    }

    pub(crate) fn infer(&self, cx: &Infer<'_>) -> Result<Types, TypeError> {
        self.0.infer(cx)
    }

    pub(crate) fn print_fields(&self, p: &mut Printer<'_>) {
        p.field("name", &Arc::<str>::from(self.0.name()));
        p.field("attributes", &Arc::<str>::from(self.0.attributes()));
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Custom) -> bool {
        self.0.name() == other.0.name() && self.0.attributes() == other.0.attributes()
    }
}

impl Eq for Custom {}

impl Hash for Custom {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name().hash(state);
        self.0.attributes().hash(state);
    }
}

impl From<Custom> for super::Op {
    fn from(op: Custom) -> super::Op {
        super::Op::Primitive(super::Primitive::Custom(op))
    }
}
