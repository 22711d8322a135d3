"""Tokens, `dce_sink`, `composite`, and reductions of trees by a function."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.errors import DTypeError, ParameterError, TreeError
from axir.passes.transforms.simplify import simplify_function

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def test_tokens_pass_as_values() -> None:
    token = lax.create_token(None)
    merged = axir.jit(lambda t, x: (lax.after_all(t, lax.create_token()), x))(token, X)[0]
    assert (merged.shape, merged.dtype) == (token.shape, token.dtype)
    assert lax.after_all().shape == token.shape
    text = axir.jit(lambda s, t: lax.after_all(s, t)).lower(token, token).as_text("jaxpr")
    assert "optimization_barrier" in text
    carried = lax.scan(lambda t, x: (lax.after_all(t), x), token, X)[0]
    assert carried.shape == token.shape
    with pytest.raises(DTypeError, match="Arguments to after_all must be tokens"):
        lax.after_all(token, 1.0)


def test_dce_sink_keeps_what_nothing_uses() -> None:
    def f(x: Any) -> Any:
        lax.dce_sink({"a": jnp.sin(x), "b": jnp.cos(x)})
        jnp.tan(x)
        return x * 2

    function = simplify_function(axir.make_jaxpr(f)(1.0).function)
    names = [e.primitive.name for e in function.equations]
    assert sorted(names) == ["cos", "dce_sink", "dce_sink", "mul", "sin"]
    assert float(axir.jit(f)(1.0)) == 2.0
    assert float(axir.grad(f)(1.0)) == 2.0
    assert axir.jit(axir.vmap(f))(X[0]).tolist() == [0, 2, 4]
    assert lax.dce_sink(X, prevent_mlir_dce=True) is None


def test_composites_are_functions_of_their_name() -> None:
    def f(lib: Any) -> Any:
        scaled = lib.lax.composite(
            lambda x, y, *, scale: {"o": lib.numpy.sin(x) * scale + y["b"]}, "my.op", version=2
        )
        return lambda x: scaled(x, {"b": x}, scale=3.0)["o"]

    np.testing.assert_allclose(f(axir)(X), f(jax)(X), rtol=1e-6)
    np.testing.assert_allclose(axir.vmap(f(axir))(X), f(jax)(X), rtol=1e-6)
    np.testing.assert_allclose(axir.grad(f(axir))(0.0), 4.0)
    assert "call @my_op_v2" in axir.jit(f(axir)).lower(X).as_text()
    with pytest.raises(ParameterError, match="the name must be a string, not ''"):
        lax.composite(jnp.sin, "")
    with pytest.raises(ParameterError, match="the version must not be negative"):
        lax.composite(jnp.sin, "sine", version=-1)


def test_stage_and_shape_as_value() -> None:
    assert lax.stage(np.ones(2)).tolist() == [1, 1]
    assert lax.shape_as_value((2, 3)).tolist() == [2, 3]


@pytest.mark.parametrize("jit", [False, True])
def test_reductions_of_trees(jit: bool) -> None:
    def run(lib: Any) -> Any:
        def combine(p: Any, q: Any) -> Any:
            return {"a": p["a"] + q["a"], "b": (p["b"][0] * q["b"][0],)}

        def add(p: Any, q: Any) -> Any:
            return {"a": p["a"] + q["a"]}

        def both(x: Any) -> Any:
            tree = {"a": x, "b": (x.astype(int) + 1,)}
            inits = {"a": 0.0, "b": (lib.numpy.int32(1),)}
            return (
                lib.lax.reduce(tree, inits, combine, (1,)),
                lib.lax.reduce([x, x], [0.0, 1.0], lambda p, q: [p[0] + q[0], p[1] * q[1]], (0,)),
                lib.lax.reduce_window({"a": x}, {"a": 0.0}, add, (2, 2), (1, 1), "VALID"),
            )

        return (lib.jit(both) if jit else both)(lib.numpy.asarray(X))

    ours, theirs = run(axir), run(jax)
    assert jax.tree.map(np.shape, ours) == jax.tree.map(np.shape, theirs)
    for mine, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6)


def test_trees_of_a_reduction_must_match() -> None:
    with pytest.raises(TreeError, match="Initial values of a reduction"):
        lax.reduce({"a": X}, {"b": 0.0}, lambda p, q: p, (0,))
    with pytest.raises(TreeError, match="Result of the computation of a reduction"):
        lax.reduce({"a": X}, {"a": 0.0}, lambda p, q: {"b": p["a"]}, (0,))
