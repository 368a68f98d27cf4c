"""Records what PyTorch gives in f64 on inputs as rounded to f32: activations, losses, norms, convolutions, pools, sampling.

It runs with the system's Python on Debian's PyTorch for the processor, because the one of the package index is
gigabytes; that is why it stands apart from the requirements of the other scripts, and runs on demand only:

    apt-get install --no-install-recommends python3-torch python3-numpy
    /usr/bin/python3 references/cases/pytorch.py

The scans of state spaces, which PyTorch has not, are plain loops of its tensors, as their papers write them.
"""

import itertools

import numpy as np
import torch
import torch.nn.functional as F
from caselib import Cases

VERSIONS = {"torch": torch.__version__, "numpy": np.__version__}


def wide(x):
    """A tensor in f64 if x is of floats."""
    x = torch.from_numpy(np.array(x))
    return x.double() if x.is_floating_point() else x


def short(x):
    """Twelve digits of each number: more than enough to judge f32, and a smaller file."""
    return np.vectorize(lambda value: float(f"{value:.12g}"), otypes=["float64"])(x)


def attributes(**given):
    """Attributes in the text form, without those that are None."""
    texts = {True: "true", False: "false"}
    return ", ".join(f"{k}={texts[v] if isinstance(v, bool) else v}" for k, v in given.items() if v is not None)


class Family(Cases):
    """The cases of a file under `golden/pytorch`."""

    def __init__(self, family, seed):
        super().__init__(f"pytorch/{family}", seed)

    def normal(self, *dims):
        return self.rng.standard_normal(dims).astype("float32")

    def uniform(self, low, high, *dims):
        return self.rng.uniform(low, high, dims).astype("float32")

    def record(self, op, name, text, inputs, results, tolerance):
        results = results if isinstance(results, (list, tuple)) else [results]
        self.op(op, f"pytorch_{name}", text, inputs, [short(r.detach().numpy()) for r in results], tolerance)

    def done(self):
        self.write(__file__, VERSIONS)


def activation():
    cases = Family("activation", 1)
    plain = np.array([-5, -3.5, -1.25, -0.75, -0.5, -0.125, -1e-3, 0, 1e-4, 0.25, 0.5, 0.625, 1, 2.75, 5.5, 8, 30], "float32")
    ends = np.array([-np.inf, np.inf, np.nan], "float32")
    lambda_ = 0.625
    functions = [
        ("relu", {}, F.relu),
        ("relu6", {}, F.relu6),
        ("gelu", {}, F.gelu),
        ("gelu_tanh", {}, lambda x: F.gelu(x, approximate="tanh")),
        ("mish", {}, F.mish),
        ("softsign", {}, F.softsign),
        ("hard_swish", {}, F.hardswish),
        ("log_sigmoid", {}, F.logsigmoid),
        ("tanh_shrink", {}, F.tanhshrink),
        ("leaky_relu", {"alpha": 0.125}, lambda x: F.leaky_relu(x, 0.125)),
        ("elu", {"alpha": 0.75}, lambda x: F.elu(x, 0.75)),
        ("celu", {"alpha": 1.5}, lambda x: F.celu(x, 1.5)),
        ("selu", {"alpha": 1.6732632423543772848170429916717, "gamma": 1.0507009873554804934193349852946}, F.selu),
        ("swish", {"alpha": 1.0}, F.silu),
        ("softplus", {"beta": 1.0, "threshold": 20.0}, F.softplus),
        ("softplus", {"beta": 3.0, "threshold": 2.0}, lambda x: F.softplus(x, 3, 2)),
        ("hard_sigmoid", {"alpha": 1 / 6, "beta": 0.5}, F.hardsigmoid),
        ("hard_tanh", {"low": -1.25, "high": 0.5}, lambda x: F.hardtanh(x, -1.25, 0.5)),
        ("shrink", {"lambda": lambda_, "bias": 0.0}, lambda x: F.hardshrink(x, lambda_)),
        ("shrink", {"lambda": lambda_, "bias": lambda_}, lambda x: F.softshrink(x, lambda_)),
        ("threshold", {"threshold": 0.25, "value": -7.0}, lambda x: F.threshold(x, 0.25, -7.0)),
    ]
    for op, given, f in functions:
        name = "_".join(str(v) for v in given.values()).replace(".", "_").replace("-", "m") or "plain"
        cases.record(op, name, attributes(**given), [plain], f(wide(plain)), "transcendental")
        # PyTorch of this version makes 0 of NaN where it shrinks softly.
        given_ends = ends[:2] if given.get("bias") == lambda_ else ends
        cases.record(op, f"{name}_ends", attributes(**given), [given_ends], f(wide(given_ends)), "transcendental")
    x = cases.uniform(0.02, 0.98, 9)
    cases.record("logit", "plain", "", [x], torch.logit(wide(x)), "transcendental")
    x = cases.uniform(-0.5, 1.5, 9)
    cases.record("logit", "limited", "eps=0.125", [x], torch.logit(wide(x), 0.125), "transcendental")
    x, slope = cases.normal(2, 3, 2), cases.normal(3)
    cases.record("prelu", "by_channel", "", [x, slope[:, None]], F.prelu(wide(x), wide(slope)), "exact")
    for axis in (0, -1):
        x = cases.normal(4, 3, 2)
        cases.record("glu", f"axis_{axis}", f"axis={axis}, gate=sigmoid", [x], F.glu(wide(x), axis), "transcendental")
    for op, f in [("softmax", F.softmax), ("log_softmax", F.log_softmax), ("softmin", F.softmin)]:
        for axis in (0, -1):
            x = 4 * cases.normal(3, 5)
            cases.record(op, f"axis_{axis}", f"axis={axis}", [x], f(wide(x), dim=axis), "accumulated(5)")
    cases.done()


