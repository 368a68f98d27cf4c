//! A case: one operation in a small graph, on given inputs, with what must come out.

use crate::array::Array;
use crate::random::{Domain, Random};
use crate::tolerance::{Magnitude, Tolerance};
use rlx_ir::{Bindings, DType, Graph, Literal, Symbol, text};
use std::fmt;
use std::sync::Arc;

/// An independent formula: the outputs from the inputs, both as f64.
pub type Formula = Arc<dyn Fn(&[Array]) -> Vec<Array> + Send + Sync>;

/// A property of the results: what is wrong with these outputs on these inputs.
pub type Property = Arc<dyn Fn(&[Array], &[Array]) -> Result<(), String> + Send + Sync>;

/// When an error must come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// While the graph is built: a type rule refuses it.
    Build,
    /// When the inputs are given.
    Bind,
    /// While it runs.
    Run,
}

/// What must come out of a case.
#[derive(Clone)]
pub enum Expect {
    /// These values. A float output may be given in f64, as the exact number; it is then judged within the tolerance.
    Values(Vec<Literal>),
    /// What a formula gives that was written without looking at the implementation.
    Formula(Formula),
    /// Results with this property (where many results are right: the factors of a matrix, say).
    Property(Property),
    /// What the oracle gives: for the oracle itself this checks only that it agrees with its f64 mode.
    Oracle,
    /// An error at this stage, whose message contains this text.
    Fails(Stage, String),
}

impl fmt::Debug for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expect::Values(values) => write!(f, "values {values:?}"),
            Expect::Formula(_) => f.write_str("a formula's values"),
            Expect::Property(_) => f.write_str("a property"),
            Expect::Oracle => f.write_str("the oracle's values"),
            Expect::Fails(stage, text) => write!(f, "an error at {stage:?} with {text:?}"),
        }
    }
}

/// How much a case costs, so that runs can be bounded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Cost {
    /// Milliseconds on the oracle: the default.
    #[default]
    Small,
    /// Up to a second or so.
    Medium,
    /// Seconds and more, or gigabytes: on demand only.
    Expensive,
}

/// One row of the case table. Made by [`case`] or [`op_case`], then completed by its methods.
#[derive(Clone)]
pub struct Case {
    /// The operation's name in the table; coverage is counted by it.
    pub op: String,
    /// What sets this case apart from the operation's others; unique among them.
    pub name: String,
    /// The graph, or why it was not built.
    pub graph: Result<Arc<Graph>, String>,
    /// The inputs, in order.
    pub inputs: Vec<Literal>,
    /// What must come out.
    pub expect: Expect,
    /// How close results must be.
    pub tolerance: Tolerance,
    /// Its cost.
    pub cost: Cost,
    /// A smaller case of the same kind for simulators, where this one is not small.
    pub twin: Option<Box<Case>>,
    /// Whether the result in f64 throughout must agree with the declared types' within the tolerance. Not for graphs
    /// that round on purpose (casts, bit patterns, overflow of a narrow type).
    pub agrees_in_f64: bool,
    /// Whether operands may be fed as views: each viewed operand must give the bits of its contiguous copy.
    pub views: bool,
    /// The accumulator's type, where it is not f32 for narrow floats and the type itself for wide ones.
    pub accumulator: Option<DType>,
    sizes: Bindings,
    random: Random,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "case {}/{}: {:?}, {}", self.op, self.name, self.expect, self.tolerance)
    }
}

/// A case of the operation `op` in the graph with this text: all of it, or without the version, or only from the
/// inputs on.
///
/// ```
/// use rlx_testkit::{case, f32s};
///
/// let case = case("add", "two_numbers", "(%x: f32[n], %y: f32[n]) { %z = add(%x, %y) return \"z\" = %z }")
///     .input(f32s([2], [1.0, 2.0]))
///     .input(f32s([2], [0.5, -2.0]))
///     .values([f32s([2], [1.5, 0.0])]);
/// assert_eq!(case.graph.map(|g| g.outputs().len()), Ok(1));
/// ```
pub fn case(op: &str, name: &str, graph: &str) -> Case {
    let full = match graph.trim_start() {
        text if text.starts_with("rlx") => text.to_string(),
        text if text.starts_with("graph") => format!("rlx {}\n{text}", text::VERSION),
        text => format!("rlx {}\ngraph \"case\"{text}", text::VERSION),
    };
    let graph = text::parse(&full).map(Arc::new).map_err(|e| e.to_string());
    Case {
        op: op.to_string(),
        name: name.to_string(),
        graph,
        inputs: Vec::new(),
        expect: Expect::Oracle,
        tolerance: Tolerance::Exact,
        cost: Cost::Small,
        twin: None,
        agrees_in_f64: true,
        views: true,
        accumulator: None,
        sizes: Bindings::new(),
        random: Random::named(&format!("{op}/{name}")),
    }
}

