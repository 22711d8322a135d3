"""Convolutions: values and derivatives equal JAX's, on the evaluator and compiled."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from jax import numpy as jax_numpy
from support.against_jax import assert_close, compare, same_error
from support.op_programs import Results

import axir
from axir import lax
from axir import numpy as jnp
from axir.dialect.core.array import as_array
from axir.dialect.core.config import config
from axir.dialect.core.errors import AxirError, DTypeError, ParameterError, ShapeError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.convolution.conv_general_dilated import conv_general_dilated
from axir.dialect.ops.convolution.types import ConvolutionShapeError
from axir.dialect.program.function_tracing import trace_function

COUNT = 20


def draw(shape: Any, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng([seed, *shape])
    if np.dtype(dtype).kind in "iu":
        return generator.integers(0 if np.dtype(dtype).kind == "u" else -9, 10, shape).astype(dtype)
    values = generator.uniform(-2, 2, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * generator.uniform(-2, 2, shape)
    return values.astype(dtype)


def random_axis(rng: np.random.Generator) -> dict[str, Any]:
    """A spatial dimension: extents and parameters such that there is a result."""
    while True:
        size, window = (int(rng.integers(1, limit)) for limit in (8, 5))
        low, high = (int(pad) for pad in rng.integers(-2, 4, 2))
        stride, operand_dilation, dilation = (int(v) for v in rng.integers(1, 4, 3))
        base = (size - 1) * operand_dilation + 1 + low + high
        if base >= (window - 1) * dilation + 1:
            return {
                "size": size, "window": window, "window_strides": stride, "padding": (low, high),
                "lhs_dilation": operand_dilation, "rhs_dilation": dilation,
            }  # fmt: skip


def random_case(seed: int) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    """Shapes of the operands and all parameters of a convolution."""
    rng = np.random.default_rng(seed)
    groups = [(1, 1), (2, 1), (3, 1), (1, 2), (1, 3)][seed % 5]
    axes = [random_axis(rng) for _ in range(seed % 4)]
    batch, features, outputs = (int(n) for n in rng.integers(1, 4, 3))
    lhs = [batch * groups[1], features * groups[0], *(axis["size"] for axis in axes)]
    rhs = [outputs * groups[0] * groups[1], features, *(axis["window"] for axis in axes)]
    specs = [tuple(int(n) for n in rng.permutation(len(lhs))) for _ in range(3)]
    params: dict[str, Any] = {
        name: tuple(axis[name] for axis in axes)
        for name in ("window_strides", "padding", "lhs_dilation", "rhs_dilation")
    }
    params["dimension_numbers"] = specs
    params["feature_group_count"], params["batch_group_count"] = groups
    lhs_shape = tuple(lhs[specs[0].index(axis)] for axis in range(len(lhs)))
    rhs_shape = tuple(rhs[specs[1].index(axis)] for axis in range(len(rhs)))
    return lhs_shape, rhs_shape, params


def ours(params: dict[str, Any]) -> Any:
    numbers = lax.ConvDimensionNumbers(*params["dimension_numbers"])
    return lambda x, k: lax.conv_general_dilated(x, k, **{**params, "dimension_numbers": numbers})


def theirs(params: dict[str, Any]) -> Any:
    numbers = jax.lax.ConvDimensionNumbers(*params["dimension_numbers"])
    return lambda x, k: jax.lax.conv_general_dilated(
        x, k, **{**params, "dimension_numbers": numbers}, precision="highest"
    )


# Values and derivatives ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_convolutions_and_their_gradients_equal_those_of_jax(seed: int) -> None:
    lhs_shape, rhs_shape, params = random_case(seed)
    lhs, rhs = draw(lhs_shape), draw(rhs_shape, seed=1)
    expected, their_pullback = jax.vjp(theirs(params), lhs, rhs)
    result, pullback = axir.vjp(ours(params), lhs, rhs)
    ct = draw(expected.shape, seed=2)
    got = [result, *pullback(as_array(ct))]
    for mine, other in zip(got, [expected, *their_pullback(ct)], strict=True):
        assert mine.shape == other.shape
        assert_close(np.asarray(mine), np.asarray(other), 32, str(params))


@pytest.mark.parametrize("seed", range(0, COUNT, 3))
@pytest.mark.parametrize("axes", [(0, None), (None, 1), (1, 0)])
def test_random_batches_equal_a_loop(seed: int, axes: Any) -> None:
    lhs_shape, rhs_shape, params = random_case(seed)
    function = ours(params)
    operands = [draw((3, *lhs_shape)), draw((3, *rhs_shape), seed=1)]
    moved = [
        as_array(x[0] if axis is None else np.moveaxis(x, 0, axis))
        for x, axis in zip(operands, axes, strict=True)
    ]
    loop = [
        function(*(x[0 if axis is None else i] for x, axis in zip(operands, axes, strict=True)))
        for i in range(3)
    ]
    result = axir.vmap(function, axes)(*moved)
    assert_close(np.asarray(result), np.stack(loop), 16)


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
@pytest.mark.parametrize("groups", [(1, 1), (2, 1), (1, 2)])
def test_a_batch_of_no_convolutions_is_empty(axes: Any, groups: Any) -> None:
    shapes = [(2, 2, 5), (2, 2 // groups[0], 3)]
    operands = [
        as_array(np.ones((0, *shape) if axis == 0 else shape, np.float32))
        for shape, axis in zip(shapes, axes, strict=True)
    ]
    result = axir.vmap(
        lambda x, k: lax.conv_general_dilated(
            x, k, (1,), "VALID", feature_group_count=groups[0], batch_group_count=groups[1]
        ),
        axes,
    )(*operands)
    assert (result.shape, result.dtype) == ((0, 2 // groups[1], 2, 3), np.float32)


def test_compiled_gradients_of_random_convolutions() -> None:
    functions, operands, expected = {}, {}, {}
    for seed in range(100, 110):
        lhs_shape, rhs_shape, params = random_case(seed)

        def gradients(x: Any, k: Any, ct: Any, params: Any = params) -> list[Any]:
            result, pullback = axir.vjp(ours(params), x, k)
            return [result, *pullback(ct)]

        lhs, rhs = draw(lhs_shape), draw(rhs_shape, seed=1)
        ct = draw(ours(params)(lhs, rhs).shape, seed=2)
        name = f"conv_{seed}"
        types = [ShapedArray(x.shape, x.dtype) for x in (lhs, rhs, ct)]
        functions[name] = trace_function(gradients, types, name=name)
        operands[name] = [lhs, rhs, ct]
        expected[name] = gradients(*map(as_array, (lhs, rhs, ct)))
    results = Results({name: (functions[name], values) for name, values in operands.items()})
    assert not results.failures
    for name in operands:
        for mine, other in zip(results[name], expected[name], strict=True):
            assert_close(np.asarray(mine), np.asarray(other), 32, name)


# dtypes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "preferred"),
    [
        (np.float16, None), (ml_dtypes.bfloat16, None), (ml_dtypes.bfloat16, np.float32),
        (np.float16, ml_dtypes.bfloat16), (np.int8, None), (np.int8, np.int32),
        (np.int8, np.float32), (np.uint8, np.uint32), (np.int32, None), (np.complex64, None),
        (np.bool_, None),
    ],
)  # fmt: skip
def test_dtypes_equal_those_of_jax(dtype: Any, preferred: Any) -> None:
    lhs, rhs = draw((2, 3, 9), dtype), draw((4, 3, 4), dtype, 1)
    compare(
        lax.conv, jax.lax.conv, lhs, rhs, (2,), "SAME", preferred_element_type=preferred, factor=8
    )


def test_wide_results_of_narrow_operands_are_computed_wide() -> None:
    tiny = np.float32(2.0**-30)
    lhs = np.array([1, tiny], np.float32).reshape(1, 2, 1)
    rhs = np.ones((1, 2, 1), np.float32)
    with config(jax_enable_x64=True):
        result = lax.conv(lhs, rhs, (1,), "VALID", preferred_element_type=np.float64)
        compiled = axir.jit(
            lambda x, k: lax.conv(x, k, (1,), "VALID", preferred_element_type=np.float64)
        )(lhs, rhs)
    assert result.item() == compiled.item() == 1 + 2.0**-30


def test_half_precision_accumulates_in_float32() -> None:
    ones = np.ones((1, 1, 5000), np.float16)
    assert lax.conv(ones, ones, (1,), "VALID").item() == 5000
    assert axir.jit(lambda x: lax.conv(x, x, (1,), "VALID"))(ones).item() == 5000


def test_cotangents_have_the_dtype_of_the_operands() -> None:
    lhs, rhs = draw((1, 2, 5), ml_dtypes.bfloat16), draw((3, 2, 2), ml_dtypes.bfloat16)
    result, pullback = axir.vjp(
        lambda x, k: lax.conv(x, k, (1,), "VALID", preferred_element_type=np.float32), lhs, rhs
    )
    assert result.dtype == np.float32
    assert {ct.dtype.name for ct in pullback(jnp.ones_like(result))} == {"bfloat16"}


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_narrow_integers_wrap(dtype: Any) -> None:
    limit = np.iinfo(dtype).min
    x = np.full((1, 3, 6), limit, dtype)
    k = np.full((1, 3, 2), limit + 1, dtype)
    exact = 6 * int(limit) * (int(limit) + 1)
    result = np.asarray(lax.conv(x, k, (1,), "VALID"))
    np.testing.assert_array_equal(result, np.full((1, 1, 5), exact).astype(dtype))


# Sizes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lhs_shape", "rhs_shape", "params"),
    [
        ((3, 4), (5, 4), {"window_strides": (), "padding": "SAME"}),
        ((0, 2, 5), (3, 2, 2), {"window_strides": (1,), "padding": "VALID"}),
        ((2, 2, 5), (0, 2, 2), {"window_strides": (1,), "padding": "VALID"}),
        ((2, 0, 5), (3, 0, 2), {"window_strides": (1,), "padding": "VALID"}),
        ((2, 2, 0), (3, 2, 2), {"window_strides": (1,), "padding": [(2, 1)]}),
        ((2, 2, 3), (3, 2, 5), {"window_strides": (1,), "padding": "VALID"}),
        ((2, 2, 4), (3, 2, 2), {"window_strides": (1,), "padding": [(-9, 7)]}),
        ((2, 2, 1), (3, 2, 2), {"window_strides": (4,), "padding": [(1, 9)]}),
    ],
)
def test_small_and_empty_operands(lhs_shape: Any, rhs_shape: Any, params: Any) -> None:
    lhs, rhs = draw(lhs_shape), draw(rhs_shape, seed=1)
    compare(lax.conv_general_dilated, jax.lax.conv_general_dilated, lhs, rhs, **params, factor=8)
    result, pullback = axir.vjp(lambda x, k: lax.conv_general_dilated(x, k, **params), lhs, rhs)
    _, their_pullback = jax.vjp(lambda x, k: jax.lax.conv_general_dilated(x, k, **params), lhs, rhs)
    ct = draw(result.shape)
    for mine, other in zip(pullback(as_array(ct)), their_pullback(ct), strict=True):
        assert_close(np.asarray(mine), np.asarray(other), 8)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "HWCN"])
@pytest.mark.parametrize("groups", [1, 32])
def test_large_operands_are_evaluated_in_pieces(layout: str, groups: int) -> None:
    numbers = (layout, "OIHW", layout)
    sizes = {"N": 3, "C": 32, "H": 41, "W": 39}
    lhs = draw(tuple(sizes[letter] for letter in layout))
    rhs = draw((32, 32 // groups, 5, 5), seed=1)
    options = {"dimension_numbers": numbers, "feature_group_count": groups}
    result = lax.conv_general_dilated(lhs, rhs, (1, 1), "SAME", **options)
    expected = jax.lax.conv_general_dilated(lhs, rhs, (1, 1), "SAME", **options)
    assert_close(np.asarray(result), np.asarray(expected), 64)


# Functions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("padding", ["SAME", "VALID", "SAME_LOWER", "same", [(1, 2), (-1, 3)]])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
@pytest.mark.parametrize("dilation", [None, (2, 1)])
def test_padding_by_name_and_by_pairs(padding: Any, strides: Any, dilation: Any) -> None:
    numbers = ("NHWC", "HWIO", "NCWH")
    lhs, rhs = draw((2, 8, 7, 3)), draw((3, 2, 3, 4), seed=1)
    compare(
        lax.conv_general_dilated, jax.lax.conv_general_dilated, lhs, rhs, strides, padding,
        rhs_dilation=dilation, dimension_numbers=numbers, factor=16,
    )  # fmt: skip


@pytest.mark.parametrize("is_consistent", [False, True])
@pytest.mark.parametrize("transpose_kernel", [False, True])
@pytest.mark.parametrize(
    ("strides", "padding"),
    [
        *itertools.product([(1, 1), (2, 3), (5, 1)], ["SAME", "VALID"]),
        ((2, 1), [(1, 2), (0, 3)]),
        ((1, 2), [(-1, 2), (0, 0)]),
    ],
)
def test_transposed_convolutions(
    strides: Any, padding: Any, transpose_kernel: bool, is_consistent: bool
) -> None:
    lhs = draw((2, 5, 6, 3))
    rhs = draw((3, 4, 2, 3) if transpose_kernel else (3, 4, 3, 2), seed=1)
    for dilation in (None, (2, 1)):
        compare(
            lax.conv_transpose, jax.lax.conv_transpose, lhs, rhs, strides, padding, dilation,
            transpose_kernel=transpose_kernel, use_consistent_padding=is_consistent, factor=16,
        )  # fmt: skip


@pytest.mark.parametrize("count", range(4))
def test_usual_dimension_numbers_of_transposed_convolutions(count: int) -> None:
    lhs, rhs = draw((2, *range(4, 4 + count), 3)), draw((*(3, 2, 2)[:count], 3, 2), seed=1)
    compare(
        lax.conv_transpose, jax.lax.conv_transpose, lhs, rhs, (2, 1, 3)[:count], "SAME", factor=16
    )


def test_transposed_convolution_with_transposed_kernel_is_the_adjoint() -> None:
    kernel, ct = draw((3, 3, 2, 4)), draw((1, 4, 3, 4), seed=1)
    numbers = ("NHWC", "HWIO", "NHWC")
    padding = [(1, 1), (0, 1)]
    _, pullback = axir.vjp(
        lambda x: lax.conv_general_dilated(x, kernel, (2, 2), padding, dimension_numbers=numbers),
        jnp.zeros((1, 7, 6, 2)),
    )
    (adjoint,) = pullback(as_array(ct))
    result = lax.conv_transpose(
        ct, kernel, (2, 2), padding, transpose_kernel=True, use_consistent_padding=True
    )
    assert_close(np.asarray(result), np.asarray(adjoint)[:, : result.shape[1], : result.shape[2]])


PATCHES = [
    ((2, 3, 8, 9), (3, 2), (1, 2), "VALID", {}),
    ((2, 3, 8, 9), (3, 2), (2, 1), "SAME", {"rhs_dilation": (2, 3)}),
    ((2, 3, 5, 4), (2, 2), (2, 1), [(1, 0), (-1, 2)], {"lhs_dilation": (3, 2)}),
    ((2, 8, 9, 3), (1, 4), (1, 1), "SAME", {"dimension_numbers": ("NHWC", "HWIO", "NWHC")}),
    ((2, 8, 9, 3), (2, 4), (1, 1), "VALID", {"dimension_numbers": ("NHWC", "IWHO", "NCHW")}),
    ((2, 3), (), (), "VALID", {}),
]


@pytest.mark.parametrize(("shape", "window", "strides", "padding", "options"), PATCHES)
def test_patches(shape: Any, window: Any, strides: Any, padding: Any, options: Any) -> None:
    for dtype, preferred in ((np.float32, None), (np.int8, np.int32)):
        compare(
            lax.conv_general_dilated_patches, jax.lax.conv_general_dilated_patches,
            draw(shape, dtype), window, strides, padding, **options,
            preferred_element_type=preferred,
        )  # fmt: skip


@pytest.mark.parametrize(("shape", "window", "strides", "padding", "options"), PATCHES[:-1])
def test_convolutions_with_a_kernel_for_each_position(
    shape: Any, window: Any, strides: Any, padding: Any, options: Any
) -> None:
    patches = jax.lax.conv_general_dilated_patches(
        np.zeros(shape, np.float32), window, strides, padding, **options
    )
    _, rhs_spec, out_spec = lax.conv_dimension_numbers(
        shape, shape, options.get("dimension_numbers")
    )
    sizes = [5, *(patches.shape[axis] for axis in out_spec[1:])]
    rhs = draw(tuple(sizes[rhs_spec.index(axis)] for axis in range(4)), seed=1)
    compare(
        lax.conv_general_dilated_local, jax.lax.conv_general_dilated_local, draw(shape), rhs,
        strides, padding, window, **options, factor=16,
    )  # fmt: skip


def test_patches_can_be_differentiated_and_hold_infinities() -> None:
    x = draw((1, 2, 6))
    function = lambda lib: lambda x: lib.conv_general_dilated_patches(x, (3,), (2,), "SAME").sum()  # noqa: E731
    np.testing.assert_allclose(
        axir.grad(function(lax))(x), jax.grad(function(jax.lax))(x), rtol=1e-6
    )
    x[0, 0, 0] = np.inf
    patches = np.asarray(lax.conv_general_dilated_patches(x, (2,), (1,), "VALID"))
    assert np.isinf(patches).sum() == 1
    assert not np.isnan(patches).any()


def test_shapes() -> None:
    numbers = ("NHC", "HIO", "NCH")
    for name, arguments in {
        "conv_shape_tuple": ((4, 2, 8), (6, 2, 3), (2,), [(1, 0)], 2),
        "conv_general_shape_tuple": ((1, 8, 2), (3, 2, 3), (2,), "SAME", numbers),
        "conv_transpose_shape_tuple": ((1, 8, 2), (3, 2, 3), (2,), "VALID", numbers),
        "conv_general_permutations": (numbers,),
        "padtype_to_pads": ((10, 3), (3, 2), (2, 1), "SAME_LOWER"),
    }.items():
        expected = getattr(jax.lax, name)(*arguments)
        assert getattr(lax, name)(*arguments) == expected


def test_dimension_numbers() -> None:
    shape = (1, 2, 3, 4)
    for given in (("NHWC", "WHIO", "NCHW"), None, ["NCHW", "OIHW", "HWNC"]):
        expected = jax.lax.conv_dimension_numbers(shape, shape, given)
        result = lax.conv_dimension_numbers(shape, shape, given)
        assert tuple(result) == tuple(expected)
        assert lax.conv_dimension_numbers(shape, shape, result) == result


# A network -------------------------------------------------------------------------------------


def loss(library: Any, numpy: Any, parameters: Any, images: Any, labels: Any) -> Any:
    """A small convolutional network: convolution, depthwise convolution, mean, cross entropy."""
    numbers = ("NHWC", "HWIO", "NHWC")
    x = library.conv_general_dilated(
        images, parameters["first"], (2, 2), "SAME", dimension_numbers=numbers
    )
    x = numpy.maximum(x + parameters["bias"], 0)
    x = library.conv_general_dilated(
        x, parameters["depthwise"], (1, 1), "VALID", rhs_dilation=(2, 2),
        dimension_numbers=numbers, feature_group_count=x.shape[-1],
    )  # fmt: skip
    logits = numpy.tanh(x).mean((1, 2)) @ parameters["last"]
    largest = logits.max(1, keepdims=True)
    logarithms = logits - largest - numpy.log(numpy.exp(logits - largest).sum(1, keepdims=True))
    return -numpy.mean(numpy.sum(logarithms * labels, 1))


@pytest.mark.parametrize("is_compiled", [False, True])
def test_network_and_its_gradient_equal_those_of_jax(is_compiled: bool) -> None:
    parameters = {
        "first": draw((3, 3, 3, 8)),
        "bias": draw((8,)),
        "depthwise": draw((2, 2, 1, 16)),
        "last": draw((16, 5)),
    }
    images, labels = draw((4, 12, 13, 3)), np.eye(5, dtype=np.float32)[:4]
    function = axir.value_and_grad(lambda p: loss(lax, jnp, p, images, labels))
    value, gradient = (axir.jit(function) if is_compiled else function)(parameters)
    expected, their_gradient = jax.value_and_grad(
        lambda p: loss(jax.lax, jax_numpy, p, images, labels)
    )(parameters)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for name, theirs_ in their_gradient.items():
        assert_close(np.asarray(gradient[name]), np.asarray(theirs_), 64, name)


# Errors ----------------------------------------------------------------------------------------

X, K = np.zeros((1, 2, 8), np.float32), np.zeros((3, 2, 3), np.float32)
MISTAKES = [
    (X, K.astype(np.int32), {}, DTypeError, "equal dtype"),
    (X, K, {"preferred_element_type": ml_dtypes.bfloat16}, DTypeError, "preferred_element_type"),
    (X, K, {"preferred_element_type": np.int32}, DTypeError, "preferred_element_type"),
    (X, K[..., None], {}, ShapeError, "number of dimensions"),
    (X, K[:, :1], {}, ConvolutionShapeError, "input features of rhs"),
    (X, K, {"window_strides": (1, 1)}, ConvolutionShapeError, "window_strides (1, 1)"),
    (X, K, {"window_strides": (0,)}, ConvolutionShapeError, "window_strides (0,)"),
    (X, K, {"rhs_dilation": (0,)}, ConvolutionShapeError, "rhs_dilation (0,)"),
    (X, K, {"lhs_dilation": (0,)}, ConvolutionShapeError, "lhs_dilation (0,)"),
    (X, K, {"padding": 3}, ParameterError, "padding 3"),
    (X, K, {"padding": [1]}, ParameterError, "padding [1]"),
    (X, K, {"padding": [(1, 1), (1, 1)]}, ParameterError, "each of the 1 spatial dimensions"),
    (X, K, {"padding": [(-9, -5)]}, ConvolutionShapeError, "cuts more off"),
    (X, K, {"padding": "SAME", "lhs_dilation": (2,)}, ParameterError, "conv_transpose"),
    (X, K[..., :0], {}, ConvolutionShapeError, "no elements"),
    (X, K, {"feature_group_count": 2}, ConvolutionShapeError, "feature_group_count 2"),
    (X, K, {"feature_group_count": 0}, ConvolutionShapeError, "feature_group_count 0"),
    (X, K, {"batch_group_count": 3}, ConvolutionShapeError, "batch of 1"),
    (X, K, {"dimension_numbers": 5}, ShapeError, "dimension_numbers"),
    (X, K, {"dimension_numbers": ("NCH", "OIH")}, ShapeError, "dimension_numbers"),
    (X, K, {"dimension_numbers": ("NCH", "OIH", "NCX")}, ShapeError, "same spatial dimensions"),
    (X, K, {"dimension_numbers": ("NHH", "OIH", "NCH")}, ShapeError, "'NHH'"),
    (X, K, {"dimension_numbers": ("NCHW", "OIH", "NCH")}, ShapeError, "'NCHW'"),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("lhs", "rhs", "changes", "kind", "text"), MISTAKES)
def test_errors_name_the_argument(
    lhs: Any, rhs: Any, changes: Any, kind: type[AxirError], text: str
) -> None:
    arguments = {"window_strides": (1,), "padding": "VALID", **changes}
    error = same_error(
        lax.conv_general_dilated, jax.lax.conv_general_dilated, lhs, rhs, **arguments
    )
    assert isinstance(error, kind)
    assert text in str(error)
    assert error.way_out


def test_padding_without_a_known_name() -> None:
    with pytest.raises(ParameterError, match="'SAM'.*\\n.*\\n.*SAME_LOWER") as caught:
        lax.conv(X, K, (1,), "SAM")
    assert isinstance(caught.value, RuntimeError)  # as JAX's


def test_groups_of_both_kinds_exclude_each_other() -> None:
    x, k = np.zeros((2, 4, 8), np.float32), np.zeros((4, 2, 3), np.float32)
    with pytest.raises(ConvolutionShapeError, match="both greater than 1"):
        lax.conv_general_dilated(x, k, (1,), "SAME", feature_group_count=2, batch_group_count=2)


def test_transposed_convolutions_of_many_dimensions_need_dimension_numbers() -> None:
    with pytest.raises(ConvolutionShapeError, match="dimension_numbers"):
        lax.conv_transpose(np.zeros((1,) * 6), np.zeros((1,) * 6), (1,) * 4, "SAME")


def test_the_function_names_its_primitive() -> None:
    assert conv_general_dilated.primitive.name == "conv_general_dilated"
    text = str(axir.make_jaxpr(lambda x, k: lax.conv(x, k, (1,), "SAME"))(X, K))
    assert "conv_general_dilated" in text
