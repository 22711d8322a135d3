"""Vectorization: axes and trees as in JAX, and errors."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import errors

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 10


@pytest.mark.parametrize("in_axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("out_axis", [0, 1, -1])
def test_axes_agree_with_jax(in_axis: int, out_axis: int) -> None:
    def program(lib):
        return lambda x: lib.numpy.cumsum(lib.numpy.sin(x), axis=1) * x[0]

    ours = axir.vmap(program(axir), in_axes=in_axis, out_axes=out_axis)(X)
    theirs = jax.vmap(program(jax), in_axes=in_axis, out_axes=out_axis)(X)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_trees_none_and_keywords() -> None:
    def f(params, x, *, shift):
        return {"y": params["w"] @ x + params["b"], "shift": shift}

    params = {"w": jnp.ones((5, 3)), "b": jnp.arange(10.0).reshape(2, 5)}
    out = axir.vmap(f, in_axes=({"w": None, "b": 0}, None), out_axes={"y": 1, "shift": 0})(
        params, jnp.ones(3), shift=jnp.arange(2)
    )
    assert out["y"].shape == (5, 2)
    np.testing.assert_array_equal(out["y"], 3 + np.arange(10.0).reshape(2, 5).T)
    np.testing.assert_array_equal(out["shift"], [0, 1])


def test_unmapped_results_are_broadcast_or_left_alone() -> None:
    mapped = axir.vmap(lambda x: (x, 1.0), out_axes=(0, None))(jnp.arange(3.0))
    assert mapped[1].shape == ()
    mapped = axir.vmap(lambda x: (x, jnp.ones(2)))(jnp.arange(3.0))
    assert mapped[1].shape == (3, 2)


def test_axis_size_without_mapped_arguments() -> None:
    assert axir.vmap(lambda: jnp.ones(2), axis_size=4)().shape == (4, 2)
    assert axir.vmap(lambda x: x, in_axes=None, axis_size=4)(1.0).shape == (4,)


def test_nested_vmap_is_an_outer_product() -> None:
    x, y = jnp.arange(3.0), jnp.arange(4.0)
    outer = axir.vmap(lambda a: axir.vmap(lambda b: a * b)(y))(x)
    np.testing.assert_array_equal(outer, np.outer(x, y))
    inner = axir.jit(lambda a, b: a * b + jnp.sin(b))
    both = axir.vmap(axir.vmap(inner, (None, 0)), (0, None))(x, y)
    np.testing.assert_allclose(both, np.outer(x, y) + np.sin(np.asarray(y)), rtol=1e-6)


def test_per_example_gradients() -> None:
    def loss(w, x, y):
        return jnp.sum((jnp.tanh(x @ w) - y) ** 2)

    w, x, y = np.ones((3, 2), np.float32), X[0, :, :3], X[0, :, 2:]
    ours = axir.vmap(axir.grad(loss), in_axes=(None, 0, 0))(w, x, y)
    expected = np.stack([axir.grad(loss)(w, a, b) for a, b in zip(x, y, strict=True)])
    np.testing.assert_allclose(ours, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: axir.vmap(jnp.add)(jnp.ones(3), jnp.ones(4)), errors.BatchSizeError,
         "the mapped axes differ in extent: 3 for argument leaf 0 of type float32[3] along axis 0"),
        (lambda: axir.vmap(jnp.sin, in_axes=None)(1.0), errors.BatchSizeError,
         "no argument is mapped, so the extent of the mapped axis is unknown."),
        (lambda: axir.vmap(jnp.sin, in_axes=1)(jnp.ones(3)), errors.AxisError,
         "over axis 1 of its argument [0][0], which is of type float32[3] and has 1 axes."),
        (lambda: axir.vmap(jnp.add, in_axes=(0,))(jnp.ones(3), jnp.ones(3)), errors.TreeError,
         "in_axes has 1 entries"),
        (lambda: axir.vmap(lambda d: d["a"], in_axes=({"b": 0},))({"a": jnp.ones(3)}),
         errors.TreeError, "in_axes ({'b': 0},) is not a prefix of the tree"),
        (lambda: axir.vmap(jnp.sin, in_axes={"a": 0}), errors.TreeError,
         "in_axes must be an int, None, or a tuple"),
        (lambda: axir.vmap(jnp.sin, in_axes=(0.5,)), errors.TreeError,
         "in_axes must be made of integers and None, but holds 0.5."),
        (lambda: axir.vmap(jnp.sin, out_axes=None)(jnp.ones(3)), errors.TreeError,
         "a result has out_axes None, but depends on mapped arguments."),
        (lambda: axir.vmap(jnp.sin, out_axes=3)(jnp.ones(3)), errors.AxisError,
         "out_axes 3 is out of range for a result with 1 axes."),
        (lambda: axir.vmap(jnp.sin, out_axes=(0, 0))(jnp.ones(3)), errors.TreeError,
         "out_axes (0, 0) is not a prefix of the tree"),
    ],
)  # fmt: skip
def test_errors(call, error, text) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


# Arguments that are not mapped -------------------------------------------------------------------


class Scale:
    factor = 3.0


@pytest.mark.parametrize("lib", [axir, jax], ids=["axir", "jax"])
def test_what_is_not_mapped_reaches_the_function_as_it_is(lib: Any) -> None:
    seen = []

    def f(x: Any, options: Any, count: Any, table: Any, known: Any) -> Any:
        seen.append((type(count), type(table), isinstance(known, lib.core.Tracer)))
        y = options["f"](x) * options["scale"].factor + options["mapped"]
        return y + table[count] if count > 1 else y + known

    options = {"f": lib.numpy.negative, "scale": Scale(), "mapped": np.arange(2.0)}
    in_axes = (0, {"f": None, "scale": None, "mapped": 0}, None, None, None)
    table = np.array([10.0, 20.0, 30.0])
    known = lib.numpy.float32(5)
    mapped = lib.vmap(f, in_axes)
    assert mapped(np.arange(2.0), options, 2, table, known).tolist() == [30.0, 28.0]
    assert mapped(np.arange(2.0), options, 0, table, known).tolist() == [5.0, 3.0]
    assert seen == [(int, np.ndarray, False)] * 2


def test_unmapped_tracers_differentiate_and_nest() -> None:
    def f(x: Any, y: Any) -> Any:
        inner = axir.vmap(lambda a, b: a * b["y"] ** 2, in_axes=(0, None))
        return jnp.sum(inner(x, {"y": y}))

    x = jnp.arange(1.0, 4.0)
    assert float(axir.grad(f, 1)(x, 2.0)) == 24.0
    rows = axir.vmap(f, in_axes=(None, 0))(x, jnp.array([1.0, 2.0]))
    assert rows.tolist() == [6.0, 24.0]


def test_no_argument_need_be_mapped_if_the_size_is_given() -> None:
    f = axir.vmap(lambda g, x: g(x), in_axes=None, axis_size=2)
    assert f(jnp.negative, 3.0).tolist() == [-3.0, -3.0]


def test_mapped_arguments_and_results_must_be_arrays() -> None:
    with pytest.raises(
        errors.NonArrayArgumentError, match=r"Argument \[1\] of 'lambda' is 'a' of type"
    ):
        axir.vmap(lambda x, y: x)(jnp.ones(2), "a")
    with pytest.raises(
        errors.NonArrayArgumentError, match=r"Argument \[1\]\['g'\] of 'lambda' is <"
    ):
        axir.vmap(lambda x, g: x)(jnp.ones(2), g=jnp.cos)
    with pytest.raises(
        errors.NonArrayArgumentError, match="The result of 'lambda' is 'a' of type 'str'"
    ):
        axir.vmap(lambda x: "a")(jnp.ones(2))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x[i],
        lambda x, i: x.at[i].add(1),
        lambda x, i: axir.lax.dynamic_slice(x, (i,), (2,)),
        lambda x, i: axir.grad(lambda x: 2 * x[i])(x),
    ],
)
def test_indices_along_no_examples(function: Any) -> None:
    expected = axir.eval_shape(function, jnp.zeros(3), 0).shape
    assert axir.vmap(function)(jnp.zeros((0, 3)), jnp.zeros(0, int)).shape == (0, *expected)
