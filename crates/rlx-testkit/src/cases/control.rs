//! Cases of control flow.

use crate::Array;
use crate::case::{Case, Stage, bools, case, f32s, i64s, op_case};
use crate::random::Domain;

const BRANCHES: &str = "then_branch=graph \"then\"(%a: f32[n]) { %r = neg(%a) return \"r\" = %r },
    else_branch=graph \"else\"(%a: f32[n]) { %r = abs(%a) return \"r\" = %r }";

/// Cases of `if`.
pub(super) fn conditional() -> Vec<Case> {
    let graph = format!(
        "(%c: bool[], %x: f32[n]) {{ %y = if<{BRANCHES}, results=[f32[n]]>(%c, %x) return \"y\" = %y }}"
    );
    // One branch gives half of what the other gives, so that the result's size is a fresh symbol.
    let sized = "(%c: bool[], %x: f32[6]) {
        %y = if<then_branch=graph \"then\"(%a: f32[6]) { return \"r\" = %a },
            else_branch=graph \"else\"(%a: f32[6]) { %r = slice<starts=[0], sizes=[3], steps=[2]>(%a) return \"r\" = %r },
            results=[f32[k]]>(%c, %x)
        %n = dim_value<dim=k>()
        %z = neg(%y)
        return \"z\" = %z, \"n\" = %n
    }";
    // The branch not taken would divide by zero.
    let guarded = "(%c: bool[], %x: i32[1], %y: i32[1]) {
        %z = if<then_branch=graph \"then\"(%a: i32[1], %b: i32[1]) { %r = div(%a, %b) return \"r\" = %r },
            else_branch=graph \"else\"(%a: i32[1], %b: i32[1]) { return \"r\" = %b },
            results=[i32[1]]>(%c, %x, %y)
        return \"z\" = %z
    }";
    // A size is compared and branched on.
    let by_size = format!(
        "(%x: f32[n]) {{
        %n = dim_value<dim=n>()
        %three = constant<value=i64[] [3]>()
        %c = gt(%n, %three)
        %y = if<{BRANCHES}, results=[f32[n]]>(%c, %x)
        return \"y\" = %y
    }}"
    );
    let x = f32s([2], [-1.0, 2.0]);
    let six = f32s([6], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    vec![
        case("if", "true", &graph).inputs([bools([], [true]), x.clone()]).values([f32s([2], [1.0, -2.0])]),
        case("if", "false", &graph).inputs([bools([], [false]), x]).values([f32s([2], [1.0, 2.0])]),
        case("if", "size_of_the_longer_branch", sized)
            .inputs([bools([], [true]), six.clone()])
            .values([f32s([6], [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]), i64s([], [6])]),
        case("if", "size_of_the_shorter_branch", sized)
            .inputs([bools([], [false]), six])
            .values([f32s([3], [-1.0, -3.0, -5.0]), i64s([], [3])]),
        case("if", "branch_not_taken_does_not_run", guarded)
            .inputs([bools([], [false]), crate::i32s([1], [1]), crate::i32s([1], [0])])
            .values([crate::i32s([1], [0])])
            .without_views(),
        case("if", "branch_taken_fails", guarded)
            .inputs([bools([], [true]), crate::i32s([1], [1]), crate::i32s([1], [0])])
            .fails(Stage::Run, "division by zero"),
        case("if", "on_a_size_small", &by_size).input(f32s([2], [-1.0, 2.0])).values([f32s([2], [1.0, 2.0])]),
        case("if", "on_a_size_large", &by_size)
            .input(f32s([4], [-1.0, 2.0, 0.5, 3.0]))
            .values([f32s([4], [1.0, -2.0, -0.5, -3.0])]),
        op_case("if", "number_as_condition", &format!("{BRANCHES}, results=[f32[n]]"), "f32[], f32[n]")
            .fails_build("C1"),
        op_case("if", "vector_as_condition", &format!("{BRANCHES}, results=[f32[n]]"), "bool[1], f32[n]")
            .fails_build("C1"),
        op_case(
            "if",
            "branch_takes_another_type",
            &format!("{BRANCHES}, results=[f32[n]]"),
            "bool[], i32[n]",
        )
        .fails_build("C2"),
        op_case(
            "if",
            "branch_takes_fewer",
            &format!("{BRANCHES}, results=[f32[n]]"),
            "bool[], f32[n], f32[n]",
        )
        .fails_build("C2"),
        op_case("if", "results_of_another_type", &format!("{BRANCHES}, results=[f64[n]]"), "bool[], f32[n]")
            .fails_build("C3"),
        op_case("if", "too_many_results", &format!("{BRANCHES}, results=[f32[n], f32[n]]"), "bool[], f32[n]")
            .fails_build("C3"),
    ]
}

