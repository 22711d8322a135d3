"""Differentiation: values against JAX and finite differences, nesting, trees, and errors."""

from __future__ import annotations

import collections

import jax
import jax.numpy as jnp_jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import errors

Point = collections.namedtuple("Point", ["x", "y"])


def _poly(lib):
    return lambda x: lib.numpy.sin(x) * x**3 + lib.numpy.exp(-x) / (1 + x**2)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_repeated_gradients_agree_with_jax(order: int) -> None:
    ours, theirs = _poly(axir), _poly(jax)
    for _ in range(order):
        ours, theirs = axir.grad(ours), jax.grad(theirs)
    for x in (0.3, -1.2, 2.5):
        np.testing.assert_allclose(ours(x), theirs(x), rtol=2e-5, atol=1e-5)


def test_all_orders_of_nesting_agree() -> None:
    f = _poly(axir)
    x = jnp.array([0.3, -1.2, 2.5])
    expected = [axir.grad(axir.grad(f))(float(v)) for v in x]
    nestings = {
        "vmap grad grad": axir.vmap(axir.grad(axir.grad(f))),
        "jit vmap grad grad": axir.jit(axir.vmap(axir.grad(axir.grad(f)))),
        "vmap grad jit grad jit": axir.vmap(axir.grad(axir.jit(axir.grad(axir.jit(f))))),
        "jacfwd of vmapped grad": lambda v: jnp.diagonal(axir.jacfwd(axir.vmap(axir.grad(f)))(v)),
        "jvp of vmapped jitted grad": lambda v: axir.jvp(
            axir.vmap(axir.jit(axir.grad(f))), (v,), (jnp.ones_like(v),)
        )[1],
        "diagonal of the hessian": lambda v: jnp.diagonal(
            axir.hessian(lambda w: jnp.sum(axir.vmap(f)(w)))(v)
        ),
    }
    for name, g in nestings.items():
        np.testing.assert_allclose(g(x), expected, rtol=1e-5, err_msg=name)


def test_python_control_flow_on_values_works_under_grad() -> None:
    def f(x):
        while x < 10:
            x = x * 2 if int(x) % 2 else x + 1.5
        return x**2

    # 3 -> 6 -> 7.5 -> 15, so the derivative of the result is 2 * 15 * 4.
    assert float(axir.grad(f)(3.0)) == 120.0
    assert float(axir.jvp(f, (3.0,), (1.0,))[1]) == 120.0
    assert float(axir.grad(axir.grad(f))(3.0)) == 32.0
    with pytest.raises(errors.TracerBoolConversionError):
        axir.jit(axir.grad(f))(3.0)


def test_trees_argnums_and_aux() -> None:
    def f(params, scale, point):
        value = jnp.sum(params["w"] * scale) + point.x * point.y
        return value, {"seen": value + 1}

    params = {"w": jnp.arange(3.0), "unused": None}
    point = Point(2.0, jnp.array(5.0))
    (value, aux), (dparams, dpoint) = axir.value_and_grad(f, argnums=(0, 2), has_aux=True)(
        params, 2.0, point
    )
    assert float(value) == 16.0
    assert float(aux["seen"]) == 17.0
    np.testing.assert_array_equal(dparams["w"], [2.0, 2.0, 2.0])
    assert dparams["unused"] is None
    assert isinstance(dpoint, Point)
    assert (float(dpoint.x), float(dpoint.y)) == (5.0, 2.0)
    gradient, aux = axir.grad(f, argnums=-2, has_aux=True)(params, 2.0, point)
    assert float(gradient) == 3.0


def test_keyword_arguments_are_not_differentiated() -> None:
    assert float(axir.grad(lambda x, *, k: k * x**2)(3.0, k=2.0)) == 12.0


