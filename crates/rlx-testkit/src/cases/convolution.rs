//! Cases of convolutions. Recorded ones by scipy, numpy in f64, onnxruntime, onnx and PyTorch.

use crate::Array;
use crate::array::for_each_index;
use crate::case::{Case, Cost, FLOATS, case, f32s, for_dtypes, op_case};
use crate::golden::{golden, symbolic_golden};
use crate::random::Domain;

const RECORDED: &str = include_str!("../../golden/convolution.case");

/// What PyTorch gives; recorded by `references/cases/pytorch.py`.
const PYTORCH: &str = include_str!("../../golden/pytorch/convolution.case");

fn recorded(op: &str) -> Vec<Case> {
    [golden(RECORDED, op), symbolic_golden(RECORDED, op)].concat()
}

/// A convolution's attributes.
#[derive(Clone, Debug)]
struct Conv {
    strides: Vec<i64>,
    padding: Vec<(i64, i64)>,
    lhs_dilation: Vec<i64>,
    rhs_dilation: Vec<i64>,
    groups: usize,
}

impl Conv {
    fn plain(axes: usize) -> Conv {
        Conv {
            strides: vec![1; axes],
            padding: vec![(0, 0); axes],
            lhs_dilation: vec![1; axes],
            rhs_dilation: vec![1; axes],
            groups: 1,
        }
    }

    fn attributes(&self) -> String {
        let Conv { strides, padding, lhs_dilation, rhs_dilation, groups } = self;
        format!(
            "strides={strides:?}, padding={padding:?}, lhs_dilation={lhs_dilation:?}, rhs_dilation={rhs_dilation:?}, groups={groups}"
        )
    }

    /// The definition, index by index: an input position that falls between dilated elements or outside counts as 0.
    fn apply(&self, x: &[Array]) -> Array {
        let (x, w) = (&x[0], &x[1]);
        let axes = self.strides.len();
        let size = |axis: usize| {
            let (n, k) = (x.dims[axis + 2] as i64, w.dims[axis + 2] as i64);
            let dilated = if n == 0 { 0 } else { (n - 1) * self.lhs_dilation[axis] + 1 };
            let room = dilated + self.padding[axis].0 + self.padding[axis].1
                - ((k - 1) * self.rhs_dilation[axis] + 1);
            (room.div_euclid(self.strides[axis]) + 1) as usize
        };
        let (out_channels, group_channels) = (w.dims[0], w.dims[1]);
        let dims: Vec<usize> = [x.dims[0], out_channels].into_iter().chain((0..axes).map(size)).collect();
        let window: Vec<usize> = std::iter::once(group_channels).chain(w.dims[2..].iter().copied()).collect();
        Array::from_fn(dims, |index| {
            let first_channel = index[1] / (out_channels / self.groups) * group_channels;
            let mut sum = 0.0;
            for_each_index(&window, |inner| {
                let mut at = vec![index[0], first_channel + inner[0]];
                for axis in 0..axes {
                    let position = index[axis + 2] as i64 * self.strides[axis]
                        + inner[axis + 1] as i64 * self.rhs_dilation[axis]
                        - self.padding[axis].0;
                    let step = self.lhs_dilation[axis];
                    if position < 0 || position % step != 0 || position / step >= x.dims[axis + 2] as i64 {
                        return;
                    }
                    at.push((position / step) as usize);
                }
                let kernel: Vec<usize> = std::iter::once(index[1]).chain(inner.iter().copied()).collect();
                sum += x.at(&at) * w.at(&kernel);
            });
            sum
        })
    }
}

fn conv_case(name: &str, conv: &Conv, x: &str, w: &str, terms: usize) -> Case {
    let formula = conv.clone();
    op_case("conv", name, &conv.attributes(), &format!("{x}, {w}"))
        .random(Domain::Normal)
        .formula(move |x| formula.apply(x))
        .summed(terms)
}

