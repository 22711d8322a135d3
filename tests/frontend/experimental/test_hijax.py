"""Primitives with rules as methods: each rule is used by its transformation, also in loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.errors import CustomRuleError
from axir.experimental.hijax import HiType, VJPHiPrimitive, Zero, instantiate_zeros
from axir.experimental.hijax._primitives import HiArgumentError, MissingHiRuleError
from axir.experimental.hijax._types import HiPrimitiveError

X = jnp.array([0.5, 1.0, 2.0])


class _Declared(VJPHiPrimitive):
    """A primitive of arguments like its result, or of a pair."""

    def __init__(self, *avals: Any, **params: Any):
        self.in_avals, self.out_aval, self.params = avals, avals[0], params
        super().__init__()


class _ScaledSine(_Declared):
    """sin(x) · y, with rules that count factors: 2 forward, 3 in reverse, 5 from both."""

    def expand(self, x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    def vjp_fwd(self, nzs_in: Any, x: Any, y: Any) -> Any:
        return self(x, y), (jnp.cos(x), jnp.sin(x), y)

    def vjp_bwd_retval(self, res: Any, g: Any) -> Any:
        cosine, sine, y = res
        return 3 * g * cosine * y, 3 * g * sine

    def jvp(self, primals: Any, tangents: Any) -> Any:
        (x, y), (dx, dy) = primals, map(instantiate_zeros, tangents)
        return self(x, y), 2 * (jnp.cos(x) * y * dx + jnp.sin(x) * dy)


def _scaled_sine(x: Any, y: Any) -> Any:
    return _ScaledSine(axir.typeof(x), axir.typeof(y))(x, y)


@pytest.mark.parametrize("wrap", [lambda f: f, axir.jit])
def test_each_mode_has_its_rule(wrap: Callable[..., Any]) -> None:
    sine, cosine = np.sin(2.0), np.cos(2.0)

    def all_of(x: Any, y: Any) -> Any:
        def loss(x: Any) -> Any:
            return lax.scan(lambda c, _: (_scaled_sine(c, y), None), x, None, length=1)[0]

        return (
            _scaled_sine(x, y),
            axir.jvp(_scaled_sine, (x, y), (1.0, 0.0))[1],
            axir.grad(_scaled_sine, (0, 1))(x, y),
            axir.jacfwd(axir.grad(_scaled_sine, 1))(x, y),
            axir.grad(loss)(x),
        )

    value, forward, reverse, second, looped = wrap(all_of)(2.0, 3.0)

    def close(a: Any, b: Any) -> None:
        np.testing.assert_allclose(a, b, rtol=1e-5)

    close(value, 3 * sine)
    close(forward, 2 * 3 * cosine)
    close(reverse, (3 * 3 * cosine, 3 * sine))
    close(second, 3 * cosine)
    close(looped, 3 * 3 * cosine)


def test_elements_of_an_axis() -> None:
    mapped = axir.vmap(_scaled_sine, (0, None))
    np.testing.assert_allclose(mapped(X, 3.0), 3 * np.sin(X), rtol=1e-6)
    shared = axir.grad(lambda y: mapped(X, y).sum())(3.0)
    np.testing.assert_allclose(shared, 3 * np.sin(X).sum(), rtol=1e-6)
    each = axir.vmap(axir.grad(_scaled_sine), (0, None))(X, 3.0)
    np.testing.assert_allclose(each, 9 * np.cos(X), rtol=1e-5)
    moved = axir.jvp(lambda x: mapped(x, 3.0), (X,), (jnp.ones(3),))[1]
    np.testing.assert_allclose(moved, 6 * np.cos(X), rtol=1e-5)
    grid = axir.vmap(axir.vmap(_scaled_sine, (0, None)), (None, 0))(X, X)
    np.testing.assert_allclose(grid, np.outer(X, np.sin(X)), rtol=1e-6)


def test_rules_see_values_zeros_and_trees() -> None:
    class Branching(_Declared):
        def expand(self, x: Any) -> Any:
            return x

        def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:
            return self(x), x

        def vjp_bwd(self, res: Any, g: Any, accumulator: Any) -> None:
            accumulator.accum(self.up * g if res > 0 else g)
            accumulator.accum(None)

    def branching(x: Any) -> Any:
        return Branching(axir.typeof(x), up=7.0)(x)

    assert [float(axir.grad(branching)(x)) for x in (1.0, -1.0)] == [7.0, 1.0]

    seen = []

    class Parts(_Declared):
        def __init__(self, pair: Any):
            super().__init__(pair)

        def expand(self, pair: Any) -> Any:
            return {"a": pair["a"] ** 2, "b": pair["b"]}

        def vjp_fwd(self, nzs_in: Any, pair: Any) -> Any:
            seen.append(nzs_in)
            return self(pair), pair["a"]

        def vjp_bwd_retval(self, a: Any, g: Any) -> Any:
            seen.append(type(g["b"]))
            return ({"a": 2 * a * g["a"], "b": None},)

    def apply(pair: Any) -> Any:
        return Parts(axir.tree.map(axir.typeof, pair))(pair)

    gradient = axir.grad(lambda a: apply({"a": a, "b": 1})["a"])(3.0)
    assert float(gradient) == 6.0
    assert seen == [({"a": True, "b": False},), Zero]


class _Linear(_Declared):
    """Twice x; its tangent is three times x's tangent."""

    def expand(self, x: Any) -> Any:
        return 2 * x

    def lin(self, nzs_in: Any, x: Any) -> Any:
        return self(x), jnp.asarray(3.0)

    def linearized(self, residuals: Any, dx: Any) -> Any:
        return residuals * dx


