//! Imports models and says what became of each: `cargo run --example import -- MODEL.onnx …`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rlx_onnx::load::{LoadOptions, open};
use rlx_onnx::{ImportOptions, import};

fn main() {
    for path in std::env::args_os().skip(1).map(PathBuf::from) {
        println!("{}", path.display());
        let file = match open(&path, &LoadOptions::default()) {
            Ok(file) => file,
            Err(error) => {
                println!("  {error}");
                continue;
            }
        };
        match import(&file, &ImportOptions::default()) {
            Err(error) => println!("  {error}"),
            Ok(model) => {
                let mut operations: BTreeMap<&str, usize> = BTreeMap::new();
                for (_, node) in model.graph.nodes() {
                    *operations.entry(node.op.name()).or_default() += 1;
                }
                for (name, t) in model.graph.input_types() {
                    println!("  input  {name}: {t}");
                }
                for (name, t) in model.graph.output_types() {
                    println!("  output {name}: {t}");
                }
                println!("  {operations:?}");
            }
        }
    }
}