/// Cases of `conv`.
pub(super) fn conv() -> Vec<Case> {
    let plain = Conv::plain;
    let mut cases = Vec::new();
    let layouts = [
        ("one_axis", plain(1), [2, 3, 9].as_slice(), [4, 3, 3].as_slice()),
        ("two_axes", plain(2), &[2, 3, 6, 5], &[4, 3, 3, 2]),
        (
            "three_axes_padded",
            Conv { padding: vec![(1, 1); 3], ..plain(3) },
            &[1, 2, 3, 4, 3],
            &[2, 2, 3, 3, 3],
        ),
        ("no_axes", plain(0), &[2, 3], &[4, 3]),
        ("strides_differ", Conv { strides: vec![2, 3], ..plain(2) }, &[1, 2, 7, 8], &[2, 2, 3, 2]),
        (
            "padding_differs_on_each_side",
            Conv { padding: vec![(0, 2), (3, 1)], ..plain(2) },
            &[1, 2, 4, 3],
            &[2, 2, 3, 3],
        ),
        ("negative_padding_crops", Conv { padding: vec![(-1, -2)], ..plain(1) }, &[1, 1, 9], &[1, 1, 3]),
        ("kernel_dilation", Conv { rhs_dilation: vec![2, 3], ..plain(2) }, &[1, 2, 7, 8], &[2, 2, 3, 2]),
        (
            "input_dilation",
            Conv { lhs_dilation: vec![3, 2], padding: vec![(2, 3), (1, 1)], ..plain(2) },
            &[1, 2, 3, 4],
            &[2, 2, 3, 2],
        ),
        (
            "all_at_once",
            Conv {
                strides: vec![2],
                padding: vec![(2, 1)],
                lhs_dilation: vec![3],
                rhs_dilation: vec![2],
                groups: 2,
            },
            &[2, 4, 5],
            &[6, 2, 3],
        ),
        ("groups", Conv { groups: 3, ..plain(1) }, &[2, 6, 5], &[9, 2, 2]),
        ("depthwise", Conv { groups: 4, padding: vec![(1, 1); 2], ..plain(2) }, &[2, 4, 5, 5], &[4, 1, 3, 3]),
        ("kernel_as_large_as_the_input", plain(2), &[1, 2, 3, 4], &[2, 2, 3, 4]),
    ];
    for (name, conv, x, w) in &layouts {
        let terms = w[1..].iter().product();
        cases.extend(for_dtypes(FLOATS, |dtype| {
            conv_case(name, conv, &format!("{dtype}{x:?}"), &format!("{dtype}{w:?}"), terms)
        }));
        cases.push(
            op_case("conv", &format!("{name}_i32"), &conv.attributes(), &format!("i32{x:?}, i32{w:?}"))
                .random(Domain::Whole(-9, 9))
                .formula({
                    let conv = conv.clone();
                    move |x| conv.apply(x)
                }),
        );
    }
    for batch in [2, 3, 16] {
        let conv = Conv { groups: 8, ..plain(2) };
        cases.push(
            conv_case(
                &format!("long_kernel_in_8_groups_batch_{batch}"),
                &conv,
                &format!("f32[{batch}, 8, 260, 1]"),
                "f32[16, 1, 256, 1]",
                256,
            )
            .without_views(),
        );
    }
    let strided = Conv { strides: vec![2], padding: vec![(0, 0)], ..plain(1) };
    cases.extend([
        conv_case("channels_57_to_20", &strided, "f32[1, 57, 40]", "f32[20, 57, 3]", 171),
        conv_case(
            "channels_8_in_3d",
            &Conv { padding: vec![(1, 1); 3], ..plain(3) },
            "f32[1, 8, 3, 4, 3]",
            "f32[8, 8, 3, 3, 3]",
            216,
        )
        .without_views(),
        conv_case(
            "symbolic",
            &Conv { padding: vec![(1, 1)], strides: vec![2], ..plain(1) },
            "f32[b, 2, n]",
            "f32[3, 2, 3]",
            6,
        ),
        conv_case("empty_batch", &plain(1), "f32[0, 2, 5]", "f32[3, 2, 3]", 6),
        conv_case("no_channels", &plain(1), "f32[2, 0, 5]", "f32[3, 0, 3]", 0),
        conv_case(
            "patches_of_16",
            &Conv { strides: vec![16; 2], ..plain(2) },
            "f32[1, 3, 32, 48]",
            "f32[4, 3, 16, 16]",
            768,
        )
        .without_views(),
    ]);
    let symbolic = Conv { padding: vec![(1, 1)], strides: vec![2], ..plain(1) };
    cases.retain(|case| case.name != "symbolic");
    cases.push(
        op_case("conv", "symbolic", &symbolic.attributes(), "f32[b, 2, n], f32[3, 2, 3]")
            .sizes([("b", 2), ("n", 7)])
            .random(Domain::Normal)
            .formula(move |x| symbolic.apply(x))
            .summed(6),
    );
    cases.extend(conv_given());
    cases.extend(conv_wrong());
    cases.extend(golden(include_str!("../../golden/contract.case"), "conv"));
    cases.extend(golden(PYTORCH, "conv"));
    cases
}