/// A case of one operation applied to inputs: its attributes as in the text form (`axis=1, keep_dims=true`, or
/// nothing), its operands' types (`f32[n, 3], i64[n]`), all its results as outputs.
///
/// ```
/// use rlx_testkit::{Domain, op_case};
///
/// let case = op_case("top_k", "ties", "k=2, axis=0", "i32[5]").random(Domain::Whole(0, 2));
/// assert_eq!(case.inputs.len(), 1);
/// assert_eq!(case.graph.map(|g| g.outputs().len()), Ok(2));
/// ```
pub fn op_case(op: &str, name: &str, attributes: &str, operands: &str) -> Case {
    let types = split_top_level(operands);
    let inputs: Vec<String> = types.iter().enumerate().map(|(i, t)| format!("%x{i}: {t}")).collect();
    let names: Vec<String> = (0..types.len()).map(|i| format!("%x{i}")).collect();
    let attributes = if attributes.is_empty() { String::new() } else { format!("<{attributes}>") };
    let text = |outputs: &str| {
        format!(
            "({}) {{\n  %y = {op}{attributes}({})\n  return {outputs}\n}}",
            inputs.join(", "),
            names.join(", ")
        )
    };
    let single = case(op, name, &text("\"y\" = %y"));
    let results =
        single.graph.as_ref().map_or(1, |g| g.nodes().next_back().map_or(1, |(_, n)| n.types.len()));
    if results == 1 {
        return single;
    }
    let outputs: Vec<String> = (0..results).map(|i| format!("\"y{i}\" = %y.{i}")).collect();
    case(op, name, &text(&outputs.join(", ")))
}

/// The parts of a list that are separated by commas outside brackets.
pub(crate) fn split_top_level(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' | '<' => depth += 1,
            ']' | ')' | '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|p| !p.is_empty());
    parts
}

impl Case {
    /// `op/name`, as reports print it and filters match it.
    pub fn title(&self) -> String {
        format!("{}/{}", self.op, self.name)
    }

    /// Another name: for sweeps.
    pub fn named(mut self, name: impl Into<String>) -> Case {
        self.name = name.into();
        self
    }

