//! Arrays beyond 2³¹ elements and 4 GiB: index widths that only real sizes show. They need up to 14 GB, and run on demand:
//! `cargo test --release -p rlx-runtime --test large -- --ignored --test-threads 1`.

use rlx_ir::{DType, text};
use rlx_runtime::{Device, Executable, RunOptions, Session, Slots, Tensor};

fn compiled(source: &str) -> Executable {
    let graph = text::parse(source).expect("the graph parses");
    let session = Session::new(Device::cpu()).expect("threads start");
    session.compile(&graph, &Default::default()).expect("it compiles")
}

fn bytes(dtype: DType, dims: [usize; 2], value: u8) -> Tensor {
    let count = dtype.storage_bytes(&dims).expect("the size fits");
    Tensor::from_bytes(dtype, dims, vec![value; count]).expect("as many bytes as the type needs")
}

#[test]
#[ignore = "needs 5 GB"]
fn concatenation_of_two_gibibytes_has_each_half_in_its_place() {
    let executable = compiled(
        r#"rlx 1 graph "g"(%x: i8[32769, 32768], %y: i8[32769, 32768]) {
            %z = concat<axis=1>(%x, %y)
            return "z" = %z
        }"#,
    );
    let (x, y) = (bytes(DType::I8, [32769, 32768], 1), bytes(DType::I8, [32769, 32768], 2));
    let mut slots = Slots::default();
    executable.run_into(&[&x, &y], &mut slots, &RunOptions::default()).expect("it runs");
    let (_, dims, found) = slots.output(0).expect("there is an output");
    assert_eq!(dims, [32769, 65536]);
    assert!(found.chunks_exact(65536).all(|row| {
        let (left, right) = row.split_at(32768);
        left.iter().all(|b| *b == 1) && right.iter().all(|b| *b == 2)
    }));
}

#[test]
#[ignore = "needs 3 GB"]
fn maximum_of_a_view_sees_the_last_of_more_than_two_to_the_31_elements() {
    let executable = compiled(
        r#"rlx 1 graph "g"(%x: u8[32775, 65536]) {
            %v = slice<starts=[0, 7], sizes=[32775, 65529], steps=[1, 1]>(%x)
            %y = reduce_max<axes=[0, 1], keep_dims=false>(%v)
            return "y" = %y
        }"#,
    );
    let mut content = vec![1u8; 32775 * 65536];
    // The greatest is hidden from the view; the greatest of the view is its last element.
    content[6] = 255;
    content[32775 * 65536 - 1] = 200;
    let x = Tensor::from_bytes(DType::U8, [32775, 65536], content).expect("as many bytes as the type needs");
    let mut slots = Slots::default();
    executable.run_into(&[&x], &mut slots, &RunOptions::default()).expect("it runs");
    assert_eq!(slots.output(0).map(|(_, _, bytes)| bytes), Some(&[200u8][..]));
}

#[test]
#[ignore = "needs 14 GB"]
fn softmax_of_six_gigabytes_of_equal_numbers_is_uniform_and_leaves_its_input() {
    let executable = compiled(
        r#"rlx 1 graph "g"(%x: f32[10, 12416, 12416]) {
            %y = softmax<axis=-1>(%x)
            return "y" = %y
        }"#,
    );
    let count = 10 * 12416 * 12416;
    let content: Vec<u8> = 3.0f32.to_le_bytes().repeat(count);
    let x = Tensor::from_bytes(DType::F32, [10, 12416, 12416], content).expect("as many bytes as needed");
    let mut slots = Slots::default();
    executable.run_into(&[&x], &mut slots, &RunOptions::default()).expect("it runs");
    let (_, _, found) = slots.output(0).expect("there is an output");
    let near = |b: &[u8; 4]| (f32::from_le_bytes(*b) * 12416.0 - 1.0).abs() < 1e-5;
    assert!(found.as_chunks::<4>().0.iter().all(near));
    assert!(x.bytes().as_chunks::<4>().0.iter().all(|b| f32::from_le_bytes(*b) == 3.0));
}

#[test]
#[ignore = "needs 3 GB"]
fn test_of_a_view_of_many_rows_writes_its_own_output_only() {
    let executable = compiled(
        r#"rlx 1 graph "g"(%x: f32[1500000, 464]) {
            %v = slice<starts=[0, 4], sizes=[1500000, 46], steps=[1, 1]>(%x)
            %y = is_finite(%v)
            return "y" = %y
        }"#,
    );
    let x = bytes(DType::F32, [1_500_000, 464], 0);
    let mut slots = Slots::default();
    executable.run_into(&[&x], &mut slots, &RunOptions::default()).expect("it runs");
    let (_, dims, found) = slots.output(0).expect("there is an output");
    assert_eq!(dims, [1_500_000, 46]);
    assert!(found.iter().all(|b| *b == 1));
    assert!(x.bytes().iter().all(|b| *b == 0));
}