fn conv_given() -> Vec<Case> {
    let dilated = Conv { padding: vec![(0, 0); 2], lhs_dilation: vec![9; 2], ..Conv::plain(2) };
    vec![
        // Group 0 sees channels 0 and 1 only, group 1 channels 2 and 3.
        op_case("conv", "groups_keep_apart", &Conv { groups: 2, ..Conv::plain(2) }.attributes(), "f32[1, 4, 1, 1], f32[16, 2, 1, 1]")
            .inputs([f32s([1, 4, 1, 1], [0.0, 0.0, 0.0, 1.0]), f32s([16, 2, 1, 1], [1.0; 32])])
            .formula(|_| Array::from_fn([1, 16, 1, 1], |i| if i[1] < 8 { 0.0 } else { 1.0 })),
        // Ones at multiples of 9.
        op_case("conv", "input_dilation_of_ones", &dilated.attributes(), "f16[29, 1, 8, 8], f16[1, 1, 1, 1]")
            .random(Domain::Constant(1.0))
            .formula(|_| Array::from_fn([29, 1, 64, 64], |i| f64::from(u8::from(i[2] % 9 == 0 && i[3] % 9 == 0))))
            .without_views(),
        // A weight that is one plane of a larger array.
        case("conv", "weight_is_a_plane_of_five_axes", "(%x: f32[2, 8, 6, 9], %w: f32[3, 8, 3, 3, 3]) {
            %s = slice<starts=[0, 0, 1, 0, 0], sizes=[3, 8, 1, 3, 3], steps=[1, 1, 1, 1, 1]>(%w)
            %p = reshape<dims=[3, 8, 3, 3]>(%s)
            %y = conv<strides=[1, 1], padding=[(0, 0), (0, 0)], lhs_dilation=[1, 1], rhs_dilation=[1, 1], groups=1>(%x, %p)
            return \"y\" = %y
        }")
        .random(Domain::Normal)
        .formula(|x| {
            let plane = Array::from_fn([3, 8, 3, 3], |i| x[1].at(&[i[0], i[1], 1, i[2], i[3]]));
            Conv::plain(2).apply(&[x[0].clone(), plane])
        })
        .summed(72),
        // A sum as long as 2^16 of ones, exact in f32.
        op_case("conv", "kernel_of_65536_ones", &Conv::plain(1).attributes(), "f32[1, 1, 65540], f32[1, 1, 65536]")
            .random(Domain::Constant(1.0))
            .formula(|_| Array::new([1, 1, 5], [65536.0; 5]))
            .without_views(),
        op_case("conv", "positions_beyond_16_bits", &Conv::plain(1).attributes(), "f32[1, 4, 66000], f32[1, 4, 10]")
            .random(Domain::Constant(1.0))
            .formula(|_| Array::new([1, 1, 65991], vec![40.0; 65991]))
            .without_views()
            .cost(Cost::Medium)
            .twin(op_case("conv", "positions_beyond_16_bits_twin", &Conv::plain(1).attributes(), "f32[1, 4, 660], f32[1, 4, 10]").random(Domain::Constant(1.0)).formula(|_| Array::new([1, 1, 651], vec![40.0; 651]))),
        op_case("conv", "output_channels_beyond_16_bits", &Conv::plain(1).attributes(), "f32[1, 1, 1], f32[65537, 1, 1]")
            .input(f32s([1, 1, 1], [2.0]))
            .input(f32s([65537, 1, 1], (0..65537).map(|i| i as f32).collect::<Vec<_>>()))
            .formula(|_| Array::from_fn([1, 65537, 1], |i| 2.0 * i[1] as f64))
            .without_views(),
        op_case("conv", "half_gives_f32", &format!("{}, out=f32", Conv::plain(1).attributes()), "f16[1, 2, 8], f16[2, 2, 3]").random(Domain::Normal).formula(|x| Conv::plain(1).apply(x)).summed(6),
    ]
}

fn conv_wrong() -> Vec<Case> {
    let wrong = |name: &str, conv: Conv, operands: &str, label: &str| {
        op_case("conv", name, &conv.attributes(), operands).fails_build(label)
    };
    let plain = Conv::plain;
    vec![
        wrong("types_differ", plain(1), "f32[1, 1, 4], f16[1, 1, 2]", "C1"),
        wrong("bool", plain(1), "bool[1, 1, 4], bool[1, 1, 2]", "C1"),
        wrong("ranks_differ", plain(1), "f32[1, 1, 4], f32[1, 1, 2, 2]", "C2"),
        wrong("one_axis_only", plain(0), "f32[4], f32[2]", "C2"),
        wrong(
            "too_many_strides",
            Conv { strides: vec![1, 1], ..plain(1) },
            "f32[1, 1, 4], f32[1, 1, 2]",
            "C3",
        ),
        wrong("stride_zero", Conv { strides: vec![0], ..plain(1) }, "f32[1, 1, 4], f32[1, 1, 2]", "C4"),
        wrong(
            "dilation_zero",
            Conv { rhs_dilation: vec![0], ..plain(1) },
            "f32[1, 1, 4], f32[1, 1, 2]",
            "C4",
        ),
        wrong("channels_differ", plain(1), "f32[1, 3, 4], f32[1, 2, 2]", "C5"),
        wrong("groups_do_not_divide", Conv { groups: 2, ..plain(1) }, "f32[1, 4, 4], f32[3, 2, 2]", "C5"),
        wrong("no_groups", Conv { groups: 0, ..plain(1) }, "f32[1, 4, 4], f32[3, 2, 2]", "C5"),
        wrong("kernel_larger_than_the_input", plain(1), "f32[1, 1, 4], f32[1, 1, 6]", "C6"),
    ]
}