def test_vjp_jvp_linearize_agree_with_jax() -> None:
    def program(lib):
        def f(x, y):
            return {"a": lib.numpy.dot(x, y), "b": lib.numpy.tanh(x).sum(0)}

        return f

    x = np.arange(6, dtype=np.float32).reshape(2, 3) / 7
    y = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    dx, dy = np.cos(x), np.sin(y)
    ours, theirs = program(axir), program(jax)
    out, tangent = axir.jvp(ours, (x, y), (dx, dy))
    expected, expected_tangent = jax.jvp(theirs, (x, y), (dx, dy))
    for key in "ab":
        np.testing.assert_allclose(out[key], expected[key], rtol=1e-6)
        np.testing.assert_allclose(tangent[key], expected_tangent[key], rtol=1e-5, atol=1e-6)
    linear_out, linear = axir.linearize(ours, x, y)
    for _ in range(2):
        again = linear(dx, dy)
        np.testing.assert_allclose(again["a"], tangent["a"], rtol=1e-6)
    np.testing.assert_array_equal(linear_out["a"], out["a"])
    ct = {"a": np.ones((2, 4), np.float32), "b": np.full(3, 2, np.float32)}
    for ours_ct, theirs_ct in zip(
        axir.vjp(ours, x, y)[1](ct),
        jax.vjp(theirs, x, y)[1](jax.tree.map(jnp_jax.asarray, ct)),
        strict=True,
    ):
        np.testing.assert_allclose(ours_ct, theirs_ct, rtol=1e-5, atol=1e-6)


def test_jacobians_of_trees() -> None:
    def f(p):
        return {"s": p["x"] ** 2 * p["y"], "t": p["y"] * 3}

    point = {"x": jnp.array([1.0, 2.0, 3.0]), "y": jnp.array(4.0)}
    expected = jax.jacrev(f)({k: jnp_jax.asarray(np.asarray(v)) for k, v in point.items()})
    for jacobian in (axir.jacfwd, axir.jacrev, lambda g: axir.jit(axir.jacrev(g))):
        result = jacobian(f)(point)
        for outer in "st":
            for inner in "xy":
                np.testing.assert_allclose(result[outer][inner], expected[outer][inner])


def test_hessian_of_a_tree_is_symmetric() -> None:
    def f(p):
        return jnp.sum(jnp.sin(p["x"]) * p["y"]) ** 2

    point = {"x": jnp.array([0.1, 0.2]), "y": jnp.array([1.0, 2.0])}
    h = axir.hessian(f)(point)
    np.testing.assert_allclose(h["x"]["y"], np.asarray(h["y"]["x"]).T, rtol=1e-5)
    theirs = jax.hessian(lambda p: jnp_jax.sum(jnp_jax.sin(p["x"]) * p["y"]) ** 2)(
        {k: np.asarray(v) for k, v in point.items()}
    )
    np.testing.assert_allclose(h["x"]["x"], theirs["x"]["x"], rtol=1e-5)


def test_complex_gradients_follow_jax() -> None:
    z = 1.5 + 0.5j
    for f, g in [
        (lambda z: jnp.abs(z) ** 2, lambda z: jnp_jax.abs(z) ** 2),
        (lambda z: jnp.real(z * z * jnp.conj(z)), lambda z: jnp_jax.real(z * z * jnp_jax.conj(z))),
        (lambda z: jnp.imag(jnp.exp(z)), lambda z: jnp_jax.imag(jnp_jax.exp(z))),
    ]:
        np.testing.assert_allclose(axir.grad(f)(z), jax.grad(g)(z), rtol=1e-5)
    np.testing.assert_allclose(
        axir.grad(lambda z: jnp.sin(z) * z, holomorphic=True)(z),
        jax.grad(lambda z: jnp_jax.sin(z) * z, holomorphic=True)(z),
        rtol=1e-5,
    )


def test_integer_arguments_have_float0_gradients() -> None:
    gradient = axir.grad(lambda n, x: n * x, argnums=(0, 1), allow_int=True)(3, 2.0)
    assert gradient[0].dtype == axir.dtypes.float0
    assert float(gradient[1]) == 3.0
    _, tangent = axir.jvp(lambda n: n * 2, (jnp.arange(2),), (np.zeros(2, axir.dtypes.float0),))
    assert tangent.dtype == axir.dtypes.float0


