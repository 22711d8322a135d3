"""Taylor mode, against nested forward mode in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import core, lax
from axir.errors import ParameterError, ShapeError, TreeError
from axir.experimental.jet import (
    def_comp,
    def_deriv,
    deflinear,
    defzero,
    fact,
    jet,
    jet2,
    jet_rules,
)
from axir.interpreters import mlir

GENERATOR = np.random.default_rng(4)
U = GENERATOR.uniform(0.2, 0.8, (2, 3))
V = GENERATOR.uniform(0.3, 0.9, (2, 3))
M = GENERATOR.standard_normal((3, 3))
ORDER = 3


def by_jvp(function: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any]) -> Any:
    """Returns derivatives along curves, by forward mode in forward mode."""

    def along(t: Any) -> Any:
        return function(
            *(
                jnp.asarray(x)
                + sum(t ** (k + 1) * c / math.factorial(k + 1) for k, c in enumerate(s))
                for x, s in zip(primals, series, strict=True)
            )
        )

    found = []
    for _ in range(len(series[0])):
        along = axir.jacfwd(along)
        found.append(along(0.0))
    return found


def loops(x: Any) -> Any:
    carry, ys = lax.scan(lambda c, t: (jnp.sin(c) * t, c + t * x[1]), x[0], x)
    _, value = lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.cos(s[1]) * carry), (0, x[1])
    )
    return lax.cond(x[0, 0] > 0.1, lambda y: y * y, lambda y: y, value) + ys.sum(0)


@axir.custom_jvp
def cubed(x: Any) -> Any:
    return x**3


cubed.defjvp(lambda p, t: (cubed(*p), 3 * p[0] ** 2 * t[0]))

UNARY = (
    "exp log sin cos tan sinh cosh tanh asin acos atan asinh atanh logistic sqrt rsqrt cbrt expm1 "
    "log1p erf erfc erf_inv lgamma digamma abs neg sign floor square exp2"
).split()
BINARY = ("add", "sub", "mul", "div", "pow", "atan2", "max", "min", "rem")

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "scalars": (lambda x, y: 1 / x + y / 2 + 2 * x - x**2 + y**-2 + x**0.5, (U, V)),
    "power at 0": (lambda x: x**3, (np.zeros(2),)),
    "dot": (jnp.dot, (U, M)),
    "convolution": (lambda x, k: lax.conv(x[None, None], k[None, None], (1, 1), "SAME"), (U, M)),
    "running": (lambda x: jnp.cumprod(x, 0) + jnp.cumsum(x, 1) + lax.cummax(x), (U,)),
    "reductions": (lambda x: jnp.prod(x) + jnp.max(x) + jnp.min(x, 0) + jnp.mean(x), (U,)),
    "sort": (lambda x: jnp.sort(x, 1), (U,)),
    "softmax": (lambda x: axir.nn.logsumexp(x) * axir.nn.softmax(x, 0), (U,)),
    "activations": (lambda x: axir.nn.relu(x - 0.5) + axir.nn.gelu(x) + axir.nn.softplus(x), (U,)),
    "matrices": (
        lambda x: jnp.linalg.inv(x + 3 * jnp.eye(3)) @ jnp.linalg.cholesky(x @ x.T + jnp.eye(3)),
        (M,),
    ),
    "choices": (lambda x, y: jnp.where(x > 0.5, x, x * y) + lax.clamp(0.1, x, y), (U, V)),
    "indices": (
        lambda x: x[jnp.array([0, 1, 7]), 1:].sum() + x.at[0].set(2.0)[0] + x.at[0].mul(x[1])[0],
        (U,),
    ),
    "shapes": (
        lambda x: jnp.concatenate([x.T.reshape(-1), jnp.pad(x[:, :1], 1).ravel()])[::-1],
        (U,),
    ),
    "complex": (lambda x: jnp.abs(jnp.fft.fft(x * (1 + 2j))) ** 2, (U,)),
    "loops": (loops, (U,)),
    "jit": (axir.jit(lambda x, y: jnp.sin(x) * y), (U, V)),
    "checkpoint": (axir.checkpoint(lambda x: jnp.sin(x) * x), (U,)),
    "custom": (cubed, (U,)),
    "vmap": (axir.vmap(lambda x: jnp.dot(x, x) * x), (U,)),
    **{name: (getattr(lax, name), (U,)) for name in UNARY},
    **{name: (getattr(lax, name), (U, V)) for name in BINARY},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name: str) -> None:
    function, primals = FUNCTIONS[name]
    with axir.enable_x64(True):
        series = [[GENERATOR.standard_normal(x.shape) for _ in range(ORDER)] for x in primals]
        value, found = jet(function, primals, series)
        np.testing.assert_allclose(value, function(*map(jnp.asarray, primals)), rtol=1e-12)
        for k, expected in enumerate(by_jvp(function, primals, series)):
            np.testing.assert_allclose(found[k], expected, rtol=1e-8, atol=1e-8)


def test_high_orders() -> None:
    with axir.enable_x64(True):
        _, derivatives = jet(lambda x: jnp.exp(2 * x), (0.0,), ([1.0] + 9 * [0.0],))
        np.testing.assert_allclose(derivatives, 2.0 ** np.arange(1, 11))
        _, coefficients = jet2(lambda x: 1 / (1 - x), (0.0,), ([1.0] + 9 * [0.0],))
        np.testing.assert_allclose(coefficients, np.ones(10))


def test_trees_and_what_does_not_move() -> None:
    def f(x: Any, n: Any) -> Any:
        return {"square": x * x, "count": n + 1, "constant": 3.0, "above": x > 0}

    value, found = jet(f, (2.0, 3), ([1.0, 0.0], [1.0, 0.0]))
    assert {k: np.asarray(v).item() for k, v in value.items()} == {
        "square": 4.0, "count": 4, "constant": 3.0, "above": True,
    }  # fmt: skip
    terms = {name: [float(t) for t in series] for name, series in found.items()}
    assert terms == {
        "square": [4.0, 2.0], "count": [0, 0], "constant": [0, 0], "above": [0, 0],
    }  # fmt: skip
    assert found["count"][0].dtype == np.int32


def test_under_transformations() -> None:
    def second(x: Any) -> Any:
        return jet(jnp.sin, (x,), ([1.0, 0.0],))[1][1]

    x = jnp.array([0.3, 0.6])
    np.testing.assert_allclose(axir.jit(axir.vmap(second))(x), -np.sin(x), rtol=1e-6)
    assert np.isclose(axir.grad(second)(0.3), -np.cos(0.3))
    assert np.isclose(fact(4), 24)


@pytest.mark.parametrize(
    ("arguments", "error", "expected"),
    [
        (((1.0,), ([1.0], [1.0])), ParameterError, "1 primals were passed, but 2 series"),
        (((1.0, 1.0), ([1.0], [1.0, 2.0])), ParameterError, "inconsistent lengths"),
        ((({"a": 1.0},), ([1.0],)), TreeError, "primal value at position 0 is not an array"),
        (((1.0,), ([{"a": 1.0}],)), TreeError, "term 0 for argument 0 is not an array"),
        (((1.0,), ([jnp.ones(2)],)), ShapeError, r"term 0 for argument 0 has shape \(2,\)"),
    ],
)
def test_bad_arguments(arguments: Any, error: type[Exception], expected: str) -> None:
    with pytest.raises(error, match=expected):
        jet(lambda x, *_: x, *arguments)


def _primitive(name: str, function: Callable[..., Any], **options: Any) -> core.Primitive:
    """Returns a primitive that only knows how to compute: nothing follows from its tangents."""
    made = core.Primitive(name, **options)
    made.def_impl(function)
    made.def_abstract_eval(lambda *types, **_: types if options else types[0])
    mlir.register_lowering(made, mlir.lower_fun(function, multiple_results=bool(options)))
    return made


def _derivatives(function: Callable[..., Any], jitted: bool) -> Any:
    def curve(x, a, b):
        return jet(lambda x: 2.0 * function(x * x), (x,), ([a, b, 0.0],))

    return (axir.jit(curve) if jitted else curve)(0.7, 1.0, 0.5)


@pytest.mark.parametrize("jitted", [False, True])
def test_rules_of_ones_own(jitted: bool) -> None:
    expm1 = _primitive("jet_expm1", lambda x: jnp.exp(x) - 1)
    def_comp(expm1, lambda x: jnp.exp(x) - 1)
    sine = _primitive("jet_sine", jnp.sin)
    def_deriv(sine, jnp.cos)
    third = _primitive("jet_third", lambda x, *, by: x / by)
    deflinear(third)
    steps = _primitive("jet_steps", jnp.floor)
    defzero(steps)
    both = _primitive("jet_both", lambda x, y: [-x, y + y], multiple_results=True)
    deflinear(both)
    square = _primitive("jet_square", lambda x: x * x)
    jet_rules[square] = lambda primals, series: jet2(lambda x: x * x, primals, series)

    def ours(x):
        x, y = both.bind(expm1.bind(x), sine.bind(x))
        return square.bind(x) + third.bind(y, by=3.0) + steps.bind(5.0 * x)

    def plain(x):
        x, y = -jnp.expm1(x), 2 * jnp.sin(x)
        return x * x + y / 3.0 + jnp.floor(5.0 * x)

    expected = _derivatives(plain, jitted)
    value, terms = _derivatives(ours, jitted)
    np.testing.assert_allclose(value, expected[0], rtol=1e-6)
    np.testing.assert_allclose(terms, expected[1], rtol=2e-5)


def test_a_users_rule_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(jet_rules, lax.floor_p, lambda primals, series: (primals[0], series[0]))
    assert [float(x) for x in jet(jnp.floor, (1.5,), ([1.0, 2.0],))[1]] == [1.0, 2.0]