def loss():
    cases = Family("loss", 2)
    for reduction, smoothing, weighted, ignore in itertools.product(
        ("none", "mean", "sum"), (0.0, 0.2), (False, True), (None, 2)
    ):
        x, w = 3 * cases.normal(2, 4, 3), cases.uniform(0.5, 2, 4)
        target = cases.rng.integers(0, 4, (2, 3))
        target[1, 1] = 2
        given = attributes(ignore_index=ignore, label_smoothing=smoothing, reduction=reduction)
        y = F.cross_entropy(
            wide(x), wide(target), wide(w) if weighted else None, ignore_index=-100 if ignore is None else ignore,
            label_smoothing=smoothing, reduction=reduction,
        )
        name = f"{reduction}_{smoothing}_{weighted}_{ignore}".lower()
        cases.record("softmax_cross_entropy", name, given, [x, target] + [w] * weighted, y, "accumulated(16)")
        if smoothing == 0 and reduction == "mean":
            log_p = F.log_softmax(wide(x), 1).float().numpy()
            y = F.nll_loss(
                wide(log_p), wide(target), wide(w) if weighted else None,
                ignore_index=-100 if ignore is None else ignore, reduction=reduction,
            )
            given = attributes(ignore_index=ignore, reduction=reduction)
            cases.record("nll_loss", name, given, [log_p, target] + [w] * weighted, y, "accumulated(8)")
    for reduction, smoothing, weighted in itertools.product(("none", "mean", "sum"), (0.0, 0.2), (False, True)):
        x, w = 3 * cases.normal(2, 4, 3), cases.uniform(0.5, 2, 4)
        target = F.softmax(wide(cases.normal(2, 4, 3)), 1).float().numpy()
        y = F.cross_entropy(
            wide(x), wide(target), wide(w) if weighted else None, label_smoothing=smoothing, reduction=reduction
        )
        given = attributes(label_smoothing=smoothing, reduction=reduction)
        name = f"probabilities_{reduction}_{smoothing}_{weighted}".lower()
        cases.record("softmax_cross_entropy", name, given, [x, target] + [w] * weighted, y, "accumulated(24)")
    x, target = 3 * cases.normal(5), np.array(3)
    y = F.cross_entropy(wide(x), wide(target), label_smoothing=0.3)
    cases.record("softmax_cross_entropy", "one_position", "label_smoothing=0.3, reduction=mean", [x, target], y,
                 "accumulated(10)")

    for reduction, weighted, positive in itertools.product(("none", "mean", "sum"), (False, True), (False, True)):
        x, target = 4 * cases.normal(3, 4), cases.uniform(0, 1, 3, 4)
        w, q = cases.uniform(0.5, 2, 3, 1), cases.uniform(0.5, 3, 4)
        name = f"{reduction}_{weighted}_{positive}".lower()
        y = F.binary_cross_entropy_with_logits(
            wide(x), wide(target), wide(w) if weighted else None, reduction=reduction,
            pos_weight=wide(q) if positive else None,
        )
        given = attributes(weight=weighted, positive_weight=positive, reduction=reduction)
        inputs = [x, target] + [w] * weighted + [q] * positive
        cases.record("binary_cross_entropy_with_logits", name, given, inputs, y, "accumulated(16)")
        if positive:
            continue
        p = cases.uniform(0, 1, 3, 4)
        p[0, :2] = [0, 1]
        y = F.binary_cross_entropy(wide(p), wide(target), wide(w) if weighted else None, reduction=reduction)
        cases.record("binary_cross_entropy", name, f"reduction={reduction}", [p, target] + [w] * weighted, y,
                     "accumulated(16)")

    pairs = [
        ("mse_loss", {}, F.mse_loss), ("l1_loss", {}, F.l1_loss),
        ("huber_loss", {"delta": 1.25}, lambda x, t, reduction: F.huber_loss(x, t, reduction, 1.25)),
        ("smooth_l1_loss", {"beta": 0.75}, lambda x, t, reduction: F.smooth_l1_loss(x, t, None, None, reduction, 0.75)),
        ("smooth_l1_loss", {"beta": 0.0}, lambda x, t, reduction: F.smooth_l1_loss(x, t, None, None, reduction, 0.0)),
    ]
    for (op, given, f), reduction in itertools.product(pairs, ("none", "mean", "sum")):
        x, target = cases.normal(3, 4), cases.normal(3, 4)
        x[0, 0], x[0, 1:3] = target[0, 0], target[0, 1:3] + np.float32(1.25)
        name = "_".join([reduction, *map(str, given.values())])
        cases.record(op, name, attributes(**given, reduction=reduction), [x, target],
                     f(wide(x), wide(target), reduction=reduction), "accumulated(12)")
    for reduction, log_target in itertools.product(("none", "mean", "sum", "batch_mean"), (False, True)):
        x = F.log_softmax(wide(cases.normal(3, 4)), 1).float().numpy()
        target = F.softmax(wide(cases.normal(3, 4)), 1).float().numpy()
        if log_target:
            target = np.log(target)
        else:
            target[1, 2] = 0
        y = F.kl_div(wide(x), wide(target), reduction=reduction.replace("_", ""), log_target=log_target)
        cases.record("kl_divergence", f"{reduction}_{log_target}".lower(),
                     attributes(log_target=log_target, reduction=reduction), [x, target], y, "accumulated(20)")
    for axis, eps in ((-1, 1e-8), (0, 1e-8), (1, 3.0)):
        x, y = cases.normal(3, 4), cases.normal(3, 4)
        x[0] = 0
        cases.record("cosine_similarity", f"axis_{axis}_{eps}", f"axis={axis}, eps={eps}", [x, y],
                     F.cosine_similarity(wide(x), wide(y), axis, eps), "accumulated(8, 1)")
    for reduction, margin in itertools.product(("none", "mean", "sum"), (0.0, 0.25)):
        x, y = cases.normal(6, 3), cases.normal(6, 3)
        x[0] = 0
        sign = np.array([1, -1, 1, -1, 1, -1], "float32")
        z = F.cosine_embedding_loss(wide(x), wide(y), wide(sign), margin, reduction=reduction)
        cases.record("cosine_embedding_loss", f"{reduction}_{margin}", f"margin={margin}, reduction={reduction}",
                     [x, y, sign], z, "accumulated(14, 2)" if reduction != "sum" else "accumulated(14, 12)")
    cases.done()