/// Doubles a value until it passes a limit, and stacks what it was.
const DOUBLING: &str = "body=graph \"body\"(%i: i64[], %v: f32[], %limit: f32[]) {
        %w = add(%v, %v)
        %c = lt(%w, %limit)
        return \"c\" = %c, \"w\" = %w, \"was\" = %v
    }, carried=1, count=k, results=[f32[], f32[k]]";

/// Cases of `while`.
pub(super) fn loops() -> Vec<Case> {
    let graph = format!(
        "(%most: i64[], %c: bool[], %v: f32[], %limit: f32[]) {{
        %y = while<{DOUBLING}>(%most, %c, %v, %limit)
        %k = dim_value<dim=k>()
        return \"v\" = %y.0, \"was\" = %y.1, \"trips\" = %k
    }}"
    );
    let run = |name: &str, most: i64, first: bool, limit: f32, last: f32, was: &[f32]| {
        case("while", name, &graph)
            .inputs([i64s([], [most]), bools([], [first]), f32s([], [1.0]), f32s([], [limit])])
            .values([f32s([], [last]), f32s([was.len()], was), i64s([], [was.len() as i64])])
    };
    // Carried values of two sizes, swapped each trip would change type; here they keep theirs.
    let counting = "(%most: i64[], %c: bool[], %x: f32[n]) {
        %y = while<body=graph \"body\"(%i: i64[], %s: f32[n]) {
            %f = cast<to=f32>(%i)
            %b = broadcast<dims=[n]>(%f)
            %t = add(%s, %b)
            %c = constant<value=bool[] [true]>()
            return \"c\" = %c, \"t\" = %t
        }, carried=1, count=k, results=[f32[n]]>(%most, %c, %x)
        return \"y\" = %y
    }";
    vec![
        run("until_the_condition_fails", -1, true, 10.0, 16.0, &[1.0, 2.0, 4.0, 8.0]),
        run("until_the_bound", 2, true, 1e9, 4.0, &[1.0, 2.0]),
        run("first_condition_false", -1, false, 10.0, 1.0, &[]),
        run("bound_of_zero", 0, true, 10.0, 1.0, &[]),
        case("while", "trip_number_and_symbolic_sizes", counting)
            .inputs([i64s([], [4]), bools([], [true]), f32s([2], [0.5, 1.0])])
            .values([f32s([2], [6.5, 7.0])]),
        op_case("while", "float_bound", DOUBLING, "f32[], bool[], f32[], f32[]").fails_build("C1"),
        op_case("while", "number_as_condition", DOUBLING, "i64[], i64[], f32[], f32[]").fails_build("C1"),
        op_case("while", "body_takes_another_type", DOUBLING, "i64[], bool[], f64[], f32[]")
            .fails_build("C2"),
        op_case(
            "while",
            "too_few_operands",
            &DOUBLING.replace("carried=1", "carried=5"),
            "i64[], bool[], f32[], f32[]",
        )
        .fails_build("C0"),
        op_case(
            "while",
            "carried_value_changes_its_type",
            &DOUBLING.replace("\"w\" = %w, \"was\" = %v", "\"w\" = %c, \"was\" = %v"),
            "i64[], bool[], f32[], f32[]",
        )
        .fails_build("C3"),
        op_case(
            "while",
            "results_of_another_type",
            &DOUBLING.replace("results=[f32[], f32[k]]", "results=[f32[], f64[k]]"),
            "i64[], bool[], f32[], f32[]",
        )
        .fails_build("C4"),
    ]
}

/// Adds each row to a running sum, and stacks sums and scaled rows.
const RUNNING: &str = "body=graph \"body\"(%s: f32[3], %row: f32[3], %w: f32[]) {
        %t = add(%s, %row)
        %b = broadcast<dims=[3]>(%w)
        %u = mul(%row, %b)
        return \"s\" = %t, \"t\" = %t, \"u\" = %u
    }, carried=1, scanned=1";

