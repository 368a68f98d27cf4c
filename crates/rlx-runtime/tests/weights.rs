//! Weights in other layouts than the file's are held once a session, and let go with the last executable.

mod models;

use models::{floats, session, unaligned};
use rlx_ir::{Builder, DType, Dim, Graph, Literal, TensorType};
use rlx_runtime::CompileOptions;

const BYTES: usize = 4 * 32 * 32;

/// f32[n, 32] times this weight, plus `c`.
fn product(w: &Literal, c: f64) -> Graph {
    let build = || {
        let mut b = Builder::new("product");
        let x = b.input("x", TensorType::new(DType::F32, vec![Dim::symbol("n"), 32.into()]))?;
        let w = b.constant(w.clone());
        let y = b.matmul(x, w)?;
        let y = b.add_scalar(y, c)?;
        b.finish([("y", y)])
    };
    build().expect("the types fit")
}

#[test]
fn executables_of_a_session_share_a_weight_and_its_bytes_count_once() {
    let session = session(1);
    let w = unaligned(&[32, 32], 0.0);
    let first = session.compile(&product(&w, 0.0), &CompileOptions::default()).expect("it compiles");
    let one = session.weight_bytes();
    assert!(one >= BYTES, "{one}");
    let second = session.compile(&product(&w, 1.0), &CompileOptions::default()).expect("it compiles");
    assert_eq!(session.weight_bytes(), one);
    drop(first);
    assert_eq!(session.weight_bytes(), one);
    let outputs = second.run(&[("x", floats(&[2, 32], 0.0))]).expect("it runs");
    assert_eq!(outputs["y"].dims(), [2, 32]);
    drop(second);
    assert_eq!(session.weight_bytes(), 0);
}

#[test]
fn sessions_do_not_share_weights() {
    let w = unaligned(&[32, 32], 0.0);
    let (first, second) = (session(1), session(1));
    let _executable = first.compile(&product(&w, 0.0), &CompileOptions::default()).expect("it compiles");
    assert!(first.weight_bytes() > 0);
    assert_eq!(second.weight_bytes(), 0);
}
