//! Cases of windows: reductions over them, and the gradients of the extremes.

use crate::Array;
use crate::array::for_each_index;
use crate::case::{Case, FLOATS, Stage, f32s, for_dtypes, for_sizes, literal, op_case};
use crate::random::Domain;
use rlx_ir::DType;

/// A window's attributes.
#[derive(Clone, Debug)]
struct Window {
    window: Vec<usize>,
    strides: Vec<usize>,
    dilations: Vec<usize>,
    padding: Vec<(usize, usize)>,
}

impl Window {
    fn new(window: &[usize], strides: &[usize], dilations: &[usize], padding: &[(usize, usize)]) -> Window {
        Window {
            window: window.to_vec(),
            strides: strides.to_vec(),
            dilations: dilations.to_vec(),
            padding: padding.to_vec(),
        }
    }

    fn attributes(&self) -> String {
        let Window { window, strides, dilations, padding } = self;
        format!("window={window:?}, strides={strides:?}, dilations={dilations:?}, padding={padding:?}")
    }

    fn sizes(&self, dims: &[usize]) -> Vec<usize> {
        (0..dims.len())
            .map(|i| {
                (dims[i] + self.padding[i].0 + self.padding[i].1
                    - (self.window[i] - 1) * self.dilations[i]
                    - 1)
                    / self.strides[i]
                    + 1
            })
            .collect()
    }

    /// The positions in an array of sizes `dims` that the window at `index` covers; `None` for padding.
    fn covers(&self, dims: &[usize], index: &[usize]) -> Vec<Option<Vec<usize>>> {
        let mut positions = Vec::new();
        for_each_index(&self.window, |inner| {
            let at = (0..dims.len()).map(|i| {
                (index[i] * self.strides[i] + inner[i] * self.dilations[i])
                    .checked_sub(self.padding[i].0)
                    .filter(|p| *p < dims[i])
            });
            positions.push(at.collect());
        });
        positions
    }

    fn reduce(&self, x: &Array, padding: f64, f: fn(f64, f64) -> f64, start: f64) -> Array {
        Array::from_fn(self.sizes(&x.dims), |index| {
            self.covers(&x.dims, index)
                .iter()
                .map(|at| at.as_ref().map_or(padding, |at| x.at(at)))
                .fold(start, f)
        })
    }

    /// Each window's gradient goes to its first element that no other exceeds.
    fn gradient(&self, x: &Array, dy: &Array, better: fn(f64, f64) -> bool) -> Array {
        let mut dx = x.map(|_| 0.0);
        for_each_index(&self.sizes(&x.dims), |index| {
            let mut best: Option<Vec<usize>> = None;
            for at in self.covers(&x.dims, index).into_iter().flatten() {
                if best.as_ref().is_none_or(|b| better(x.at(&at), x.at(b))) {
                    best = Some(at);
                }
            }
            if let Some(at) = best {
                let offset = dx.offset(&at);
                dx.data[offset] += dy.at(index);
            }
        });
        dx
    }
}

fn layouts() -> Vec<(&'static str, Window, Vec<usize>)> {
    vec![
        ("plain", Window::new(&[1, 2, 3], &[1, 1, 1], &[1, 1, 1], &[(0, 0), (0, 0), (0, 0)]), vec![2, 4, 5]),
        (
            "strides_differ",
            Window::new(&[1, 2, 3], &[1, 2, 3], &[1, 1, 1], &[(0, 0), (0, 0), (0, 0)]),
            vec![2, 5, 9],
        ),
        (
            "padding_differs_on_each_side",
            Window::new(&[3, 2], &[2, 1], &[1, 1], &[(2, 1), (0, 1)]),
            vec![5, 4],
        ),
        ("dilated", Window::new(&[2, 3], &[1, 1], &[3, 2], &[(0, 0), (1, 1)]), vec![6, 7]),
        ("all_at_once", Window::new(&[3], &[2], &[2], &[(3, 2)]), vec![8]),
        ("whole", Window::new(&[4, 5], &[1, 1], &[1, 1], &[(0, 0), (0, 0)]), vec![4, 5]),
    ]
}