/// Cases of `scan`.
pub(super) fn scan() -> Vec<Case> {
    let running = |reverse: bool| {
        move |x: &[Array]| {
            let (rows, n) = (&x[1], x[1].dims[0]);
            let mut sum = x[0].data.clone();
            let mut sums = vec![0.0; n * 3];
            for step in 0..n {
                let row = if reverse { n - 1 - step } else { step };
                for (k, total) in sum.iter_mut().enumerate() {
                    *total += rows.at(&[row, k]);
                    sums[row * 3 + k] = *total;
                }
            }
            vec![Array::new([3], sum), Array::new([n, 3], sums), rows.map(|v| v * x[2].data[0])]
        }
    };
    let mut cases = Vec::new();
    for reverse in [false, true] {
        for n in [0, 1, 5] {
            cases.push(
                op_case(
                    "scan",
                    &format!("running_sum_{n}_{}", if reverse { "reverse" } else { "forward" }),
                    &format!("{RUNNING}, length=n, reverse={reverse}"),
                    "f32[3], f32[n, 3], f32[]",
                )
                .sizes([("n", n)])
                .random(Domain::Normal)
                .formulas(running(reverse))
                .summed(n + 1),
            );
        }
    }
    let nothing_scanned = "body=graph \"body\"(%v: i32[]) {
        %w = add(%v, %v)
        return \"w\" = %w, \"was\" = %v
    }, carried=1, scanned=0, length=4";
    cases.extend([
        op_case("scan", "nothing_scanned", nothing_scanned, "i32[]").input(crate::i32s([], [3])).values([crate::i32s([], [48]), crate::i32s([4], [3, 6, 12, 24])]),
        op_case("scan", "body_takes_another_type", &format!("{RUNNING}, length=5"), "f32[3], f64[5, 3], f32[]").fails_build("C2"),
        op_case("scan", "length_differs", &format!("{RUNNING}, length=4"), "f32[3], f32[5, 3], f32[]").fails_build("C4"),
        op_case("scan", "symbolic_length_differs", &format!("{RUNNING}, length=4"), "f32[3], f32[n, 3], f32[]").sizes([("n", 3)]).random(Domain::Normal).fails(Stage::Run, "C4"),
        op_case("scan", "scalar_scanned", "body=graph \"b\"(%x: f32[]) { return \"x\" = %x }, carried=0, scanned=1, length=2", "f32[]").fails_build("C4"),
        op_case("scan", "negative_length", &nothing_scanned.replace("length=4", "length=-1"), "i32[]").fails_build("C4"),
        op_case("scan", "too_few_operands", &nothing_scanned.replace("scanned=0", "scanned=3"), "i32[]").fails_build("C0"),
        op_case("scan", "carried_value_changes_its_type", "body=graph \"b\"(%x: f32[]) { %y = cast<to=f64>(%x) return \"y\" = %y }, carried=1, scanned=0, length=2", "f32[]").fails_build("C3"),
    ]);
    cases
}

/// Cases of `call`.
pub(super) fn call() -> Vec<Case> {
    let body = "body=graph \"body\"(%a: f32[n], %b: f32[n]) { %s = add(%a, %b) %d = sub(%a, %b) return \"s\" = %s, \"d\" = %d }";
    let nested = "body=graph \"outer\"(%a: f32[n]) {
        %r = call<body=graph \"inner\"(%b: f32[n]) { %m = neg(%b) return \"m\" = %m }>(%a)
        return \"r\" = %r
    }";
    vec![
        op_case("call", "two_results", body, "f32[n], f32[n]")
            .sizes([("n", 3)])
            .random(Domain::Normal)
            .formulas(|x| vec![x[0].zip(&x[1], |a, b| a + b), x[0].zip(&x[1], |a, b| a - b)]),
        op_case("call", "nested", nested, "f32[n]")
            .sizes([("n", 3)])
            .random(Domain::Normal)
            .formula(|x| x[0].map(|v| -v)),
        op_case("call", "too_few_operands", body, "f32[n]").fails_build("C2"),
        op_case("call", "types_differ", body, "f32[n], f64[n]").fails_build("C2"),
        op_case("call", "sizes_differ", &body.replace("[n]", "[4]"), "f32[4], f32[3]").fails_build("C2"),
    ]
}
