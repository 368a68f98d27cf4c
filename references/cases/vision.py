"""Records resizing, sampling, regions and rearrangements by onnx's reference evaluator, onnxruntime and numpy.

    pip install numpy onnx==1.23.2 onnxruntime
    python references/cases/vision.py
"""

import numpy as np
from caselib import Cases
from onnx_node import VERSIONS, reference, run

cases = Cases("vision", 13)
rng = cases.rng


def normal(*dims):
    return rng.standard_normal(dims).astype("float32")


# Resize: reference evaluator, computed in f64.
def resize(name, x, mode, coordinates, scales=None, sizes=None, roi=None, rounding="round_prefer_floor", cubic=-0.75,
           exclude=0, antialias=0, extrapolation=0.0):
    axes = [2, 3]
    given = [x, roi, None if scales is None else np.array(scales, "float32"),
             None if sizes is None else np.array(sizes, "int64")]
    attributes = dict(mode=mode, coordinate_transformation_mode=coordinates, cubic_coeff_a=cubic,
                      exclude_outside=exclude, antialias=antialias, extrapolation_value=extrapolation, axes=axes)
    if mode == "nearest":
        attributes["nearest_mode"] = rounding
    (y,) = reference("Resize", given, opset=19, **attributes)
    factors = [] if scales is None else [float(np.float32(s)) for s in scales]
    text = (f"axes={axes}, sizes={list(y.shape[2:])}, scales={factors}, mode={mode}, coordinates={coordinates}, "
            f"rounding={rounding}, cubic_coefficient={cubic}, exclude_outside={str(bool(exclude)).lower()}, "
            f"antialias={str(bool(antialias)).lower()}, extrapolation={extrapolation}")
    inputs = [x] if roi is None else [x, roi]
    tolerance = "exact" if mode == "nearest" else "within(4e-5, 1e-5)"
    cases.op("resize", name, text, inputs, [y], tolerance)


for coordinates in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"):
    for mode in ("nearest", "linear", "cubic"):
        resize(f"{mode}_{coordinates}_up", normal(1, 1, 3, 4), mode, coordinates, sizes=[5, 9])
        resize(f"{mode}_{coordinates}_down", normal(1, 2, 7, 5), mode, coordinates, sizes=[3, 2])
        resize(f"{mode}_{coordinates}_scales", normal(1, 1, 4, 5), mode, coordinates, scales=[1.5, 0.6])
for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
    resize(f"nearest_{rounding}", normal(1, 1, 4, 4), "nearest", "half_pixel", sizes=[8, 7], rounding=rounding)
    resize(f"nearest_{rounding}_half", normal(1, 1, 4, 8), "nearest", "asymmetric", sizes=[8, 4], rounding=rounding)
for mode in ("linear", "cubic"):
    resize(f"{mode}_antialias", normal(1, 1, 11, 9), mode, "half_pixel", sizes=[4, 5], antialias=1)
    resize(f"{mode}_antialias_scales", normal(1, 1, 8, 9), mode, "half_pixel", scales=[0.6, 0.3], antialias=1)
    resize(f"{mode}_antialias_up", normal(1, 1, 3, 4), mode, "half_pixel", sizes=[6, 5], antialias=1)
    resize(f"{mode}_antialias_exclude", normal(1, 1, 8, 9), mode, "half_pixel", sizes=[3, 4], antialias=1, exclude=1)
    resize(f"{mode}_exclude_outside", normal(1, 1, 5, 4), mode, "half_pixel", sizes=[7, 9], exclude=1)
    resize(f"{mode}_single", normal(1, 1, 4, 3), mode, "pytorch_half_pixel", sizes=[1, 1])
resize("cubic_half", normal(1, 1, 4, 4), "cubic", "half_pixel", scales=[0.8, 2.5], cubic=-0.5)
resize("single_aligned", normal(1, 1, 4, 3), "linear", "align_corners", sizes=[1, 2])
roi = np.array([0.2, -0.3, 0.9, 1.4], "float32")
resize("region_linear", normal(1, 1, 5, 6), "linear", "tf_crop_and_resize", sizes=[4, 7], roi=roi, extrapolation=7.5)
resize("region_cubic", normal(1, 1, 5, 6), "cubic", "tf_crop_and_resize", sizes=[4, 7], roi=roi, extrapolation=-1.0)
resize("region_single", normal(1, 1, 5, 6), "linear", "tf_crop_and_resize", sizes=[1, 3], roi=roi)
resize("region_nearest", normal(1, 1, 6, 6), "nearest", "tf_crop_and_resize", sizes=[5, 4], roi=roi, extrapolation=3.0)

