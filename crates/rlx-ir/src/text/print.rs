//! Graph to text.

use crate::dim::{Dim, SymbolInfo};
use crate::error::Locations;
use crate::graph::{Graph, Value};
use crate::literal::{INLINE_BYTES, Literal};
use crate::op::{Attr, Op, Primitive};
use crate::types::TensorType;
use indexmap::IndexMap;
use std::fmt::Write;

/// A graph's text, with the constants that it names by hash.
#[derive(Clone, Debug)]
pub struct Printed {
    /// The text.
    pub text: String,
    /// Hash to constant.
    pub constants: IndexMap<u128, Literal>,
}

/// The text of a graph; large constants are given by hash only.
pub fn print(graph: &Graph) -> String {
    print_with_constants(graph).text
}

/// The text of a graph, and its large constants.
pub fn print_with_constants(graph: &Graph) -> Printed {
    let mut constants = IndexMap::new();
    let mut printer = Printer { out: String::new(), indent: 0, fields: 0, constants: &mut constants };
    let _ = writeln!(printer.out, "rlx {}", super::VERSION);
    printer.graph(graph);
    printer.out.push('\n');
    Printed { text: printer.out, constants }
}

/// Writes the text form. Attributes print themselves through it.
#[derive(Debug)]
pub struct Printer<'a> {
    out: String,
    indent: usize,
    fields: usize,
    constants: &'a mut IndexMap<u128, Literal>,
}

impl Printer<'_> {
    /// The attributes of an operation in the text form, without the brackets.
    pub(crate) fn fields_of(op: &Op) -> String {
        let mut constants = IndexMap::new();
        let mut printer = Printer { out: String::new(), indent: 0, fields: 0, constants: &mut constants };
        op.print_fields(&mut printer);
        printer.out.split_off(usize::from(printer.fields > 0))
    }

    /// Writes a word as it is.
    pub fn word(&mut self, word: &str) {
        self.out.push_str(word);
    }

    /// Writes a quoted text.
    pub fn string(&mut self, text: &str) {
        let _ = write!(self.out, "{text:?}");
    }

    /// Writes a number that reads back to the same bits (NaN: as any NaN).
    pub fn float(&mut self, value: f64) {
        let _ = match value {
            v if v.is_nan() => write!(self.out, "nan"),
            v if v.is_infinite() => write!(self.out, "{}", if v < 0.0 { "-inf" } else { "inf" }),
            v => write!(self.out, "{v:?}"),
        };
    }

    /// Writes a size.
    pub fn dim(&mut self, dim: &Dim) {
        let _ = write!(self.out, "{dim}");
    }

    /// Writes a type.
    pub fn tensor_type(&mut self, t: &TensorType) {
        let _ = write!(self.out, "{t}");
    }

    /// Writes a list in brackets.
    pub fn list<T>(&mut self, items: &[T], print: impl Fn(&mut Self, &T)) {
        self.out.push('[');
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            print(self, item);
        }
        self.out.push(']');
    }

    /// Writes `name=value`, unless it is the default.
    pub fn field<T: Attr + PartialEq>(&mut self, name: &str, value: &T) {
        if T::default().as_ref() == Some(value) {
            return;
        }
        self.out.push_str(if self.fields == 0 { "<" } else { ", " });
        self.fields += 1;
        let outer = self.fields;
        let _ = write!(self.out, "{name}=");
        value.print(self);
        self.fields = outer;
    }

    /// Writes a constant, in full or as a hash.
    pub fn literal(&mut self, literal: &Literal) {
        self.tensor_type(&literal.tensor_type());
        self.out.push(' ');
        if literal.bytes().len() > INLINE_BYTES {
            let hash = literal.content_hash();
            let _ = write!(self.out, "\"#{hash:032x}\"");
            self.constants.insert(hash, literal.clone());
        } else {
            super::literal::print(literal, &mut self.out);
        }
    }

    /// Writes a nested graph.
    pub fn subgraph(&mut self, graph: &Graph) {
        self.graph(graph);
    }

    fn line(&mut self) {
        self.out.push('\n');
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
    }

    fn graph(&mut self, graph: &Graph) {
        self.out.push_str("graph ");
        self.string(graph.name());
        self.out.push('(');
        for (i, input) in graph.inputs().iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            let _ = write!(
                self.out,
                "%{} {:?}: {}",
                input.node.0,
                graph.input_name(*input),
                graph.type_of(*input)
            );
            self.locations(&graph.node(input.node).locations);
        }
        self.out.push_str(") {");
        self.indent += 1;
        for (symbol, info) in graph.symbols().iter() {
            self.line();
            let _ = write!(self.out, "symbol {symbol}:");
            self.symbol_info(info);
        }
        for (id, node) in graph.nodes() {
            if matches!(node.op, Op::Primitive(Primitive::Input(_))) {
                continue;
            }
            self.line();
            let _ = write!(self.out, "%{} = {}", id.0, node.op.name());
            self.fields = 0;
            node.op.print_fields(self);
            if self.fields > 0 {
                self.out.push('>');
            }
            self.out.push('(');
            for (i, operand) in node.operands.iter().enumerate() {
                if i > 0 {
                    self.out.push_str(", ");
                }
                self.value(graph, *operand);
            }
            self.out.push_str(") :");
            for (i, t) in node.types.iter().enumerate() {
                let _ = write!(self.out, "{} {t}", if i > 0 { "," } else { "" });
            }
            self.locations(&node.locations);
        }
        self.line();
        self.out.push_str("return");
        for (i, output) in graph.outputs().iter().enumerate() {
            let _ = write!(self.out, "{} {:?} = ", if i > 0 { "," } else { "" }, output.name);
            self.value(graph, output.value);
        }
        for state in graph.states() {
            self.line();
            let _ = write!(self.out, "state {} -> {}", state.input, state.output);
        }
        self.indent -= 1;
        self.line();
        self.out.push('}');
    }

    fn value(&mut self, graph: &Graph, value: Value) {
        let _ = write!(self.out, "%{}", value.node.0);
        if graph.node(value.node).types.len() > 1 {
            let _ = write!(self.out, ".{}", value.output);
        }
    }

    fn locations(&mut self, locations: &Locations) {
        if locations.is_empty() {
            return;
        }
        self.out.push_str(" @");
        let names: Vec<&str> = locations.iter().collect();
        self.list(&names, |p, name| p.string(name));
    }

    fn symbol_info(&mut self, info: &SymbolInfo) {
        let _ = write!(self.out, " min={}", info.range.min);
        if info.range.max != i64::MAX {
            let _ = write!(self.out, ", max={}", info.range.max);
        }
        if info.multiple_of != 1 {
            let _ = write!(self.out, ", multiple_of={}", info.multiple_of);
        }
        if let Some(likely) = info.likely {
            let _ = write!(self.out, ", likely={likely}");
        }
    }
}