const PLAIN: &str = "strides=[1], padding=[(0, 0)], dilations=[1], groups=1";

pub(super) fn conv_bias() -> Vec<Case> {
    let mut cases = recorded("conv_bias");
    cases.extend(golden(PYTORCH, "conv_bias"));
    cases.extend([
        op_case("conv_bias", "types", PLAIN, "f32[1, 2, 5], f16[3, 2, 2], f32[3]").fails_build("C1"),
        op_case("conv_bias", "ranks", PLAIN, "f32[1, 2, 5], f32[3, 2], f32[3]").fails_build("C2"),
        op_case("conv_bias", "axes", PLAIN, "f32[1, 2, 5, 5], f32[3, 2, 2, 2], f32[3]").fails_build("C3"),
        op_case("conv_bias", "channels", PLAIN, "f32[1, 3, 5], f32[3, 2, 2], f32[3]").fails_build("C5"),
        op_case("conv_bias", "kernel", PLAIN, "f32[1, 2, 5], f32[3, 2, 7], f32[3]").fails_build("C6"),
        op_case("conv_bias", "bias", PLAIN, "f32[1, 2, 5], f32[3, 2, 2], f32[2]").fails_build("C7"),
    ]);
    cases
}

pub(super) fn conv_transpose() -> Vec<Case> {
    let mut cases = recorded("conv_transpose");
    cases.extend(golden(PYTORCH, "conv_transpose"));
    let attributes = PLAIN.replace("dilations", "output_padding=[0], dilations");
    let cropped = attributes.replace("(0, 0)", "(9, 0)");
    cases.extend([
        op_case("conv_transpose", "channels", &attributes, "f32[1, 3, 5], f32[2, 3, 2]").fails_build("C5"),
        op_case("conv_transpose", "padding", &cropped, "f32[1, 2, 5], f32[2, 3, 2]").fails_build("C6"),
        op_case("conv_transpose", "bias", &attributes, "f32[1, 2, 5], f32[2, 3, 2], f32[2]")
            .fails_build("C7"),
    ]);
    cases
}

pub(super) fn conv_input_grad() -> Vec<Case> {
    let mut cases = recorded("conv_input_grad");
    // The oracle visits every zero between the elements of dy: that takes half a minute with 192 channels.
    cases.extend(golden(PYTORCH, "conv_input_grad").into_iter().map(|case| {
        let cost = if case.name == "golden_pytorch_patches" { Cost::Expensive } else { case.cost };
        case.cost(cost)
    }));
    let attributes = format!("dims=[5], {PLAIN}");
    cases.extend([
        op_case("conv_input_grad", "channels", &attributes, "f32[1, 2, 4], f32[3, 2, 2]").fails_build("C5"),
        op_case("conv_input_grad", "sizes", &attributes, "f32[1, 3, 5], f32[3, 2, 2]").fails_build("C6"),
    ]);
    cases
}

pub(super) fn conv_weight_grad() -> Vec<Case> {
    let mut cases = recorded("conv_weight_grad");
    cases.extend(golden(PYTORCH, "conv_weight_grad"));
    let attributes = format!("window=[2], {PLAIN}");
    cases.extend([
        op_case("conv_weight_grad", "sizes", &attributes, "f32[1, 2, 5], f32[1, 3, 5]").fails_build("C6"),
        op_case("conv_weight_grad", "batch", &attributes, "f32[1, 2, 5], f32[2, 3, 4]").fails_build("C6"),
    ]);
    cases
}

pub(super) fn causal_conv() -> Vec<Case> {
    recorded("causal_conv")
}

pub(super) fn deform_conv() -> Vec<Case> {
    let mut cases = recorded("deform_conv");
    let attributes = format!("{PLAIN}, offset_groups=1, bias=false, mask=false");
    let grouped = attributes.replace("offset_groups=1", "offset_groups=3");
    let operands = "f32[1, 2, 5], f32[3, 2, 2], f32[1, 2, 4]";
    cases.extend([
        op_case("deform_conv", "offsets", &attributes, "f32[1, 2, 5], f32[3, 2, 2], f32[1, 4, 4]")
            .fails_build("C4"),
        op_case("deform_conv", "groups", &grouped, operands).fails_build("C5"),
    ]);
    cases
}
