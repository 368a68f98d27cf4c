use super::*;
use crate::dtype::DType;
use crate::op::contract::Dot;
use crate::op::elementwise::{BinaryOp, UnaryOp};
use crate::op::index::NonZero;
use crate::op::movement::{Broadcast, Reshape, Slice};

fn f32s(dims: &[Dim]) -> TensorType {
    TensorType::new(DType::F32, dims)
}

#[test]
fn equal_nodes_are_one_and_keep_both_locations() {
    let mut b = Builder::new("g");
    let x = b.input("x", f32s(&[4.into()])).unwrap();
    b.set_locations(Locations::one("first"));
    let y = b.unary(UnaryOp::Exp, x).unwrap();
    b.set_locations(Locations::one("second"));
    assert_eq!(b.unary(UnaryOp::Exp, x).unwrap(), y);
    assert_eq!(b.graph().node(y.node).locations.iter().collect::<Vec<_>>(), ["first", "second"]);
}

#[test]
fn unneeded_nodes_are_left_out_but_not_those_that_bind_a_symbol() {
    let mut b = Builder::new("g");
    let x = b.input("x", f32s(&[4.into()])).unwrap();
    b.unary(UnaryOp::Log, x).unwrap();
    let count = b.fresh_symbol("count");
    b.push(NonZero { count: count.clone() }, &[x]).unwrap();
    let zero = b.scalar(0.0, DType::F32).unwrap();
    let y = b.push1(Broadcast { dims: vec![count.into()] }, &[zero]).unwrap();
    let graph = b.finish([("y", y)]).unwrap();
    let names: Vec<&str> = graph.nodes().map(|(_, n)| n.op.name()).collect();
    assert_eq!(names, ["input", "nonzero", "constant", "broadcast"]);
    assert_eq!(crate::verify(&graph), Ok(()));
}

#[test]
fn shapes_computed_from_sizes_stay_symbolic() {
    let mut b = Builder::new("g");
    let (n, m) = (Dim::symbol("n"), Dim::symbol("m"));
    let x = b.input("x", f32s(&[n.clone(), m.clone(), 6.into()])).unwrap();
    let dims = b.shape(x);
    let shape = b.dims_value(&dims).unwrap();
    let first = b.slice_axis(shape, 0, &Dim::ZERO, &2.into()).unwrap();
    let product = b.reduce(crate::op::reduce::ReduceOp::Prod, first, &[0], true).unwrap();
    let six = b.vector(&[6i64]);
    let target = b.concat(&[product, six], 0).unwrap();
    assert_eq!(b.known(target), Some([n * m, 6.into()].as_slice()));
}

#[test]
fn identities_fold() {
    let mut b = Builder::new("g");
    let x = b.input("x", f32s(&[2.into(), 3.into()])).unwrap();
    let t = b.transpose(x, &[1, 0]).unwrap();
    assert_eq!(b.transpose(t, &[1, 0]).unwrap(), x);
    assert_eq!(b.reshape(x, &[2.into(), 3.into()]).unwrap(), x);
    assert_eq!(b.cast(x, DType::F32).unwrap(), x);
    let flat = b.reshape(x, &[6.into()]).unwrap();
    assert_eq!(b.reshape(flat, &[2.into(), 3.into()]).unwrap(), x);
}

#[test]
fn wrong_uses_are_errors_that_name_the_constraint() {
    let mut b = Builder::new("g");
    let x = b.input("x", f32s(&[2.into(), 3.into()])).unwrap();
    let y = b.input("y", f32s(&[4.into(), 5.into()])).unwrap();
    let message = |r: Result<Value, TypeError>| r.unwrap_err().to_string();
    assert_eq!(
        message(b.push1(Dot::matmul(2), &[x, y])),
        "dot: C4: contracted sizes differ (axis 1 of f32[2, 3], axis 0 of f32[4, 5]): operand 1: expected 3, found 4"
    );
    assert_eq!(
        message(b.binary(BinaryOp::Add, x, y)),
        "add: C2: sizes differ: operand 1: expected [2, 3], found [4, 5]"
    );
    assert_eq!(
        message(b.push1(Reshape { dims: vec![5.into()] }, &[x])),
        "reshape: C2: element counts differ: input [2, 3] has 6, target [5] has 5: operand 0: expected 5, found 6"
    );
    assert!(message(b.input("x", f32s(&[]))).contains("input names must differ"));
    assert!(message(b.sum(x, &[2], false)).contains("C2: axis is out of range"));
    let huge = Dim::constant(1 << 40);
    assert!(message(b.broadcast_to(x, &[huge.clone(), huge, 2.into(), 3.into()])).contains("2^63"));
}

#[test]
fn symbolic_sizes_that_cannot_be_compared_become_checks() {
    let mut b = Builder::new("g");
    let x = b.input("x", f32s(&[Dim::symbol("n")])).unwrap();
    let y = b.input("y", f32s(&[Dim::symbol("m")])).unwrap();
    let z = b.add(x, y).unwrap();
    let slice = Slice { starts: vec![2.into()], sizes: vec![3.into()], steps: vec![1] };
    let z = b.push1(slice, &[z]).unwrap();
    let graph = b.finish([("z", z)]).unwrap();
    assert_eq!(graph.checks().len(), 2);
}