def norm():
    cases = Family("norm", 3)
    for name, dims, momentum in [("image", (2, 3, 2, 2), 0.1), ("rows", (4, 3), 0.25), ("volume", (2, 2, 1, 3, 2), 1.0)]:
        c = dims[1]
        x, scale, bias = cases.normal(*dims) * 2 + 1, cases.normal(c), cases.normal(c)
        mean, variance = cases.normal(c), cases.uniform(0.5, 2, c)
        new_mean, new_variance = wide(mean).clone(), wide(variance).clone()
        y = F.batch_norm(wide(x), new_mean, new_variance, wide(scale), wide(bias), True, momentum, 1e-5)
        # PyTorch's momentum weighs the new statistics, ONNX's and this operation's the old ones.
        given = attributes(axis=1, eps=1e-5, momentum=1 - momentum, unbiased=True)
        inputs = [x, scale, bias, mean, variance]
        cases.record("batch_norm_training", name, given, inputs, [y, new_mean, new_variance], "accumulated(20)")
        y = F.batch_norm(wide(x), wide(mean), wide(variance), wide(scale), wide(bias), False, 0.0, 1e-3)
        cases.record("batch_norm", name, attributes(axis=1, eps=1e-3), inputs, y, "accumulated(6)")
    x, scale, bias = cases.normal(2, 3, 4) + 2, cases.normal(3, 4), cases.normal(3, 4)
    y = F.layer_norm(wide(x), (3, 4), wide(scale), wide(bias), 1e-5)
    cases.record("layer_norm", "two_axes", "axis=1, eps=1e-5", [x, scale, bias], y, "accumulated(20)")
    x, scale, bias = cases.normal(2, 6, 3) + 2, cases.normal(6), cases.normal(6)
    for groups in (1, 3):
        y = F.group_norm(wide(x), groups, wide(scale), wide(bias), 1e-5)
        cases.record("group_norm", f"groups_{groups}", f"groups={groups}, eps=1e-5", [x, scale, bias], y,
                     "accumulated(20)")
    y = F.instance_norm(wide(x), None, None, wide(scale), wide(bias), eps=1e-5)
    cases.record("instance_norm", "signals", "eps=1e-5", [x, scale, bias], y, "accumulated(12)")
    x = cases.normal(2, 7, 2)
    y = F.local_response_norm(wide(x), 3, 0.5, 0.75, 1.5)
    cases.record("lrn", "three_channels", "size=3, alpha=0.5, beta=0.75, bias=1.5", [x], y, "accumulated(8)")
    for p in (1.0, 2.0, 3.0):
        y = F.normalize(wide(x), p, 1, 1e-12)
        cases.record("lp_normalize", f"p_{p}", f"axes=[1], p={p}, eps=1e-12", [x], y, "accumulated(16)")
    x = cases.normal(3, 5)
    for unbiased in (False, True):
        for op, f in (("variance", torch.var), ("standard_deviation", torch.std)):
            cases.record(op, f"unbiased_{unbiased}".lower(), f"axes=[1], ddof={float(unbiased)}", [x],
                         f(wide(x), 1, unbiased), "accumulated(8)")
    cases.done()