/// Cases of the reductions over windows.
pub(super) fn reduce_window() -> Vec<Case> {
    let max = |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) };
    let min = |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) };
    type Function = (&'static str, fn(f64, f64) -> f64, f64, f64, bool);
    // Name, combination, its start, the usual padding, and whether it is exact.
    let functions: [Function; 4] = [
        ("reduce_window_sum", |a, b| a + b, 0.0, 0.0, false),
        ("reduce_window_prod", |a, b| a * b, 1.0, 1.0, false),
        ("reduce_window_max", max, f64::NEG_INFINITY, f64::NEG_INFINITY, true),
        ("reduce_window_min", min, f64::INFINITY, f64::INFINITY, true),
    ];
    let mut cases = Vec::new();
    for (op, f, start, padding, exact) in functions {
        for (name, window, dims) in layouts() {
            let terms = window.window.iter().product();
            let judged = |case: Case| if exact { case } else { case.summed(terms) };
            let formula = {
                let window = window.clone();
                move |x: &[Array]| window.reduce(&x[0], x[1].data[0], f, start)
            };
            cases.extend(for_dtypes(FLOATS, |dtype| {
                judged(
                    op_case(op, name, &window.attributes(), &format!("{dtype}{dims:?}, {dtype}[]"))
                        .random_input(Domain::AwayFromZero(0.5, 1.5))
                        .input(literal(dtype, [], [padding]))
                        .formula(formula.clone()),
                )
            }));
            cases.extend(for_dtypes(&[DType::I32, DType::I64, DType::U8, DType::I8], |dtype| {
                op_case(op, name, &window.attributes(), &format!("{dtype}{dims:?}, {dtype}[]"))
                    .random_input(Domain::Whole(0, if op == "reduce_window_prod" { 1 } else { 9 }))
                    .input(literal(dtype, [], [padding.clamp(0.0, 1.0)]))
                    .formula(formula.clone())
            }));
            cases.push(judged(
                op_case(op, &format!("{name}_special"), &window.attributes(), &format!("f32{dims:?}, f32[]"))
                    .random_input(Domain::Range(0.5, 1.5).special())
                    .input(f32s([], [padding as f32]))
                    .formula(formula.clone()),
            ));
            // A padding value that is not the neutral one.
            cases.push(judged(
                op_case(
                    op,
                    &format!("{name}_padded_by_2"),
                    &window.attributes(),
                    &format!("f32{dims:?}, f32[]"),
                )
                .random_input(Domain::AwayFromZero(0.5, 1.5))
                .input(f32s([], [2.0]))
                .formula(formula),
            ));
        }
        let row = Window::new(&[3], &[1], &[1], &[(1, 1)]);
        cases.extend(for_sizes(16, |n| {
            let window = row.clone();
            let case = op_case(op, "size", &row.attributes(), "f32[n], f32[]")
                .sizes([("n", n)])
                .random_input(Domain::Normal)
                .input(f32s([], [padding as f32]));
            // No window fits the two padding elements alone; 0 windows is right for n = 0.
            let case = case.formula(move |x| {
                if x[0].dims[0] == 0 {
                    Array::new([0], [])
                } else {
                    window.reduce(&x[0], x[1].data[0], f, start)
                }
            });
            if exact { case } else { case.summed(3) }
        }));
        let wrong = |name: &str, window: &str, operands: &str, label: &str| {
            op_case(op, name, window, operands).fails_build(label)
        };
        let good = Window::new(&[2], &[1], &[1], &[(0, 0)]).attributes();
        cases.extend([
            wrong("bool", &good, "bool[4], bool[]", "C1"),
            wrong("padding_value_with_an_axis", &good, "f32[4], f32[1]", "C2"),
            wrong("padding_value_of_another_type", &good, "f32[4], f16[]", "C2"),
            wrong(
                "window_of_too_many_axes",
                "window=[2, 2], strides=[1], dilations=[1], padding=[(0, 0)]",
                "f32[4], f32[]",
                "C3",
            ),
            wrong(
                "stride_zero",
                "window=[2], strides=[0], dilations=[1], padding=[(0, 0)]",
                "f32[4], f32[]",
                "C4",
            ),
            wrong(
                "dilation_zero",
                "window=[2], strides=[1], dilations=[0], padding=[(0, 0)]",
                "f32[4], f32[]",
                "C4",
            ),
            wrong(
                "empty_window",
                "window=[0], strides=[1], dilations=[1], padding=[(0, 0)]",
                "f32[4], f32[]",
                "C4",
            ),
            wrong(
                "window_larger_than_the_axis",
                "window=[7], strides=[1], dilations=[1], padding=[(1, 0)]",
                "f32[4], f32[]",
                "C5",
            ),
            op_case(
                op,
                "symbolic_window_larger_than_the_axis",
                "window=[7], strides=[1], dilations=[1], padding=[(0, 0)]",
                "f32[n], f32[]",
            )
            .sizes([("n", 3)])
            .random(Domain::Normal)
            .fails(Stage::Run, "C5"),
        ]);
    }
    cases
}

