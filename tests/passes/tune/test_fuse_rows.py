"""`fuse-rows`: reductions, and the operations around them, as kernels that go through rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.stablehlo_runner import Example, build, text_after

import axir
import axir.numpy as jnp
from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.config import config
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)
PASS = "fuse-rows"
# Odd in all directions, and large enough for kernels.
ROWS, COLUMNS = 331, 117


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


def special(*shape: int) -> np.ndarray:
    x = normal(*shape)
    x[3, 5], x[4, -1], x[9, 0], x[-1, -1], x[11] = np.nan, np.inf, -np.inf, np.nan, -np.inf
    x[20], x[25, 7] = 0.0, -0.0
    return x


def ties(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.integers(-2, 3, shape).astype(dtype)


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    centred = x - mean
    variance = (centred**2).mean(-1, keepdims=True)
    return centred * axir.lax.rsqrt(variance + 1e-5) * scale + shift


def batch_norm(x: Any) -> Any:
    axes = tuple(range(x.ndim - 1))
    return (x - x.mean(axes)) / jnp.sqrt(x.var(axes) + 1e-5)


def masked_softmax(x: Any, mask: Any) -> Any:
    return axir.nn.softmax(jnp.where(mask, x, -1e9), axis=-1)


def in_loop(x: Any) -> Any:
    return axir.lax.fori_loop(0, 3, lambda i, y: axir.nn.softmax(y) + i, x)


def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    def of_sum(*arguments: Any) -> Any:
        return (function(*arguments) * jnp.cos(arguments[0])).sum()

    return lambda *arguments: axir.grad(of_sum, tuple(range(len(arguments))))(*arguments)


def every_operation(x: Any, y: Any, i: Any) -> Any:
    """Each operation that a kernel supports, on floats, integers and booleans."""
    truth, other = x > y, ~(x <= 0.5)
    positive = jnp.abs(x) + 0.25
    floats = [
        jnp.ceil(x), jnp.floor(x), jnp.exp(x), jnp.log(positive), jnp.maximum(x, y),
        jnp.minimum(x, y), -x, axir.lax.rsqrt(positive), jnp.sqrt(positive), x - y, x * y,
        x / positive, jnp.tanh(x), axir.nn.sigmoid(x), jnp.where(truth, x, y),
        axir.lax.clamp(-0.5, x, 0.5), i.astype(x.dtype), (i > 3).astype(x.dtype),
    ]  # fmt: skip
    integers = [
        i & 5, i | 8, i ^ 3, i + 1, i - 2, i * 3, -i, ~i, jnp.maximum(i, 1), jnp.minimum(i, 2),
        (truth & other).astype(jnp.int32), (truth | other).astype(jnp.int32), truth ^ other,
        (i == 2), (i != 2), (i < 1), (i >= 1), i.astype(jnp.uint8), i.astype(jnp.int16),
        (i.astype(jnp.uint32) > 7), (i != 0), x == y, x != y, x >= y, x < y,
    ]  # fmt: skip
    return [z.sum(1) for z in floats], [z.astype(jnp.int32).sum(0) for z in integers]


def reductions() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    kinds = {"sum": jnp.sum, "max": jnp.max, "min": jnp.min, "prod": jnp.prod}
    shapes = {
        "rows": ((ROWS, COLUMNS), 1),
        "columns": ((ROWS, COLUMNS), 0),
        "all": ((ROWS, COLUMNS), None),
        "middle": ((5, 67, 129), 1),
        "middle_narrow": ((31, 61, 18), 1),
        "last_two": ((67, 5, 129), (1, 2)),
        "first_two": ((67, 5, 129), (0, 1)),
        "apart": ((19, 35, 3, 33), (1, 3)),
        "many_rows": ((70001, 17), 0),
        "one_column_more": ((2049, 16), 0),
    }
    return {
        f"{kind}_{name}": (lambda x, f=f, axes=axes: f(x, axis=axes), (ties(*shape),))
        for kind, f in kinds.items()
        for name, (shape, axes) in shapes.items()
        if kind in ("sum", "max") or name in ("rows", "columns", "middle")
    }


def dtypes() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    kinds = (
        np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
        np.float16, ml_dtypes.bfloat16, np.float32, np.float64,
    )  # fmt: skip

    def both(x: Any) -> Any:
        return x.max(1), x.min(0), jnp.argmax(x, 0), jnp.argmin(x, 1), jnp.sum(x, 0)

    found = {}
    for dtype in kinds:
        x = RNG.integers(0, 120, (ROWS, COLUMNS)).astype(dtype)
        if np.dtype(dtype).kind in "iu":
            info = np.iinfo(dtype)
            x[::7] = RNG.integers(info.min, info.max, x[::7].shape, dtype, endpoint=True)
        found[f"dtype_{np.dtype(dtype)}"] = (both, (x,))
    return found


X = normal(ROWS, COLUMNS)
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **reductions(),
    **dtypes(),
    "special_max": (lambda x: (x.max(0), x.max(1), x.min(0), x.min(1)), (special(ROWS, COLUMNS),)),
    "special_sum": (lambda x: (x.sum(0), x.sum(1), x.sum()), (special(ROWS, COLUMNS),)),
    "special_argmax": (
        lambda x: (jnp.argmax(x, 0), jnp.argmin(x, 1), jnp.argmax(x)),
        (special(ROWS, COLUMNS),),
    ),
    "special_softmax": (axir.nn.softmax, (special(ROWS, COLUMNS),)),
    "argmax_ties": (
        lambda x: (jnp.argmax(x, 0), jnp.argmax(x, 1), jnp.argmin(x), jnp.argmax(-x)),
        (ties(ROWS, COLUMNS),),
    ),
    "argmax_middle": (
        lambda x: (jnp.argmax(x, 1), jnp.argmax(x, 2), jnp.argmax(x, 0)),
        (ties(7, 31, 155),),
    ),
    "argmax_line": (lambda x: (jnp.argmax(x), jnp.argmin(x)), (ties(40001),)),
    "softmax": (axir.nn.softmax, (X,)),
    "softmax_down": (lambda x: axir.nn.softmax(x, axis=0), (X,)),
    "log_softmax": (axir.nn.log_softmax, (X,)),
    "logsumexp": (lambda x: axir.nn.logsumexp(x, axis=-1), (X,)),
    "softmax_gradient": (gradient(axir.nn.softmax), (X,)),
    "long_rows": (axir.nn.softmax, (normal(20, 5003),)),
    "masked": (
        masked_softmax,
        (normal(3, 4, 61, 67), RNG.integers(0, 2, (61, 67)).astype(bool)),
    ),
    "masked_rows": (
        masked_softmax,
        (normal(3, 4, 61, 67), RNG.integers(0, 2, (3, 1, 1, 67)).astype(bool)),
    ),
    "masked_inner": (lambda x, y: (x + y).max(-1), (normal(3, 4, 61, 67), normal(4, 1, 67))),
    "row_numbers": (lambda x, y: (x * y[:, None]).sum(1) - y, (X, normal(ROWS))),
    "spread_rows": (lambda x: (x - x.max(1, keepdims=True)).sum(0), (X,)),
    "layer_norm": (layer_norm, (X, normal(COLUMNS), normal(COLUMNS))),
    "layer_norm_gradient": (gradient(layer_norm), (X, normal(COLUMNS), normal(COLUMNS))),
    "batch_norm": (batch_norm, (normal(9, 10, 21, 24),)),
    "batch_norm_gradient": (gradient(batch_norm), (normal(9, 10, 21, 24),)),
    "variance": (lambda x: (x.var(0), x.var(1), x.var(), x.std(0)), (X,)),
    "bias": (lambda x, y: jnp.tanh(x + y).sum(0) + y, (X, normal(COLUMNS))),
    "halves": (lambda x: (x * 2).sum(1), (normal(ROWS, COLUMNS, dtype=ml_dtypes.bfloat16),)),
    "counted": (lambda x: (x > 0).sum(1), (X,)),
    "truths": (
        lambda x, y: [
            f(z, axis=axis)
            for f, z in ((jnp.any, x > 2.9), (jnp.all, x > -2.9), (jnp.any, y), (jnp.all, ~y))
            for axis in (0, 1, None)
        ],
        (special(ROWS, COLUMNS), RNG.uniform(size=(ROWS, COLUMNS)) > 0.999),
    ),
    "truths_apart": (
        lambda x: ((x > 2.5).any((1, 3)), (x > -2.5).all((0, 2)), (x > 9).any()),
        (normal(19, 35, 3, 33),),
    ),
    "begins_with_five": (
        lambda x: axir.lax.reduce(x, np.float32(5), axir.lax.add, (1,)),
        (ties(ROWS, COLUMNS),),
    ),
    "columns_begin_with_five": (
        lambda x: axir.lax.reduce(x, np.float32(5), axir.lax.add, (0,)),
        (ties(ROWS, COLUMNS),),
    ),
    "middle_begins_with_five": (
        lambda x: axir.lax.reduce(x, np.float32(5), axir.lax.add, (1,)),
        (ties(64, 40, 17),),
    ),
    "twice": (lambda x: axir.nn.softmax(axir.nn.softmax(x) @ np.eye(COLUMNS, dtype="f4")), (X,)),
    "chained": (lambda x: layer_norm(axir.nn.softmax(x) * 3, 1, 0), (X,)),
    "also_used": (lambda x: (jnp.exp(x), jnp.exp(x).sum(1), x + 1, (x + 1).sum(0)), (X,)),
    "in_loop": (in_loop, (X,)),
    "every_operation": (
        every_operation,
        (normal(ROWS, COLUMNS), normal(ROWS, COLUMNS), ties(ROWS, COLUMNS, dtype=np.int32)),
    ),
    "softmax_double": (axir.nn.softmax, (normal(ROWS, COLUMNS, dtype=np.float64),)),
    "softmax_half": (axir.nn.softmax, (normal(ROWS, COLUMNS, dtype=np.float16),)),
    "tanh_log_double": (
        lambda x: jnp.log(jnp.abs(jnp.tanh(x)) + 1).sum(1),
        (normal(ROWS, COLUMNS, dtype=np.float64),),
    ),
}


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    """Compiles all programs as one, because each module has a fixed cost."""
    with config(jax_enable_x64=True):
        return run_all()


def run_all() -> dict[str, list[np.ndarray]]:
    arguments = {name: tuple(map(jnp.asarray, given)) for name, (_, given) in PROGRAMS.items()}

    def everything(arguments: Any) -> Any:
        return {name: PROGRAMS[name][0](*given) for name, given in arguments.items()}

    found = axir.jit(everything)(arguments)
    return {name: list(map(np.asarray, axir.tree_util.tree_leaves(x))) for name, x in found.items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(results: dict[str, list[np.ndarray]], name: str) -> None:
    config.update("jax_enable_x64", True)
    function, arguments = PROGRAMS[name]
    with np.errstate(all="ignore"):
        expected = axir.tree_util.tree_leaves(function(*map(jnp.asarray, arguments)))
    for result, reference in zip(results[name], map(np.asarray, expected), strict=True):
        assert (result.dtype, result.shape) == (reference.dtype, reference.shape)
        if result.dtype.kind in "biu":
            np.testing.assert_array_equal(result, reference)
            continue
        wide, exact = result.astype("f8"), reference.astype("f8")
        finite = exact[np.isfinite(exact)]
        scale = float(np.abs(finite).max()) if finite.size else 1.0
        unit = float(ml_dtypes.finfo(result.dtype).eps)
        np.testing.assert_allclose(wide, exact, rtol=64 * unit, atol=64 * unit * max(scale, 1e-3))


def sums(axes: list[int], element: Any = np.float32) -> Callable[..., Any]:
    return lambda x: hlo.reduce([x], [hlo.full(0, (), element)], axes, hlo.add)[0]


@pytest.mark.parametrize(
    "example",
    [
        Example("small", (normal(20, 12),), sums([0]), None),
        Example("narrow", (normal(70000, 3),), sums([0]), None),
        Example("one_row", (normal(40000),), sums([0]), None),
        Example("few_rows", (normal(3, 20000),), sums([1]), None),
        Example("complex", (normal(300, 200).astype("c8"),), sums([0], np.complex64), None),
    ],
    ids=lambda e: e.name,
)
def test_others_stay(example: Example) -> None:
    module = build({"f": (example.arguments, example.builder)})
    before = str(module)
    run_passes(module, PASS)
    assert str(module) == before


def softmax(x: Any) -> Any:
    axes = range(1)
    lowest, zero = hlo.full(-np.inf, (), np.float32), hlo.full(0, (), np.float32)
    shape = hlo.shape_of(x)
    (most,) = hlo.reduce([x], [lowest], [1], hlo.maximum)
    powers = hlo.exponential(hlo.subtract(x, hlo.broadcast_in_dim(most, shape, list(axes))))
    (total,) = hlo.reduce([powers], [zero], [1], hlo.add)
    return hlo.divide(powers, hlo.broadcast_in_dim(total, shape, list(axes)))


def test_a_softmax_is_one_kernel_that_computes_exponentials_once() -> None:
    text = text_after(Example("f", (X,), softmax, None), PASS)
    assert text.count("flow.dispatch") == 1
    assert "stablehlo.reduce" not in text
    # Vectors, and 4 + 1 columns; not for each of the vectors that are added up side by side.
    assert text.count("math.exp") == 3


def test_the_number_of_workgroups_follows_from_the_size() -> None:
    small, large = normal(331, 117), normal(2048, 512)
    texts = [text_after(Example("f", (x,), softmax, None), PASS) for x in (small, large)]
    assert ["%c8 = arith.constant 8" in text for text in texts] == [False, True]


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    x = normal(4099, 257)
    function = axir.jit(lambda x: (x.sum(0), axir.nn.softmax(x), x.var(0)))
    found = []
    for driver in ("local-sync", "local-task"):
        config.update("axir_driver", driver)
        found.append([np.asarray(y) for y in function(x)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