def exact_numbers(name, dims, start, step):
    """Lines of a graph that make a tensor of whole numbers from −5 to 5, and the same tensor.

    A sum of products of such numbers is exact in f32, whatever its order."""
    n = int(np.prod(dims))
    lines = [
        f"%{name}i = iota<ty=i64[{n}], axis=0, start={float(start)}, step={float(step)}>()",
        f"%{name}l = constant<value=i64[1] [101]>()",
        f"%{name}m = broadcast<dims=[{n}]>(%{name}l)",
        f"%{name}r = rem(%{name}i, %{name}m)",
        f"%{name}s = constant<value=i64[1] [11]>()",
        f"%{name}t = broadcast<dims=[{n}]>(%{name}s)",
        f"%{name}u = rem(%{name}r, %{name}t)",
        f"%{name}f = cast<to=f32>(%{name}u)",
        f"%{name}c = constant<value=f32[1] [5.0]>()",
        f"%{name}d = broadcast<dims=[{n}]>(%{name}c)",
        f"%{name}e = sub(%{name}f, %{name}d)",
        f"%{name} = reshape<dims={list(dims)}>(%{name}e)",
    ]
    values = ((start + step * np.arange(n)) % 101 % 11 - 5).astype("float64")
    return lines, torch.from_numpy(values.reshape(dims))


