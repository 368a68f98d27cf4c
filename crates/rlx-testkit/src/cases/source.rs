//! Cases of where values come from.

use crate::Array;
use crate::case::{Case, FLOATS, INTEGERS, Stage, case, f32s, for_dtypes, for_sizes, i64s, literal, op_case};
use crate::random::Domain;
use rlx_ir::DType;

/// Cases of `input`: binding values to it.
pub(super) fn input() -> Vec<Case> {
    let pass =
        |name: &str, operand: &str| case("input", name, &format!("(%x: {operand}) {{ return \"x\" = %x }}"));
    let mut cases =
        for_dtypes(&[FLOATS, INTEGERS, &[DType::Bool, DType::C64, DType::F8E5M2]].concat(), |dtype| {
            pass("passes_through", &format!("{dtype}[2, n]"))
                .sizes([("n", 3)])
                .random(Domain::Range(0.0, 90.0))
                .formula(|x| x[0].clone())
        });
    cases.extend(for_sizes(16, |n| {
        pass("size", "f32[n, 2]").sizes([("n", n)]).random(Domain::Normal).formula(|x| x[0].clone())
    }));
    cases.extend([
        pass("missing", "f32[2]").fails(Stage::Bind, "\"x\""),
        pass("one_too_many", "f32[2]")
            .inputs([f32s([2], [0.0; 2]), f32s([2], [0.0; 2])])
            .fails(Stage::Bind, "input"),
        pass("of_another_type", "f32[2]")
            .input(i64s([2], [1, 2]))
            .fails(Stage::Bind, "expected f32[2], found i64[2]"),
        pass("of_another_rank", "f32[2]")
            .input(f32s([2, 1], [1.0, 2.0]))
            .fails(Stage::Bind, "expected f32[2], found f32[2, 1]"),
        pass("of_another_size", "f32[2]").input(f32s([3], [0.0; 3])).fails(Stage::Bind, "\"x\""),
        pass("one_symbol_two_sizes", "f32[n, n]").input(f32s([2, 3], [0.0; 6])).fails(Stage::Bind, "`n`"),
        pass("expression_that_does_not_hold", "f32[n, 2*n]")
            .input(f32s([2, 3], [0.0; 6]))
            .fails(Stage::Bind, "\"x\""),
        pass("expression_that_holds", "f32[n, 2*n]")
            .sizes([("n", 2)])
            .random(Domain::Normal)
            .formula(|x| x[0].clone()),
        case("input", "same_name_twice", "(%x \"a\": f32[2], %y \"a\": f32[2]) { return }")
            .fails(Stage::Build, "input: C2"),
        case("input", "sizes_that_overflow", "(%x: f32[4000000000, 4000000000]) { return }")
            .fails(Stage::Build, "2^63"),
    ]);
    cases
}

/// Cases of `constant`.
pub(super) fn constant() -> Vec<Case> {
    let given = |name: &str, literal: &str| {
        case("constant", name, &format!("() {{ %c = constant<value={literal}>() return \"c\" = %c }}"))
    };
    vec![
        given("floats", "f32[4] [1.5, -0.0, nan, -inf]")
            .values([f32s([4], [1.5, -0.0, f32::NAN, f32::NEG_INFINITY])]),
        given("integers", "i64[2] [-9223372036854775808, 9223372036854775807]")
            .values([i64s([2], [i64::MIN, i64::MAX])]),
        given("half", "f16[2] [0.1, 65504.0]").values([literal(DType::F16, [2], [0.1, 65504.0])]),
        given("bytes", "c64[1] \"x0000803f00000040\"").values([literal(DType::C64, [1, 2], [1.0, 2.0])]),
        given("empty", "f32[0, 3] []").values([f32s([0, 3], [])]),
        given("scalar", "f64[] [0.5]").formula(|_| Array::scalar(0.5)),
        given("too_few_elements", "f32[2] [1.0]").fails(Stage::Build, "needs 8 bytes, found 4"),
        given("unknown_size", "f32[n] [1.0]").fails(Stage::Build, "constant sizes"),
    ]
}

