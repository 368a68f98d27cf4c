//! The inputs of a model, from the command line.

use crate::input::{InputArgument, InputSpec};
use crate::names::suggestion;
use crate::values::{Sources, parse_setting};
use anyhow::bail;
use clap::Args;
use rlx::ir::{Bindings, Graph, Literal, Symbol};

/// What a model is run on.
#[derive(Args)]
pub(crate) struct InputArguments {
    /// An input's value: NAME=file.npy|npz|wav|png|json, NAME=random[:2,N,8], or NAME=[[1, 2]]
    #[arg(long, value_name = "NAME=SOURCE")]
    input: Vec<InputArgument>,

    /// The value of a symbolic size, for random inputs and for plans
    #[arg(long, value_name = "SYMBOL=N", value_parser = parse_setting)]
    set: Vec<(Symbol, i64)>,

    /// The seed of random inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// What becomes of inputs that are not given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// They are an error.
    Refused,
    /// They are random.
    Random,
}

impl InputArguments {
    /// The sizes that `--set` gives. A symbol that the model lacks is an error.
    pub(crate) fn sizes(&self, graph: &Graph) -> anyhow::Result<Bindings> {
        let mut symbols: Vec<Symbol> = Vec::new();
        for (_, t) in graph.input_types() {
            for dim in t.dims() {
                dim.for_each_symbol(&mut |symbol| {
                    if !symbols.contains(symbol) {
                        symbols.push(symbol.clone());
                    }
                });
            }
        }
        let mut sizes = Bindings::new();
        for (symbol, value) in &self.set {
            if !symbols.contains(symbol) {
                let known: Vec<&str> = symbols.iter().map(Symbol::name).collect();
                let meant = suggestion(symbol.name(), known.iter().copied());
                let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
                bail!("no input has a size {:?}{meant} (symbolic sizes: {known})", symbol.name());
            }
            sizes.set(symbol.clone(), *value);
        }
        Ok(sizes)
    }

    /// The inputs in the graph's order. A name that the model lacks is an error.
    pub(crate) fn gather(&self, graph: &Graph, missing: Missing) -> anyhow::Result<Vec<Literal>> {
        for (i, argument) in self.input.iter().enumerate() {
            if !graph.input_types().any(|(name, _)| name == argument.name) {
                let meant = suggestion(&argument.name, graph.input_types().map(|(name, _)| name));
                let declared: Vec<String> =
                    graph.input_types().map(|(name, t)| format!("{name} ({t})")).collect();
                bail!(
                    "there is no input {:?}{meant} (the inputs are {})",
                    argument.name,
                    declared.join(", ")
                );
            }
            if self.input[..i].iter().any(|other| other.name == argument.name) {
                bail!("input {:?} is given twice", argument.name);
            }
        }
        let sizes = self.sizes(graph)?;
        let sources = Sources { bindings: &sizes, seed: self.seed };
        graph
            .input_types()
            .map(|(name, t)| {
                let given = self.input.iter().find(|a| a.name == name).map(|a| &a.source);
                match (given, missing) {
                    (Some(source), _) => sources.literal(name, source, t),
                    (None, Missing::Random) => sources.literal(name, &InputSpec::Random(None), t),
                    (None, Missing::Refused) => {
                        bail!("input {name:?} ({t}) is not set; give it with --input {name}=…")
                    }
                }
            })
            .collect()
    }
}
