"""Rearranging, joining, splitting, padding and differences against JAX."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from support.against_jax import Weak, assert_close, compare, same_error

import axir
import axir.numpy as jnp
from axir.dialect.core.array import from_numpy
from axir.dialect.core.errors import DTypeError, ParameterError


def counted(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (np.arange(int(np.prod(shape))) % 100).reshape(shape).astype(dtype)


def both(name: str) -> tuple[Any, Any]:
    return getattr(jnp, name), getattr(jax.numpy, name)


X = counted(2, 3, 4)
MATRIX = counted(3, 4)
VECTOR = counted(5)
WEAK = Weak(np.full((2, 3), 2.0))
MASK = np.array([[True, False], [False, True]])

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("reshape", (X, (4, 6)), {}), ("reshape", (X, -1), {}), ("reshape", (X, (2, -1)), {}),
    ("reshape", (X, (4, -1, 2)), {"order": "F"}), ("reshape", (2.0, (1, 1)), {}),
    ("reshape", (np.zeros((0, 3), np.int8), (3, 0, 2)), {}), ("reshape", (WEAK, 6), {}),
    ("ravel", (X,), {}), ("ravel", (X,), {"order": "F"}), ("ravel", (3,), {}),
    ("transpose", (X,), {}), ("transpose", (X, (2, 0, 1)), {}), ("transpose", (X, (-1, 0, 1)), {}),
    ("transpose", (VECTOR,), {}), ("transpose", (WEAK,), {}), ("permute_dims", (X, (1, 0, 2)), {}),
    ("matrix_transpose", (X,), {}), ("swapaxes", (X, 0, -1), {}),
    ("moveaxis", (X, 0, -1), {}), ("moveaxis", (X, (0, 1), (2, 0)), {}),
    ("moveaxis", (X, [-1], [0]), {}), ("rollaxis", (X, 2), {}), ("rollaxis", (X, 0, 3), {}),
    ("rollaxis", (X, -1, 1), {}), ("squeeze", (counted(1, 3, 1),), {}),
    ("squeeze", (counted(1, 3, 1), 0), {}), ("squeeze", (counted(1, 3, 1), (-1, 0)), {}),
    ("expand_dims", (X, 1), {}), ("expand_dims", (X, (0, -1)), {}), ("expand_dims", (1.0, 0), {}),
    ("broadcast_to", (VECTOR, (3, 5)), {}), ("broadcast_to", (counted(3, 1), (2, 3, 4)), {}),
    ("broadcast_to", (2, (2,)), {}), ("broadcast_to", (2.0, 3), {}),
    ("broadcast_arrays", (counted(3, 1), VECTOR, 2), {}),
    ("broadcast_shapes", ((3, 1), (1, 4), ()), {}),
    ("atleast_1d", (1.0,), {}), ("atleast_1d", (1, VECTOR), {}), ("atleast_2d", (VECTOR,), {}),
    ("atleast_2d", (2,), {}), ("atleast_3d", (VECTOR,), {}), ("atleast_3d", (MATRIX,), {}),
    ("atleast_3d", (1,), {}), ("flip", (X,), {}), ("flip", (X, 1), {}), ("flip", (X, (0, -1)), {}),
    ("fliplr", (X,), {}), ("flipud", (VECTOR,), {}), ("flip", (MASK, 0), {}),
    *[("rot90", (MATRIX, k), {}) for k in (-1, 0, 1, 2, 3, 5)], ("rot90", (X, 1, (1, 2)), {}),
    ("rot90", (X, 3, (2, 0)), {}), ("roll", (VECTOR, 2), {}), ("roll", (VECTOR, -7), {}),
    ("roll", (X, 1), {}), ("roll", (X, 1, 1), {}), ("roll", (X, (1, 2), (0, 2)), {}),
    ("roll", (X, 1, (0, 1)), {}), ("roll", (X, (1, 2), 1), {}), ("roll", (np.zeros((0,)), 2), {}),
    ("stack", ([VECTOR, VECTOR],), {}), ("stack", ([VECTOR, counted(5, dtype=np.int8)], -1), {}),
    ("stack", ([1, 2.0],), {}), ("stack", (X, 1), {}), ("stack", ((MASK, MASK), 1), {}),
    ("stack", ([VECTOR, VECTOR],), {"dtype": np.float16}), ("vstack", ([VECTOR, VECTOR],), {}),
    ("vstack", ([MATRIX, MATRIX],), {}), ("vstack", ((1, 2),), {}),
    ("hstack", ([VECTOR, VECTOR],), {}),
    ("hstack", ([MATRIX, MATRIX],), {}), ("dstack", ([VECTOR, VECTOR],), {}),
    ("dstack", ([MATRIX, MATRIX],), {}), ("column_stack", ([VECTOR, counted(5, 2)],), {}),
    ("concatenate", ([VECTOR, counted(3, dtype=np.int32)],), {}),
    ("concatenate", ([MATRIX, counted(3, 2)], 1), {}),
    ("concatenate", ([MATRIX, VECTOR], None), {}),
    ("concatenate", ([WEAK, WEAK],), {}), ("concatenate", (X,), {}),
    ("concatenate", ([VECTOR, VECTOR],), {"dtype": np.int32}), ("concat", ([VECTOR, VECTOR],), {}),
    ("append", (VECTOR, MATRIX), {}), ("append", (MATRIX, MATRIX), {"axis": 1}),
    ("append", (VECTOR, 7), {}), ("split", (counted(6), 3), {}), ("split", (X, 2, 2), {}),
    ("split", (VECTOR, [1, 3]), {}), 
    ("split", (VECTOR, np.array([1, 4])), {}), ("array_split", (VECTOR, 3), {}),
    ("array_split", (X, 3, 2), {}), ("hsplit", (MATRIX, 2), {}), ("hsplit", (counted(4), 2), {}),
    ("vsplit", (counted(4, 2), 2), {}), ("dsplit", (X, 2), {}), ("unstack", (X,), {"axis": 1}),
    ("tile", (VECTOR, 2), {}), ("tile", (MATRIX, (2, 1, 3)), {}), ("tile", (X, (2,)), {}),
    ("tile", (2.0, 3), {}), ("tile", (VECTOR, ()), {}), ("repeat", (VECTOR, 2), {}),
    ("repeat", (MATRIX, 2, 1), {}), ("repeat", (MATRIX, 3), {}), ("repeat", (2.0, 3), {}),
    ("repeat", (VECTOR, np.array([2, 0, 1, 3, 1])), {}),
    ("repeat", (MATRIX, np.array([1, 2, 0]), 0), {}),
    ("repeat", (VECTOR, np.array([2, 0, 1, 3, 1])), {"total_repeat_length": 4}),
    ("repeat", (VECTOR, np.array([2, 0, 1, 3, 1])), {"total_repeat_length": 10}),
    ("repeat", (VECTOR, np.array([0, 1, 0, 2, 0])), {"total_repeat_length": 6}),
    ("repeat", (MATRIX, np.array([0, 0, 0]), 0), {"total_repeat_length": 2}),
    ("repeat", (VECTOR[:0], np.array([], int)), {"total_repeat_length": 2}),
    ("repeat", (VECTOR, 0), {"total_repeat_length": 2}),
    ("repeat", (VECTOR, np.array([2])), {}), ("resize", (VECTOR, (2, 4)), {}),
    ("resize", (X, 3), {}),
    ("resize", (VECTOR, 12), {}), ("diff", (VECTOR,), {}), ("diff", (X,), {"n": 2, "axis": 1}),
    ("diff", (MASK,), {}), ("diff", (VECTOR, 0), {}), ("diff", (counted(5, dtype=np.uint8),), {}),
    ("diff", (MATRIX,), {"prepend": 1.0, "append": counted(3, 2)}), ("diff", (VECTOR, 7), {}),
    ("ediff1d", (X,), {}), ("ediff1d", (VECTOR, 9.0, counted(2)), {}),
    ("ediff1d", (counted(4, dtype=np.int8), 3), {}), ("gradient", (VECTOR**2,), {}),
    ("gradient", (MATRIX**2,), {}), ("gradient", (MATRIX**2, 2.0), {"axis": 1}),
    ("gradient", (MATRIX**2, 2.0, 0.5), {}), ("gradient", (counted(4, dtype=np.int32),), {}),
    ("gradient", (VECTOR**2, np.array([0, 1, 3, 4, 8], np.float32)), {}),
    ("trapezoid", (MATRIX,), {}), ("trapezoid", (MATRIX,), {"dx": 0.5, "axis": 0}),
    ("trapezoid", (MATRIX, np.array([0, 1, 3, 7], np.float32)), {}),
    ("trapezoid", (MATRIX, MATRIX**2), {"axis": 0}), ("vander", (VECTOR,), {}),
    ("vander", (counted(4, dtype=np.int32), 3), {"increasing": True}), ("vander", (VECTOR, 0), {}),
    ("tril_indices", (3,), {}), ("tril_indices", (3, 1, 4), {}), ("triu_indices", (4, -1), {}),
    ("tril_indices_from", (MATRIX,), {}), ("triu_indices_from", (MATRIX, 1), {}),
    ("diag_indices", (3, 3), {}), ("diag_indices_from", (counted(2, 2),), {}),
    ("ix_", (np.array([0, 2]), np.array([1, 3, 4])), {}), ("ix_", (np.array([1]),), {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "args", "kwargs"), CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)]
)
def test_like_jax(name: str, args: Any, kwargs: Any) -> None:
    compare(*both(name), *args, **kwargs)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "complex64"])
def test_dtypes_stay(dtype: str) -> None:
    x = counted(2, 3, dtype=dtype)
    calls = {
        "reshape": (3, 2), "flip": 0, "roll": 1, "repeat": 2, "tile": 2, "expand_dims": 0,
        "moveaxis": (0, 1), "pad": 1,
    }  # fmt: skip
    for name, argument in calls.items():
        arguments = argument if name == "moveaxis" else (argument,)
        compare(*both(name), x, *arguments)


PADDINGS: list[tuple[str, dict[str, Any]]] = [
    ("constant", {}), ("constant", {"constant_values": 7}),
    ("constant", {"constant_values": (1, 2)}),
    ("edge", {}), ("reflect", {}), ("reflect", {"reflect_type": "odd"}), ("symmetric", {}),
    ("symmetric", {"reflect_type": "odd"}), ("wrap", {}), ("linear_ramp", {}),
    ("linear_ramp", {"end_values": (5, -4)}), ("maximum", {}), ("minimum", {"stat_length": 2}),
    ("mean", {}), ("mean", {"stat_length": ((1, 2), (3, 1))}), ("median", {}),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "options"), PADDINGS)
def test_padding(mode: str, options: dict[str, Any]) -> None:
    # Integer ramps are rounded down, where the last place of the float before decides.
    is_rounded = mode == "linear_ramp" and options
    for dtype in (np.float32,) if is_rounded else (np.float32, np.int32):
        compare(*both("pad"), counted(3, 4, dtype=dtype), ((1, 2), (3, 0)), mode, **options)
    compare(*both("pad"), counted(3, 4), 1, mode, **options)


@pytest.mark.parametrize("mode", ["reflect", "symmetric", "wrap", "edge"])
def test_padding_by_more_than_there_is(mode: str) -> None:
    compare(*both("pad"), counted(3), (8, 11), mode)
    compare(*both("pad"), counted(1), (2, 3), mode)


def test_forms_of_pad_width() -> None:
    for width in (2, (1, 2), ((1, 2),), ((1, 2), (0, 3)), np.array([[1, 2], [0, 3]])):
        theirs = np.asarray(jax.numpy.pad(MATRIX, width))
        np.testing.assert_array_equal(np.asarray(jnp.pad(from_numpy(MATRIX), width)), theirs)


def test_no_axes_take_no_pairs() -> None:
    padded = jnp.pad(jnp.float32(2), np.zeros((0, 2), int), "reflect")
    assert (padded.shape, float(padded)) == ((), 2)


def test_traced_values_take_the_forms_of_pad_width() -> None:
    for value in (7.0, [7.0, 8.0], [[7.0, 8.0]], [[7.0, 8.0], [9.0, 6.0]]):
        values = np.array(value, np.float32)
        mapped = axir.vmap(lambda v: jnp.pad(MATRIX, 1, constant_values=v))(values[None])
        expected = jax.numpy.pad(MATRIX, 1, constant_values=values)
        np.testing.assert_array_equal(mapped[0], expected)


def test_padding_by_a_function() -> None:
    def ends(np_: Any) -> Any:
        def fill(row: Any, width: Any, axis: int, options: Any) -> Any:
            return row + np_.sum(row) * (axis + 1) + options.get("offset", 0) + width[0]

        return fill

    ours = jnp.pad(from_numpy(MATRIX), 1, ends(jnp), offset=3)
    theirs = jax.numpy.pad(MATRIX, 1, ends(jax.numpy), offset=3)
    assert_close(np.asarray(ours), np.asarray(theirs))


def test_splitting_outside_the_array() -> None:
    for places in ((2, 2, 9), [-2]):
        ours = jnp.split(from_numpy(VECTOR), places)
        theirs = np.split(VECTOR, places)
        assert [np.asarray(x).tolist() for x in ours] == [x.tolist() for x in theirs]


def test_rolling_by_a_traced_shift() -> None:
    shifted = axir.jit(lambda x, s: jnp.roll(x, s, axis=1))
    for shift in (-9, -1, 0, 3, 6):
        np.testing.assert_array_equal(np.asarray(shifted(MATRIX, shift)), np.roll(MATRIX, shift, 1))
    both_axes = axir.jit(lambda x, s: jnp.roll(x, s, axis=(0, 1)))(MATRIX, np.array([1, -2]))
    np.testing.assert_array_equal(np.asarray(both_axes), np.roll(MATRIX, (1, -2), (0, 1)))


@pytest.mark.parametrize(
    ("repeats", "error", "says"),
    [
        (np.array([1, 2, -1, 0, 1]), ParameterError, "is negative"),
        (-1, ParameterError, "is negative"),
        (np.ones(5), DTypeError, "are no integers"),
        (np.ones((5, 1), int), ParameterError, "has 2 axes"),
    ],
)
def test_numbers_of_repetitions_are_checked(
    repeats: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        jnp.repeat(VECTOR, repeats, total_repeat_length=5)


def test_repeating_by_traced_numbers() -> None:
    repeated = axir.jit(lambda x, n: jnp.repeat(x, n, axis=0, total_repeat_length=5))
    for counts in ([2, 0, 3], [1, 1, 1], [0, 4, 4]):
        theirs = jax.numpy.repeat(MATRIX, np.array(counts), axis=0, total_repeat_length=5)
        np.testing.assert_array_equal(np.asarray(repeated(MATRIX, np.array(counts))), theirs)
    with pytest.raises(axir.errors.ConcretizationTypeError, match="total_repeat_length"):
        axir.jit(lambda x, n: jnp.repeat(x, n))(VECTOR, np.array([1, 2, 0, 0, 1]))


ERRORS = [
    ("reshape", (X, (5, 5)), {}, "cannot reshape"),
    ("reshape", (X, (-1, -1)), {}, "cannot infer"),
    ("reshape", (X, (-1, 5)), {}, "cannot infer"),
    ("reshape", (X, (24,)), {"order": "K"}, "order="),
    ("squeeze", (X, 0), {}, "has extent 2, not 1"),
    ("transpose", (X, (0, 1)), {}, "no permutation"),
    ("transpose", (X, (0, 0, 1)), {}, "no permutation"),
    ("moveaxis", (X, 3, 0), {}, "out of bounds"),
    ("moveaxis", (X, (0, 1), 0), {}, "differ in length"),
    ("expand_dims", (X, 4), {}, "out of bounds"),
    ("broadcast_to", (VECTOR, (3,)), {}, "does not broadcast to shape"),
    ("broadcast_shapes", ((2,), (3,)), {}, "Incompatible shapes"),
    ("stack", ([],), {}, "needs at least one array"),
    ("stack", ([VECTOR, MATRIX],), {}, "must have the same shape"),
    ("stack", ([[1, 2], [3, 4]],), {}, r"argument 0 is \[1, 2\]"),
    ("concatenate", ([],), {}, "needs at least one array"),
    ("concatenate", ([1, 2],), {}, "zero-dimensional arrays"),
    ("concatenate", ([VECTOR, MATRIX],), {}, "concatenate"),
    ("split", (VECTOR, 2), {}, "equal division"),
    ("repeat", (VECTOR, np.array([1, 2])), {}, "does not fit axis"),
    ("repeat", (VECTOR, [1, 2, 3, 4, 5]), {}, r"argument 1 is \[1, 2, 3, 4, 5\]"),
    ("pad", (VECTOR, -1), {}, "is negative"),
    ("pad", (VECTOR, 1, "mirror"), {}, "mode 'mirror' is unknown"),
    ("pad", (VECTOR, ((1, 1), (1, 1), (1, 1))), {}, "does not fit an array of 1 axes"),
    ("pad", (VECTOR, 1, "edge"), {"end_values": 1}, "does not take the keywords"),
    ("pad", (np.zeros((0,), np.float32), 1, "edge"), {}, "cannot extend the empty axis"),
    ("pad", (VECTOR, 1.5), {}, "float"),
    ("diff", (1.0,), {}, "must have at least one axis"),
    ("diff", (VECTOR, -1), {}, "order must be non-negative"),
    ("gradient", (counted(1),), {}, "at least 2 samples"),
    ("gradient", (VECTOR,), {"edge_order": 2}, "edge_order=2 is not supported"),
    ("vander", (MATRIX,), {}, "one-dimensional"),
    ("ix_", (MATRIX,), {}, "1-dimensional"),
    ("diag_indices_from", (MATRIX,), {}, "equal extent"),
    ("unstack", (1.0,), {}, "at least one axis"),
]


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "text"), ERRORS, ids=[f"{i}-{e[0]}" for i, e in enumerate(ERRORS)]
)
def test_errors(name: str, args: Any, kwargs: Any, text: str) -> None:
    error = same_error(*both(name), *args, **kwargs)
    with pytest.raises(type(error), match=text):
        raise error


def everything(np_: Any, x: Any) -> list[Any]:
    results = [
        np_.reshape(x, (2, 6), order="F"), np_.swapaxes(x, 0, 1), np_.flip(x), np_.rot90(x),
        np_.roll(x, 5), np_.roll(x, (1, -1), (0, 1)), np_.stack([x, x * 2], 1), np_.tile(x, (2, 3)),
        np_.repeat(x, 2, axis=1), np_.repeat(x, np.array([2, 0, 1]), axis=0), np_.resize(x, (5, 3)),
        np_.diff(x, axis=0), np_.broadcast_to(x[:, None], (3, 2, 4)), np_.vander(x[0], 3),
        np_.trapezoid(x), *np_.gradient(x), *np_.split(x, 2, axis=1), np_.ediff1d(x, to_begin=x[0]),
    ]  # fmt: skip
    modes = [mode for mode, options in PADDINGS if not options]
    return results + [np_.pad(x, ((1, 2), (3, 0)), mode) for mode in modes]


def test_compiled_as_evaluated() -> None:
    x = from_numpy(MATRIX**2)
    evaluated = everything(jnp, x)
    compiled = axir.jit(lambda x: everything(jnp, x))(x)
    assert len(compiled) == len(evaluated) > 25
    for ours, expected in zip(compiled, evaluated, strict=True):
        assert ours.type is expected.type
        assert_close(np.asarray(ours), np.asarray(expected), 16.0)


def test_gradients() -> None:
    def loss(np_: Any) -> Any:
        return lambda x: sum(
            np_.sum(np_.cos(part * (0.1 * k + 0.2))) for k, part in enumerate(everything(np_, x))
        )

    x = np.random.default_rng(0).uniform(0.5, 1.5, (3, 4)).astype(np.float32)
    ours = axir.grad(loss(jnp))(from_numpy(x))
    assert_close(np.asarray(ours), np.asarray(jax.grad(loss(jax.numpy))(x)), 64.0)