    /// Values of symbolic sizes, for inputs that are drawn.
    pub fn sizes<'a>(mut self, sizes: impl IntoIterator<Item = (&'a str, usize)>) -> Case {
        sizes.into_iter().for_each(|(symbol, size)| self.sizes.set(Symbol::new(symbol), size as i64));
        self
    }

    /// The next input.
    pub fn input(mut self, literal: Literal) -> Case {
        self.inputs.push(literal);
        self
    }

    /// All remaining inputs.
    pub fn inputs(mut self, literals: impl IntoIterator<Item = Literal>) -> Case {
        self.inputs.extend(literals);
        self
    }

    /// The next input, drawn from a domain. Symbolic sizes are those given by [`Self::sizes`].
    pub fn random_input(mut self, domain: Domain) -> Case {
        let next = self.inputs.len();
        let Ok(graph) = &self.graph else { return self };
        let Some((name, t)) = graph.input_types().nth(next) else {
            return self.spoilt(format!("there is no input {next} to draw"));
        };
        match t.shape.eval(&self.sizes) {
            Ok(dims) => {
                let literal = self.random.literal(t.dtype, &dims, &domain);
                self.inputs.push(literal);
                self
            }
            Err(e) => {
                let message = format!("input {name:?}: {e}");
                self.spoilt(message)
            }
        }
    }

    /// A case whose own text is at fault fails with this message when it runs.
    fn spoilt(mut self, message: String) -> Case {
        self.graph = Err(message);
        self
    }

    /// All remaining inputs, drawn from a domain.
    pub fn random(mut self, domain: Domain) -> Case {
        let inputs = self.graph.as_ref().map_or(0, |g| g.inputs().len());
        while self.inputs.len() < inputs && self.graph.is_ok() {
            self = self.random_input(domain.clone());
        }
        self
    }

    /// Expects these values.
    pub fn values(mut self, values: impl IntoIterator<Item = Literal>) -> Case {
        self.expect = Expect::Values(values.into_iter().collect());
        self
    }

    /// Expects what this formula gives for the one output.
    pub fn formula(self, formula: impl Fn(&[Array]) -> Array + Send + Sync + 'static) -> Case {
        self.formulas(move |inputs| vec![formula(inputs)])
    }

    /// Expects what this formula gives for all outputs.
    pub fn formulas(mut self, formula: impl Fn(&[Array]) -> Vec<Array> + Send + Sync + 'static) -> Case {
        self.expect = Expect::Formula(Arc::new(formula));
        self
    }

    /// Expects that this finds nothing wrong with the outputs, given inputs and outputs.
    pub fn property(
        mut self,
        property: impl Fn(&[Array], &[Array]) -> Result<(), String> + Send + Sync + 'static,
    ) -> Case {
        self.expect = Expect::Property(Arc::new(property));
        self
    }

    /// Expects that a type rule refuses the graph with the constraint `label` of the case's operation.
    pub fn fails_build(mut self, label: &str) -> Case {
        self.expect = Expect::Fails(Stage::Build, format!("{}: {label}: ", self.op));
        self
    }

    /// Expects an error at this stage, whose message contains `text`.
    pub fn fails(mut self, stage: Stage, text: &str) -> Case {
        self.expect = Expect::Fails(stage, text.to_string());
        self
    }

    /// Expects this.
    pub fn expecting(mut self, expect: Expect) -> Case {
        self.expect = expect;
        self
    }

    /// Judges results by this class.
    pub fn within(mut self, tolerance: Tolerance) -> Case {
        self.tolerance = tolerance;
        self
    }

    /// Judges results as transcendental functions.
    pub fn transcendental(self) -> Case {
        self.within(Tolerance::Transcendental)
    }

    /// Judges results as sums of `terms` terms, of the magnitude of the greatest result.
    pub fn accumulated(self, terms: usize) -> Case {
        self.within(Tolerance::accumulated(terms))
    }

    /// Judges results as sums of `terms` terms, whose magnitudes come from the graph on absolute inputs.
    pub fn summed(self, terms: usize) -> Case {
        self.within(Tolerance::summed(terms))
    }

    /// Judges results as sums of `terms` terms, whose magnitudes this formula gives, an array an output.
    pub fn magnitudes(
        self,
        terms: usize,
        formula: impl Fn(&[Array]) -> Vec<Array> + Send + Sync + 'static,
    ) -> Case {
        self.within(Tolerance::Accumulated { terms, magnitude: Magnitude::Formula(Arc::new(formula)) })
    }

    /// The graph rounds on purpose: its result in f64 throughout is another.
    pub fn declared_types_only(mut self) -> Case {
        self.agrees_in_f64 = false;
        self
    }

    /// Operands are fed as they are only (views are costly here, or make no sense).
    pub fn without_views(mut self) -> Case {
        self.views = false;
        self
    }

    /// Sets the cost.
    pub fn cost(mut self, cost: Cost) -> Case {
        self.cost = cost;
        self
    }

    /// Sets the smaller case for simulators.
    pub fn twin(mut self, twin: Case) -> Case {
        self.twin = Some(Box::new(twin));
        self
    }

    /// Sets the accumulator's type.
    pub fn accumulates_in(mut self, dtype: DType) -> Case {
        self.accumulator = Some(dtype);
        self
    }
}

/// One case for each element type.
pub fn for_dtypes(dtypes: &[DType], make: impl Fn(DType) -> Case) -> Vec<Case> {
    dtypes
        .iter()
        .map(|dtype| {
            let case = make(*dtype);
            let name = format!("{}_{dtype}", case.name);
            case.named(name)
        })
        .collect()
}

/// One case for each of the sizes that implementations trip over: 0, 1, primes, and one around `tile`.
pub fn for_sizes(tile: usize, make: impl Fn(usize) -> Case) -> Vec<Case> {
    [0, 1, 7, 13, tile - 1, tile, tile + 1]
        .into_iter()
        .map(|n| {
            let case = make(n);
            let name = format!("{}_{n}", case.name);
            case.named(name)
        })
        .collect()
}

/// The float types that operations compute in.
pub const FLOATS: &[DType] = &[DType::F32, DType::F64, DType::F16, DType::BF16];

/// The integer types that operations compute in.
pub const INTEGERS: &[DType] =
    &[DType::I64, DType::I32, DType::I16, DType::I8, DType::U64, DType::U32, DType::U16, DType::U8];

/// A literal of these numbers, rounded to the type.
pub fn literal(dtype: DType, dims: impl Into<Vec<usize>>, values: impl Into<Vec<f64>>) -> Literal {
    Array::new(dims, values).to_literal(dtype)
}

macro_rules! literals {
    ($($(#[$doc:meta])* $name:ident: $t:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Panics
        /// If the sizes do not fit the values: a fault of the case.
        pub fn $name(dims: impl Into<Vec<usize>>, values: impl AsRef<[$t]>) -> Literal {
            Literal::from_slice(dims, values.as_ref()).expect("as many values as the sizes say")
        }
    )*};
}
literals! {
    /// An f32 literal.
    f32s: f32;
    /// An f64 literal.
    f64s: f64;
    /// An i64 literal.
    i64s: i64;
    /// An i32 literal.
    i32s: i32;
    /// A u8 literal.
    u8s: u8;
    /// A bool literal.
    bools: bool;
}