/// Cases of the gradients of extremes over windows.
pub(super) fn reduce_window_grad() -> Vec<Case> {
    let mut cases = Vec::new();
    for (op, better) in [
        ("reduce_window_max_grad", (|a, b| a > b) as fn(f64, f64) -> bool),
        ("reduce_window_min_grad", |a, b| a < b),
    ] {
        for (name, window, dims) in layouts() {
            let result = window.sizes(&dims);
            for (kind, domain) in [("distinct", Domain::Normal), ("ties", Domain::Whole(0, 1))] {
                let window = window.clone();
                cases.extend(for_dtypes(FLOATS, |dtype| {
                    let window = window.clone();
                    op_case(
                        op,
                        &format!("{name}_{kind}"),
                        &window.attributes(),
                        &format!("{dtype}{dims:?}, {dtype}{result:?}"),
                    )
                    .random_input(domain.clone())
                    .random_input(Domain::Normal)
                    .formula(move |x| window.gradient(&x[0], &x[1], better))
                    .accumulated(20)
                }));
            }
        }
        let good = Window::new(&[2], &[1], &[1], &[(0, 0)]).attributes();
        cases.extend([
            op_case(
                op,
                "padding_receives_nothing",
                "window=[2], strides=[1], dilations=[1], padding=[(1, 1)]",
                "f32[2], f32[3]",
            )
            .inputs([f32s([2], [-5.0, -4.0]), f32s([3], [1.0, 10.0, 100.0])])
            .formula(move |x| Window::new(&[2], &[1], &[1], &[(1, 1)]).gradient(&x[0], &x[1], better)),
            op_case(op, "integers", &good, "i32[4], i32[3]").fails_build("C1"),
            op_case(op, "types_differ", &good, "f32[4], f16[3]").fails_build("C1"),
            op_case(op, "sizes_differ", &good, "f32[4], f32[4]").fails_build("C2"),
            op_case(
                op,
                "too_many_strides",
                "window=[2], strides=[1, 1], dilations=[1], padding=[(0, 0)]",
                "f32[4], f32[3]",
            )
            .fails_build("C3"),
            op_case(
                op,
                "stride_zero",
                "window=[2], strides=[0], dilations=[1], padding=[(0, 0)]",
                "f32[4], f32[3]",
            )
            .fails_build("C4"),
            op_case(
                op,
                "window_larger_than_the_axis",
                "window=[7], strides=[1], dilations=[1], padding=[(0, 0)]",
                "f32[4], f32[3]",
            )
            .fails_build("C5"),
        ]);
    }
    cases
}