def test_one_rule_for_linearize() -> None:
    def double(x: Any) -> Any:
        return _Linear(axir.typeof(x))(x)

    value, linear = axir.linearize(double, 1.0)
    assert (float(value), float(linear(1.0))) == (2.0, 3.0)
    assert float(axir.grad(double)(1.0)) == 3.0


def test_a_rule_for_vectorization() -> None:
    sizes = []

    class Batched(_Linear):
        def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
            sizes.append((axis_data.size, dims))
            return 5 * args[0], dims[0]

    found = axir.vmap(lambda x: Batched(axir.typeof(x))(x), in_axes=1)(jnp.ones((2, 3)))
    assert found.tolist() == [[5.0, 5.0]] * 3
    assert sizes == [(3, (1,))]


def test_misuse() -> None:
    aval = axir.typeof(X)
    bare = _Declared(aval)
    with pytest.raises(MissingHiRuleError, match="For anything, _Declared must define expand"):
        bare(X)
    with pytest.raises(MissingHiRuleError, match="For forward mode, _Declared must define jvp"):
        axir.jvp(bare, (X,), (X,))
    with pytest.raises(HiArgumentError, match="a value of type int32"):
        bare(jnp.arange(3))
    with pytest.raises(HiArgumentError, match="was called with arguments of structure"):
        bare(X, X)
    with pytest.raises(HiPrimitiveError, match="which is not that of arrays"):
        _Declared(HiType())
    with pytest.raises(AttributeError, match=r"__init__ must set self\.in_avals first"):
        type("Unset", (VJPHiPrimitive,), {})()
    both = {"vjp_bwd": lambda self: None, "vjp_bwd_retval": lambda self: None}
    with pytest.raises(AttributeError, match="of which one is enough"):
        type("Both", (_Declared,), both)(aval)
    with pytest.raises(CustomRuleError, match="returned a tree of structure"):
        type("Pair", (_Declared,), {"expand": lambda self, x: (x, x)})(aval)(X)
    same = _Declared(aval), _Declared(aval), _Declared(aval, n=1)
    assert (same[0] == same[1], hash(same[0]) == hash(same[1]), same[0] == same[2]) == (
        True,
        True,
        False,
    )