def test_nested_jit_runs_once_and_stays_a_unit() -> None:
    calls = []

    @axir.jit
    def inner(x):
        calls.append(1)
        return jnp.sin(x) * x

    gradient = axir.grad(lambda x: inner(x) + inner(2 * x))
    expected = jax.grad(lambda x: jnp_jax.sin(x) * x + jnp_jax.sin(2 * x) * 2 * x)(0.7)
    np.testing.assert_allclose(gradient(0.7), expected, rtol=1e-5)
    assert calls == [1]
    text = str(axir.make_jaxpr(gradient)(0.7).module())
    assert text.count("func.func private @inner_known") == 1
    assert text.count("jaxpr = @inner_known") == 2


def test_inner_functions_that_use_outer_tracers() -> None:
    def f(x):
        inner = axir.jit(lambda y: y * x)
        return inner(x) + axir.grad(lambda y: jnp.sin(y) * x)(x)

    np.testing.assert_allclose(
        axir.grad(f)(0.5),
        jax.grad(lambda x: x * x + jnp_jax.cos(x) * x)(0.5),
        rtol=1e-5,
    )


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: axir.grad(lambda x: x)(jnp.ones(2)), errors.GradientError,
         "Gradient only defined for scalar-output functions: '<lambda>' returned float32[2]."),
        (lambda: axir.grad(lambda x: (x, x))(1.0), errors.GradientError,
         "Gradient only defined for scalar-output functions: '<lambda>' returned a tree"),
        (lambda: axir.grad(lambda x: x * 1.0)(2), errors.GradientError,
         "grad requires real- or complex-valued inputs (sub-dtype of np.inexact), but got "
         "~int32[]."),
        (lambda: axir.grad(lambda x: jnp.exp(1j * x))(2.0), errors.GradientError,
         "grad with holomorphic=False requires a real output, but '<lambda>' returned "
         "~complex64[]."),
        (lambda: axir.grad(jnp.sin, holomorphic=True)(2.0), errors.GradientError,
         "grad with holomorphic=True requires inputs of a complex dtype, but got ~float32[]."),
        (lambda: axir.grad(jnp.sin, argnums=1)(2.0), ValueError,
         "grad: argnums 1 is out of range: the function was called with 1 positional arguments."),
        (lambda: axir.grad(lambda x: x, has_aux=True)(2.0), errors.TreeError,
         "With has_aux=True 'lambda' must return a pair (output, auxiliary), but it returned"),
        (lambda: axir.grad(jnp.sin(1.0)), errors.NonArrayArgumentError,
         "grad takes a function, not"),
        (lambda: axir.grad(lambda x: x)("a"), errors.NonArrayArgumentError,
         "of '<lambda>' is 'a' of type 'str', which is not an array."),
        (lambda: axir.jvp(jnp.sin, (1.0,), (jnp.ones(2),)), errors.GradientError,
         "Tangent of type float32[2] for a value of type ~float32[]."),
        (lambda: axir.jvp(jnp.sin, (1.0,), (1,)), errors.GradientError,
         "Tangent of type ~int32[] for a value of type ~float32[]."),
        (lambda: axir.jvp(jnp.sin, 1.0, 1.0), errors.TreeError,
         "jvp: primals must be a tuple or list of arguments, not float."),
        (lambda: axir.jvp(jnp.add, (1.0, 2.0), (1.0,)), errors.TreeError,
         "jvp: primals and tangents differ in structure"),
        (lambda: axir.vjp(jnp.sin, 1.0)[1](jnp.ones(3)), errors.GradientError,
         "Cotangent of type float32[3] for a value of type ~float32[]."),
        (lambda: axir.vjp(jnp.sin, 1.0)[1]((1.0, 2.0)), errors.TreeError,
         "was called with a cotangent of structure"),
    ],
)  # fmt: skip
def test_errors(call, error, text) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
