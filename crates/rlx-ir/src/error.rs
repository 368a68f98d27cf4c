//! The errors of building and checking graphs.

use std::fmt;
use std::sync::Arc;

/// Where a node comes from in its source (a file's node names, say): a sorted set, because hash-consing and
/// fusion merge nodes and must lose no name.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Locations(Vec<Arc<str>>);

impl Locations {
    /// No location.
    pub fn none() -> Locations {
        Locations::default()
    }

    /// One location.
    pub fn one(location: impl Into<Arc<str>>) -> Locations {
        Locations(vec![location.into()])
    }

    /// Adds every location of `other`.
    pub fn merge(&mut self, other: &Locations) {
        for location in &other.0 {
            if let Err(at) = self.0.binary_search(location) {
                self.0.insert(at, location.clone());
            }
        }
    }

    /// The locations, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|l| &**l)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Locations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// An operation's operands or attributes break one of its constraints. Prints as
/// `reshape (node "/decoder/Reshape_3"): C2: element counts differ: operand 0: expected 10*s, found 6*s`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", self.text())]
pub struct TypeError(Box<TypeErrorParts>);

/// The parts of a [`TypeError`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeErrorParts {
    /// The operation's name.
    pub op: String,
    /// The constraint's label in the operation's documentation: `C1`, `C2` …
    pub label: &'static str,
    /// The operand at fault, if it is one.
    pub operand: Option<usize>,
    /// What is wrong, in words.
    pub what: String,
    /// What would be right.
    pub expected: String,
    /// What was found.
    pub found: String,
    /// Where the operation comes from.
    pub locations: Locations,
}

impl TypeError {
    /// An error with these parts.
    pub fn new(parts: TypeErrorParts) -> TypeError {
        TypeError(Box::new(parts))
    }

    /// The parts.
    pub fn parts(&self) -> &TypeErrorParts {
        &self.0
    }

    /// The same error at these locations, if it had none.
    pub fn at(mut self, locations: &Locations) -> TypeError {
        if self.0.locations.is_empty() {
            self.0.locations = locations.clone();
        }
        self
    }

    fn text(&self) -> String {
        let p = &self.0;
        let mut text = p.op.clone();
        if !p.locations.is_empty() {
            let names: Vec<String> = p.locations.iter().map(|l| format!("{l:?}")).collect();
            text += &format!(" (node {})", names.join(", "));
        }
        text += &format!(": {}: {}", p.label, p.what);
        if let Some(operand) = p.operand {
            text += &format!(": operand {operand}");
        }
        if !p.expected.is_empty() {
            text += &format!(": expected {}", p.expected);
        }
        if !p.found.is_empty() {
            text += &format!("{} found {}", if p.expected.is_empty() { ":" } else { "," }, p.found);
        }
        text
    }
}