/// Cases of `iota`.
pub(super) fn iota() -> Vec<Case> {
    let counted = |start: f64, step: f64, axis: usize, dims: Vec<usize>| {
        move |_: &[Array]| Array::from_fn(dims.clone(), |i| step.mul_add(i[axis] as f64, start))
    };
    let mut cases = for_dtypes(&[FLOATS, INTEGERS, &[DType::F8E4M3FN]].concat(), |dtype| {
        op_case("iota", "type", &format!("ty={dtype}[3, 4], axis=1, start=2.0, step=3.0"), "")
            .formula(counted(2.0, 3.0, 1, vec![3, 4]))
    });
    cases.extend(for_dtypes(FLOATS, |dtype| {
        // Each element is computed exactly and rounded once: no error adds up from neighbour to neighbour.
        op_case("iota", "fractions", &format!("ty={dtype}[100], axis=0, start=0.1, step=0.1"), "")
            .formula(counted(0.1, 0.1, 0, vec![100]))
    }));
    cases.extend([
        op_case("iota", "first_axis", "ty=i64[3, 4], axis=0, start=0.0, step=-1.0", "").formula(counted(
            0.0,
            -1.0,
            0,
            vec![3, 4],
        )),
        op_case("iota", "wraps", "ty=u8[4], axis=0, start=254.0, step=1.0", "").values([literal(
            DType::U8,
            [4],
            [254.0, 255.0, 0.0, 1.0],
        )]),
        op_case("iota", "empty", "ty=f32[0], axis=0, start=0.0, step=1.0", "")
            .formula(|_| Array::new([0], [])),
        case(
            "iota",
            "as_long_as_an_input",
            "(%x: f32[n]) { %i = iota<ty=i64[n], axis=0, start=0.0, step=1.0>() return \"i\" = %i }",
        )
        .sizes([("n", 5)])
        .random(Domain::Normal)
        .formula(counted(0.0, 1.0, 0, vec![5])),
        op_case("iota", "beyond_24_bits", "ty=i32[3], axis=0, start=16777216.0, step=1.0", "")
            .formula(counted(16777216.0, 1.0, 0, vec![3])),
        op_case("iota", "bools", "ty=bool[4], axis=0, start=0.0, step=1.0", "").fails_build("C1"),
        op_case("iota", "scalar", "ty=f32[], axis=0, start=0.0, step=1.0", "").fails_build("C2"),
        op_case("iota", "fractions_of_integers", "ty=i32[4], axis=0, start=0.5, step=1.0", "")
            .fails_build("C3"),
    ]);
    cases
}

/// Cases of `dim_value`.
pub(super) fn dim_value() -> Vec<Case> {
    vec![
        case(
            "dim_value",
            "expression",
            "(%x: f32[n, m]) { %v = dim_value<dim=2*n*m - floor_div(m, 2) + 1>() return \"v\" = %v }",
        )
        .sizes([("n", 3), ("m", 5)])
        .random(Domain::Normal)
        .values([i64s([], [29])]),
        case("dim_value", "constant", "() { %v = dim_value<dim=7>() return \"v\" = %v }")
            .values([i64s([], [7])]),
        case("dim_value", "unbound", "() { %v = dim_value<dim=k>() return \"v\" = %v }")
            .fails(Stage::Run, "`k` is not bound"),
        // A shape, one element of it, and a reshape by it: what exporters write.
        case(
            "dim_value",
            "shape_gather_reshape",
            "(%x: f32[n, m]) {
            %n = dim_value<dim=n>()
            %m = dim_value<dim=m>()
            %nv = reshape<dims=[1]>(%n)
            %mv = reshape<dims=[1]>(%m)
            %shape = concat<axis=0>(%nv, %mv)
            %one = slice<starts=[1], sizes=[1], steps=[1]>(%shape)
            %k = reshape<dims=[]>(%one)
            %b = bind_dim<symbol=k, min=0>(%k)
            %y = reshape<dims=[k, n]>(%x)
            return \"y\" = %y, \"k\" = %b
        }",
        )
        .sizes([("n", 2), ("m", 3)])
        .random(Domain::Normal)
        .formulas(|x| vec![x[0].reshape([3, 2]), Array::scalar(3.0)]),
    ]
}

/// Cases of `bind_dim`.
pub(super) fn bind_dim() -> Vec<Case> {
    let graph = "(%k: i64[], %x: f32[1]) {
        %b = bind_dim<symbol=s, min=1>(%k)
        %y = broadcast<dims=[s]>(%x)
        return \"b\" = %b, \"y\" = %y
    }";
    vec![
        case("bind_dim", "expand_by_a_computed_size", graph)
            .inputs([i64s([], [3]), f32s([1], [2.0])])
            .values([i64s([], [3]), f32s([3], [2.0; 3])]),
        case("bind_dim", "at_the_least", graph)
            .inputs([i64s([], [1]), f32s([1], [2.0])])
            .values([i64s([], [1]), f32s([1], [2.0])]),
        case("bind_dim", "below_the_least", graph)
            .inputs([i64s([], [0]), f32s([1], [2.0])])
            .fails(Stage::Run, "at least 1"),
        case("bind_dim", "negative", graph)
            .inputs([i64s([], [-5]), f32s([1], [2.0])])
            .fails(Stage::Run, "at least 1"),
        case("bind_dim", "expand_to_more_than_memory", graph)
            .inputs([i64s([], [1 << 40]), f32s([1], [2.0])])
            .fails(Stage::Run, "bytes"),
        op_case("bind_dim", "float", "symbol=s, min=0", "f32[]").fails_build("C1"),
        op_case("bind_dim", "vector", "symbol=s, min=0", "i64[1]").fails_build("C2"),
    ]
}