# Grid sampling: reference evaluator (coordinates in f32, as onnxruntime).
for mode in ("linear", "nearest", "cubic"):
    for outside in ("zeros", "border", "reflection"):
        for align in (0, 1):
            for d, sizes, out in [(2, (4, 5), (3, 4)), (3, (3, 2, 4), (2, 2, 3))]:
                if d == 3 and mode == "cubic":
                    continue
                x = normal(2, 2, *sizes)
                grid = (rng.random((2, *out, d)) * 3.2 - 1.6).astype("float32")
                (y,) = reference("GridSample", [x, grid], mode=mode, padding_mode=outside, align_corners=align)
                text = f"mode={mode}, outside={outside}, align_corners={str(bool(align)).lower()}"
                tolerance = "exact" if mode == "nearest" else "within(2e-5, 2e-6)"
                cases.op("grid_sample", f"{mode}_{outside}_{align}_{d}d", text, [x, grid], [y], tolerance)
for align in (0, 1):
    for d, sizes in [(2, (3, 5)), (3, (2, 3, 4))]:
        theta = normal(2, d, d + 1)
        (y,) = reference("AffineGrid", [theta, np.array([2, 1, *sizes])], align_corners=align)
        cases.op("affine_grid", f"{align}_{d}d", f"sizes={list(sizes)}, align_corners={str(bool(align)).lower()}",
                 [theta], [y], "within(2e-6, 1e-6)")

# Regions.
for mode in ("avg", "max"):
    for half in (0, 1):
        for ratio in (0, 2):
            x = np.abs(normal(2, 3, 8, 9))
            rois = np.array([[0, 0, 7, 5], [2.3, 1.2, 13.1, 15.9], [-6, -4, 3, 4], [5, 5, 5.2, 5.1]], "float32")
            batch = np.array([0, 1, 1, 0])
            (y,) = reference("RoiAlign", [x, rois, batch], mode=mode, output_height=3, output_width=2,
                             sampling_ratio=ratio, spatial_scale=0.7, opset=22,
                             coordinate_transformation_mode="half_pixel" if half else "output_half_pixel")
            text = (f"height=3, width=2, sampling_ratio={ratio}, spatial_scale={float(np.float32(0.7))}, "
                    f"half_pixel={str(bool(half)).lower()}, mode={mode}")
            cases.op("roi_align", f"{mode}_{half}_{ratio}", text, [x, rois, batch], [y], "within(3e-6, 3e-6)")
x = normal(2, 2, 6, 7)
rois = np.array([[0, 0, 0, 6, 5], [1, 2, 1, 4, 9], [1, 8, 8, 9, 9], [0, 3, 3, 2, 2]], "float32")
(y,) = run("MaxRoiPool", [x, rois], pooled_shape=[3, 2], spatial_scale=0.8, opset=21)
cases.op("max_roi_pool", "plain", f"height=3, width=2, spatial_scale={float(np.float32(0.8))}", [x, rois], [y])

# Rearrangements.
x = np.arange(2 * 8 * 4 * 6, dtype="float32").reshape(2, 8, 4, 6)
for order in ("DCR", "CRD"):
    (y,) = reference("DepthToSpace", [x], blocksize=2, mode=order, opset=28)
    cases.op("depth_to_space", order.lower(), f"block=2, order={order.lower()}", [x], [y])
    (y,) = reference("SpaceToDepth", [x], blocksize=2, mode=order, opset=28)
    cases.op("space_to_depth", order.lower(), f"block=2, order={order.lower()}", [x], [y])