def patches(cases, name, channels, xs, *operations):
    """The gradients of a layer that cuts a picture into patches: conv2d from 3 channels, kernel 16, stride 16.

    Inputs are formulas in the graph, results a part of each tensor and sums of it by other such numbers."""
    ws, ys = (channels, 3, 16, 16), (xs[0], channels, xs[2] // 16, xs[3] // 16)
    lines, tensors = {}, {}
    for tensor, dims, start, step in [
        ("x", xs, 3, 37), ("w", ws, 11, 29), ("dy", ys, 7, 43), ("cx", xs, 5, 31), ("cw", ws, 2, 47), ("cy", ys, 1, 23)
    ]:
        lines[tensor], tensors[tensor] = exact_numbers(tensor, dims, start, step)
    x, w = tensors["x"].requires_grad_(), tensors["w"].requires_grad_()
    y = F.conv2d(x, w, stride=16)
    dx, dw = torch.autograd.grad(y, (x, w), tensors["dy"])
    common = "strides=[16, 16], padding=[(0, 0), (0, 0)]"
    for op, given, operands, tensor, by in [
        ("conv", f"{common}, lhs_dilation=[1, 1], rhs_dilation=[1, 1], groups=1", ("x", "w"), y, "cy"),
        ("conv_input_grad", f"dims={list(xs[2:])}, {common}, dilations=[1, 1], groups=1", ("dy", "w"), dx, "cx"),
        ("conv_weight_grad", f"window=[16, 16], {common}, dilations=[1, 1], groups=1", ("x", "dy"), dw, "cw"),
    ]:
        if op not in operations:
            continue
        starts = [d // 2 for d in tensor.shape]
        sizes = [min(d - s, n) for d, s, n in zip(tensor.shape, starts, (3, 3, 4, 4))]
        part = tensor[tuple(slice(s, s + n) for s, n in zip(starts, sizes))]
        weighted = tensor * tensors[by]
        made = [
            f"%result = {op}<{given}>(%{operands[0]}, %{operands[1]})",
            f"%part = slice<starts={starts}, sizes={sizes}, steps=[1, 1, 1, 1]>(%result)",
            f"%weighted = mul(%result, %{by})",
            "%first = reduce_sum<axes=[1, 2, 3], keep_dims=false>(%weighted)",
            "%last = reduce_sum<axes=[0, 1, 2], keep_dims=false>(%weighted)",
            'return "part" = %part, "first" = %first, "last" = %last',
        ]
        made = [line for made_by in (*operands, by) for line in lines[made_by]] + made
        text = "\n".join(['graph "case"() {', *("  " + line for line in made), "}"])
        results = [part, weighted.sum((1, 2, 3)), weighted.sum((0, 1, 2))]
        assert float(weighted.abs().sum()) < 2**24
        cases.graph(op, f"pytorch_{name}", text, [], [r.detach().numpy() for r in results])


def convolution():
    cases = Family("convolution", 4)
    patches(cases, "patches", 192, (1, 3, 32, 32), "conv", "conv_input_grad", "conv_weight_grad")
    patches(cases, "patches_few_channels", 6, (2, 3, 16, 32), "conv_input_grad")
    geometries = {
        "one_axis": ((2, 4, 9), (6, 2, 3), (2,), (1,), (2,), 2),
        "two_axes": ((1, 2, 6, 7), (3, 2, 3, 2), (2, 1), (1, 2), (1, 2), 1),
        "depthwise": ((1, 3, 5, 5), (3, 1, 3, 3), (1, 2), (1, 0), (1, 1), 3),
        "three_axes": ((1, 2, 3, 4, 3), (2, 2, 2, 2, 1), (1, 2, 1), (1, 0, 1), (1, 1, 1), 1),
    }
    for name, (xs, ws, strides, pads, dilations, groups) in geometries.items():
        d = len(strides)
        f = getattr(F, f"conv{d}d")
        x, w, bias = cases.normal(*xs), cases.normal(*ws), cases.normal(ws[0])
        vx, vw = wide(x).requires_grad_(), wide(w).requires_grad_()
        y = f(vx, vw, wide(bias), strides, pads, dilations, groups)
        dy = cases.normal(*y.shape)
        dx, dw = torch.autograd.grad(y, (vx, vw), wide(dy))
        padding = "[" + ", ".join(f"({p}, {p})" for p in pads) + "]"
        text = f"strides={list(strides)}, padding={padding}, dilations={list(dilations)}, groups={groups}"
        terms = int(np.prod(ws[1:]))
        cases.record("conv_bias", name, text, [x, w, bias], y, f"summed({terms + 1})")
        cases.record("conv_input_grad", name, f"dims={list(xs[2:])}, {text}", [dy, w], dx, f"summed({2 * terms})")
        cases.record("conv_weight_grad", name, f"window={list(ws[2:])}, {text}", [x, dy], dw,
                     f"summed({int(np.prod(y.shape))})")
    for name, xs, ws, strides, pads, output, dilations, groups in [
        ("stride_two_output_padding", (1, 2, 3, 4), (2, 3, 3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 1),
        ("grouped_dilated", (2, 4, 3, 3), (4, 1, 2, 3), (3, 2), (0, 1), (2, 0), (1, 2), 2),
        ("one_axis", (1, 3, 4), (3, 2, 4), (2,), (1,), (0,), (1,), 1),
        ("three_axes", (1, 2, 2, 2, 3), (2, 2, 2, 1, 3), (2, 1, 2), (0, 0, 1), (1, 0, 1), (1, 1, 1), 1),
    ]:
        x, w, bias = cases.normal(*xs), cases.normal(*ws), cases.normal(ws[1] * groups)
        f = getattr(F, f"conv_transpose{len(strides)}d")
        y = f(wide(x), wide(w), wide(bias), strides, pads, output, groups, dilations)
        padding = "[" + ", ".join(f"({p}, {p})" for p in pads) + "]"
        text = (f"strides={list(strides)}, padding={padding}, output_padding={list(output)}, "
                f"dilations={list(dilations)}, groups={groups}")
        cases.record("conv_transpose", name, text, [x, w, bias], y, f"summed({xs[1] * int(np.prod(ws[2:])) + 1})")
    cases.done()


def pool():
    cases = Family("pool", 5)
    geometries = {
        "overlapping": ((1, 2, 6, 5), (3, 2), (2, 1), (1, 1), (1, 1), False),
        "dilated": ((1, 1, 7, 6), (2, 3), (2, 2), (0, 1), (3, 1), False),
        "ceil": ((1, 2, 6, 7), (3, 2), (2, 3), (1, 0), (1, 1), True),
        "one_axis": ((2, 1, 10), (4,), (3,), (2,), (1,), True),
        "three_axes": ((1, 1, 3, 4, 5), (2, 2, 3), (1, 2, 2), (0, 1, 1), (1, 1, 1), False),
    }
    for name, (dims, kernel, strides, pads, dilations, ceil) in geometries.items():
        d = len(kernel)
        padding = "[" + ", ".join(f"({p}, {p})" for p in pads) + "]"
        text = (f"window={list(kernel)}, strides={list(strides)}, dilations={list(dilations)}, padding={padding}, "
                f"ceil_mode={str(ceil).lower()}")
        x = cases.normal(*dims)
        v = wide(x).requires_grad_()
        y = getattr(F, f"max_pool{d}d")(v, kernel, strides, pads, dilations, ceil)
        cases.record("max_pool", name, text, [x], y, "exact")
        dy = cases.normal(*y.shape)
        (dx,) = torch.autograd.grad(y, v, wide(dy))
        cases.record("max_pool_grad", name, text, [x, dy], dx, f"accumulated({int(np.prod(kernel))})")
        if any(n != 1 for n in dilations):
            continue
        for include in (False, True):
            y = getattr(F, f"avg_pool{d}d")(v, kernel, strides, pads, ceil, include)
            given = f"{text}, count_include_pad={str(include).lower()}"
            terms = int(np.prod(kernel))
            cases.record("average_pool", f"{name}_{include}".lower(), given, [x], y, f"accumulated({terms})")
            dy = cases.normal(*y.shape)
            (dx,) = torch.autograd.grad(y, v, wide(dy))
            cases.record("average_pool_grad", f"{name}_{include}".lower(), f"dims={list(dims[2:])}, {given}", [dy], dx,
                         f"accumulated({2 * terms})")
    # Equal elements: the gradient goes to the first.
    x = np.round(cases.normal(1, 1, 5, 5)).astype("float32") + np.float32(0)
    v = wide(x).requires_grad_()
    y = F.max_pool2d(v, 2, 1, 1)
    dy = cases.rng.integers(-9, 9, y.shape).astype("float32")
    (dx,) = torch.autograd.grad(y, v, wide(dy))
    text = "window=[2, 2], strides=[1, 1], dilations=[1, 1], padding=[(1, 1), (1, 1)], ceil_mode=false"
    cases.record("max_pool_grad", "equal_elements", text, [x, dy], dx, "exact")
    x = cases.normal(1, 2, 7, 6)
    text = "window=[3, 2], strides=[2, 2], dilations=[1, 1], padding=[(0, 0), (0, 0)], ceil_mode=false"
    y = F.lp_pool2d(wide(x), 2.0, (3, 2), 2)
    cases.record("lp_pool", "squares", f"p=2.0, {text}", [x], y, "accumulated(24)")
    for sizes in ([3, 4], [8, 1]):
        name = "x".join(map(str, sizes))
        cases.record("adaptive_average_pool", name, f"sizes={sizes}", [x], F.adaptive_avg_pool2d(wide(x), sizes),
                     "accumulated(42)")
        cases.record("adaptive_max_pool", name, f"sizes={sizes}", [x], F.adaptive_max_pool2d(wide(x), sizes), "exact")
    y, index = F.max_pool2d(wide(x), 2, return_indices=True)
    flat = index + 42 * torch.arange(2)[None, :, None, None]
    cases.record("max_unpool", "plain", "dims=[1, 2, 7, 6]", [y.float().numpy(), flat.numpy()],
                 F.max_unpool2d(y, index, 2, output_size=x.shape), "exact")
    x = cases.normal(1, 2, 4, 5)
    text = "window=[3, 2], strides=[2, 1], dilations=[1, 2], padding=[(1, 1), (2, 2)]"
    y = F.unfold(wide(x), (3, 2), (1, 2), (1, 2), (2, 1))
    cases.record("im2col", "strided_dilated", text, [x], y, "exact")
    columns = cases.normal(*y.shape)
    y = F.fold(wide(columns), (4, 5), (3, 2), (1, 2), (1, 2), (2, 1))
    cases.record("col2im", "strided_dilated", f"dims=[4, 5], {text}", [columns], y, "summed(6)")
    cases.done()


def vision():
    cases = Family("vision", 6)

    def resize(name, x, y, mode, coordinates, axes, scales=(), rounding="floor", cubic=-0.75, smooth=False):
        given = attributes(
            axes=axes, sizes=list(y.shape[2:]), scales=list(map(float, scales)), mode=mode, coordinates=coordinates,
            rounding=rounding, cubic_coefficient=cubic, exclude_outside=smooth, antialias=smooth, extrapolation=0.0,
        )
        cases.record("resize", name, given, [x], y, "exact" if mode == "nearest" else "within(2e-6, 2e-6)")

    for sizes in ([5, 9], [2, 3], [4, 1]):
        x = cases.normal(1, 1, 4, 6)
        v, name = wide(x), "x".join(map(str, sizes))
        resize(f"nearest_{name}", x, F.interpolate(v, sizes), "nearest", "asymmetric", [2, 3])
        resize(f"nearest_exact_{name}", x, F.interpolate(v, sizes, mode="nearest-exact"), "nearest", "half_pixel",
               [2, 3], rounding="round_prefer_ceil")
        for mode, ours in (("bilinear", "linear"), ("bicubic", "cubic")):
            y = F.interpolate(v, sizes, mode=mode, align_corners=False)
            resize(f"{ours}_{name}", x, y, ours, "half_pixel", [2, 3])
            y = F.interpolate(v, sizes, mode=mode, align_corners=True)
            resize(f"{ours}_aligned_{name}", x, y, ours, "align_corners", [2, 3])
            y = F.interpolate(v, sizes, mode=mode, align_corners=False, antialias=True)
            resize(f"{ours}_antialias_{name}", x, y, ours, "half_pixel", [2, 3], cubic=-0.5, smooth=True)
    x = cases.normal(1, 1, 4, 6)
    for mode, ours in (("nearest", "nearest"), ("bilinear", "linear"), ("bicubic", "cubic")):
        flag = {} if mode == "nearest" else {"align_corners": False}
        for factors in ((1.7, 0.6), (2.5, 1.3)):
            y = F.interpolate(wide(x), scale_factor=factors, mode=mode, recompute_scale_factor=False, **flag)
            resize(f"{ours}_by_{factors[0]}", x, y, ours, "asymmetric" if mode == "nearest" else "half_pixel", [2, 3],
                   factors)
    x = cases.normal(1, 2, 5)
    resize("linear_one_axis", x, F.interpolate(wide(x), 8, mode="linear"), "linear", "half_pixel", [2])
    x = cases.normal(1, 1, 2, 3, 3)
    resize("linear_three_axes", x, F.interpolate(wide(x), (3, 2, 4), mode="trilinear"), "linear", "half_pixel", [2, 3, 4])

    modes = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
    for (mode, ours), outside, align in itertools.product(
        modes.items(), ("zeros", "border", "reflection"), (False, True)
    ):
        x, grid = cases.normal(1, 2, 3, 4), cases.uniform(-1.7, 1.7, 1, 2, 3, 2)
        y = F.grid_sample(wide(x), wide(grid), mode, outside, align)
        cases.record("grid_sample", f"{ours}_{outside}_{align}".lower(),
                     attributes(mode=ours, outside=outside, align_corners=align, neighbours_only=ours == "cubic"),
                     [x, grid], y,
                     "exact" if mode == "nearest" else "within(3e-6, 3e-6)")
    x, grid = cases.normal(1, 1, 3, 2, 4), cases.uniform(-1.4, 1.4, 1, 2, 1, 3, 3)
    for outside in ("zeros", "border", "reflection"):
        y = F.grid_sample(wide(x), wide(grid), "bilinear", outside, False)
        cases.record("grid_sample", f"volume_{outside}", attributes(mode="linear", outside=outside, align_corners=False),
                     [x, grid], y, "within(3e-6, 3e-6)")
    for align, d in itertools.product((False, True), (2, 3)):
        theta, sizes = cases.normal(1, d, d + 1), [2, 3, 4][:d]
        y = F.affine_grid(wide(theta), [1, 1, *sizes], align)
        cases.record("affine_grid", f"{align}_{d}".lower(), attributes(sizes=sizes, align_corners=align), [theta], y,
                     "within(1e-6, 1e-6)")
    x = cases.normal(1, 8, 2, 3)
    cases.record("depth_to_space", "pixel_shuffle", "block=2, order=crd", [x], F.pixel_shuffle(wide(x), 2), "exact")
    x = cases.normal(1, 2, 4, 6)
    cases.record("space_to_depth", "pixel_unshuffle", "block=2, order=crd", [x], F.pixel_unshuffle(wide(x), 2), "exact")
    cases.done()


def scan():
    """The recurrences token by token, on whole tensors."""
    cases = Family("scan", 7)
    b, n, c, m = 2, 4, 3, 2
    for everything in (False, True):
        x, steps, a = cases.normal(b, n, c), cases.uniform(-1, 1, b, n, c), cases.uniform(-2, -0.1, c, m)
        if not everything:
            steps = np.abs(steps)
        into, out, state = cases.normal(b, n, m), cases.normal(b, n, m), cases.normal(b, c, m)
        skip, bias, gate = cases.normal(c), cases.normal(c), cases.normal(b, n, c)
        s, rows = wide(state), []
        for t in range(n):
            delta = wide(steps)[:, t]
            delta = F.softplus(delta + wide(bias)) if everything else delta
            s = torch.exp(delta[..., None] * wide(a)) * s
            s = s + torch.einsum("bc,bm->bcm", delta * wide(x)[:, t], wide(into)[:, t])
            rows.append(torch.einsum("bcm,bm->bc", s, wide(out)[:, t]))
        y = torch.stack(rows, 1)
        inputs, text = [x, steps, a, into, out, state], ""
        if everything:
            y = (y + wide(skip) * wide(x)) * F.silu(wide(gate))
            inputs += [skip, bias, gate]
            text = "operands=[skip, step_bias, gate], softplus=true"
        cases.record("selective_scan", "everything" if everything else "plain", text, inputs, [y, s], "accumulated(30)")
    heads, groups, p = 4, 2, 2
    for everything in (False, True):
        x, steps, a = cases.normal(b, n, heads, p), cases.uniform(-1, 1, b, n, heads), cases.uniform(-2, -0.1, heads)
        if not everything:
            steps = np.abs(steps)
        into, out = cases.normal(b, n, groups, m), cases.normal(b, n, groups, m)
        state, skip, bias = cases.normal(b, heads, p, m), cases.normal(heads), cases.normal(heads)
        gate = cases.normal(b, n, heads, p)
        by_head = [wide(g).repeat_interleave(heads // groups, 2) for g in (into, out)]
        s, rows = wide(state), []
        for t in range(n):
            delta = wide(steps)[:, t]
            delta = F.softplus(delta + wide(bias)) if everything else delta
            s = torch.exp(delta * wide(a))[..., None, None] * s
            s = s + torch.einsum("bh,bhp,bhm->bhpm", delta, wide(x)[:, t], by_head[0][:, t])
            rows.append(torch.einsum("bhpm,bhm->bhp", s, by_head[1][:, t]))
        y = torch.stack(rows, 1)
        inputs, text = [x, steps, a, into, out, state], ""
        if everything:
            y = (y + wide(skip)[:, None] * wide(x)) * F.silu(wide(gate))
            inputs += [skip, bias, gate]
            text = "operands=[skip, step_bias, gate], softplus=true"
        cases.record("headwise_scan", "everything" if everything else "plain", text, inputs, [y, s], "accumulated(30)")
    heads, kv, d, e = 4, 2, 3, 2
    for rule, scale in itertools.product(("delta", "gated_delta"), (None, 0.5)):
        q, k, v = cases.normal(b, heads, n, d), cases.normal(b, kv, n, d), cases.normal(b, kv, n, e)
        k = (k / np.linalg.norm(k, axis=-1, keepdims=True)).astype("float32")
        state = cases.normal(b, kv, d, e)
        # The decay is one number a head and token, or one a key element.
        g = -cases.uniform(0.05, 1, b, kv, n, 1 if scale is None else d)
        beta = cases.uniform(0, 1, b, kv, n, 1)
        s, rows = wide(state), []
        for t in range(n):
            key, value = wide(k)[:, :, t], wide(v)[:, :, t]
            if rule == "gated_delta":
                s = torch.exp(wide(g)[:, :, t])[..., None] * s
            value = wide(beta)[:, :, t] * (value - torch.einsum("bhde,bhd->bhe", s, key))
            s = s + key[..., None] * value[..., None, :]
            rows.append(torch.einsum("bhde,bhd->bhe", s.repeat_interleave(heads // kv, 1), wide(q)[:, :, t]))
        y = torch.stack(rows, 2) * (d**-0.5 if scale is None else scale)
        inputs = [q, k, v, state] + [g] * (rule == "gated_delta") + [beta]
        cases.record("linear_attention", f"{rule}_{scale}".lower(), attributes(rule=rule, scale=scale), inputs, [y, s],
                     "accumulated(40)")
    cases.done()


for family in (activation, loss, norm, convolution, pool, vision, scan):
    family()
