//! Precision policies on the CPU: results in f16 and bf16 stay within the bound of that type around the model in f64.

use rlx_ir::{DType, Literal, text};
use rlx_runtime::{CompileOptions, Device, PrecisionPolicy, Session, Tensor};
use rlx_testkit::compare::{Bound, near};
use rlx_testkit::oracle::wide_arrays;
use rlx_testkit::{Domain, Random, Tolerance, f32s};

struct Model {
    name: &'static str,
    inputs: &'static str,
    body: &'static str,
    /// How many roundings stand one behind the other, and how many terms are summed.
    depth: usize,
}

const MODELS: &[Model] = &[
    Model {
        name: "product and GELU",
        inputs: "%x: f32[n, 16], %w: f32[16, 8], %c: f32[8]",
        body: "%d = dot<lhs_contract=[1], rhs_contract=[0]>(%x, %w)\n%cb = broadcast<dims=[n, 8]>(%c)\n\
               %s = add(%d, %cb)\n%y = gelu(%s)",
        depth: 8,
    },
    Model {
        name: "layer norm and softmax",
        inputs: "%x: f32[n, 16], %w: f32[16], %c: f32[16]",
        body: "%n = layer_norm<axis=-1, eps=1e-5, statistics=false>(%x, %w, %c)\n%y = softmax<axis=-1>(%n)",
        depth: 8,
    },
    Model {
        name: "attention with a mask of the least f32",
        inputs: "%q: f32[1, 2, 3, 4], %k: f32[1, 2, 5, 4], %v: f32[1, 2, 5, 4]",
        body: "%m = constant<value=f32[1, 5] [0.0, 0.0, -3.4028235e38, 0.0, -3.4028235e38]>()\n\
               %y = attention<empty_row=zeros, operands=[additive_mask]>(%q, %k, %v, %m)",
        depth: 8,
    },
];

fn check(policy: &PrecisionPolicy, dtype: DType) -> Result<(), Box<dyn std::error::Error>> {
    let session = Session::new(Device::Cpu { threads: 1 })?;
    for model in MODELS {
        let text = format!(
            "rlx {}\ngraph \"g\"({}) {{\n{}\nreturn \"y\" = %y\n}}\n",
            text::VERSION,
            model.inputs,
            model.body
        );
        let graph = text::parse(&text)?;
        let mut random = Random::named(model.name);
        let dims = |t: &rlx_ir::TensorType| -> Vec<usize> {
            t.dims().iter().map(|d| d.as_size().unwrap_or(3)).collect()
        };
        let inputs: Vec<Literal> =
            graph.input_types().map(|(_, t)| random.literal(DType::F32, &dims(t), &Domain::Normal)).collect();
        let options = CompileOptions { precision: policy.clone(), verify: true, ..CompileOptions::default() };
        let executable = session.compile(&graph, &options)?;
        let names: Vec<&str> = graph.input_types().map(|(name, _)| name).collect();
        let given: Vec<(&str, Tensor)> =
            names.into_iter().zip(inputs.iter().cloned().map(Tensor::from)).collect();
        let outputs = executable.run(&given)?;
        let found = outputs["y"].to_vec::<f32>().ok_or("the output is not f32")?;
        let expected = &wide_arrays(&graph, &inputs)?[0];
        let found = f32s(expected.dims.clone(), found);
        let tolerance = Tolerance::accumulated(1);
        let bound =
            Bound { tolerance: &tolerance, magnitudes: None, depth: model.depth, accumulator: Some(dtype) };
        near(&found, expected, &bound).map_err(|d| format!("{} in {dtype}: {d}", model.name))?;
    }
    Ok(())
}

#[test]
fn half_precision_stays_within_its_bound() -> Result<(), Box<dyn std::error::Error>> {
    check(&PrecisionPolicy::F16, DType::F16)?;
    check(&PrecisionPolicy::Bf16, DType::BF16)
}

#[test]
fn mixed_precision_stays_within_the_narrow_bound() -> Result<(), Box<dyn std::error::Error>> {
    let mixed = |to| PrecisionPolicy::Mixed { to, allow: Vec::new(), deny: Vec::new() };
    check(&mixed(DType::F16), DType::F16)?;
    check(&mixed(DType::BF16), DType::BF16)
}