x = rng.integers(0, 99, (2, 3, 4)).astype("int32")
cases.op("tile", "plain", "repeats=[2, 1, 3]", [x], [np.tile(x, (2, 1, 3))])
cases.op("tile", "nothing", "repeats=[1, 0, 1]", [x], [np.tile(x, (1, 0, 1))])
cases.op("repeat_elements", "plain", "repeats=3, axis=-2", [x], [np.repeat(x, 3, 1)])
cases.op("roll", "both_ways", "shifts=[5, -1], axes=[1, 2]", [x], [np.roll(x, (5, -1), (1, 2))])
for op, mode in [("reflect", "reflect"), ("symmetric", "symmetric"), ("edge", "edge"), ("wrap", "wrap")]:
    y = np.pad(x, [(0, 0), (2, 1), (3, 2)], mode)
    cases.op(f"pad_{op}", "plain", "low=[0, 2, 3], high=[0, 1, 2]", [x], [y])
    y = np.pad(x, [(0, 0), (7, 8), (0, 11)], mode)
    cases.op(f"pad_{op}", "longer_than_the_axis", "low=[0, 7, 0], high=[0, 8, 11]", [x], [y])
    y = np.pad(x, [(0, 0), (0, 0), (0, 2)], mode)[:, 1:, :]
    cases.op(f"pad_{op}", "crop", "low=[0, -1, 0], high=[0, 0, 2]", [x], [y])
    one = x[:, :1]
    y = np.pad(one, [(0, 0), (2, 1), (0, 0)], mode)
    cases.op(f"pad_{op}", "single_element", "low=[0, 2, 0], high=[0, 1, 0]", [one], [y])
x = normal(3, 7, 4)
for name, axes, sizes in [("crop", [0, 1], [2, 4]), ("pad", [1, 2], [10, 7]), ("both", [0, 1, 2], [6, 2, 4])]:
    (y,) = reference("CenterCropPad", [x, np.array(sizes)], axes=axes)
    cases.op("center_crop_pad", name, f"axes={axes}, sizes={sizes}", [x], [y])
indices = np.array([[0, 3, -1], [4, -5, 2]])
for axis in (0, 1, -1):
    (y,) = reference("OneHot", [indices, np.array(4), np.array([-2.0, 5.0], "float32")], axis=axis)
    cases.op("one_hot", f"axis_{axis}", f"depth=4, axis={axis}", [indices, np.float32(-2), np.float32(5)], [y])
x = normal(4, 3, 5)
lengths = np.array([5, 0, 1, 3])
(y,) = reference("ReverseSequence", [x, lengths], batch_axis=0, time_axis=2)
expected = np.array([np.concatenate([s[:, :n][:, ::-1], s[:, n:]], 1) for s, n in zip(x, lengths)])
cases.op("reverse_sequence", "batch_first", "batch_axis=0, time_axis=2", [x, lengths], [expected])

# Selections.
x = rng.integers(-2, 3, (4, 5)).astype("int32")
condition = np.array([True, False, True])
for axis in (None, 0, 1):
    y = np.compress(condition, x, axis)
    text = "count=n" if axis is None else f"axis={axis}, count=n"
    cases.op("compress", f"axis_{axis}", text, [x, condition], [y])


def unique(x, axis, unsorted):
    """numpy sorts; the order of first occurrence is that of the indices."""
    y, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.ravel()
    if unsorted:
        order = np.argsort(first)
        rank = np.argsort(order)
        y, first, inverse, counts = np.take(y, order, axis or 0), first[order], rank[inverse], counts[order]
    return [y, first, inverse, counts]


for name, x, axis in [
    ("flat", rng.integers(-2, 3, (4, 5)).astype("int32"), None),
    ("floats", np.array([2.0, 1.0, 1.0, 3.0, 4.0, 3.0], "float32"), None),
    ("rows", np.array([[1, 0, 0], [1, 0, 0], [2, 3, 4], [1, -1, 9]], "float32"), 0),
    ("columns", rng.integers(0, 2, (2, 9)).astype("int64"), 1),
    ("slices", rng.integers(0, 2, (2, 7, 2)).astype("int64"), 1),
    ("empty", np.zeros((0,), "float32"), None),
]:
    for unsorted in (False, True):
        text = (f"axis={axis}, " if axis is not None else "") + f"unsorted={str(unsorted).lower()}, count=n"
        cases.op("unique", f"{name}_{'first' if unsorted else 'sorted'}", text, [x], unique(x, axis, unsorted))
cases.write(__file__, VERSIONS)
