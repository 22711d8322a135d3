"""`check_grads` and similar functions accept right derivatives, and report errors of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.errors import ParameterError
from axir.test_util import check_grads, check_jvp, check_vjp

POINTS = np.array([0.1, -0.4, 0.9])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_right_derivatives_pass(dtype: str) -> None:
    with axir.enable_x64(True):
        x = jnp.asarray(POINTS, dtype)
        check_grads(lambda x: jnp.tanh(x) * x, (x,), order=2)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_functions_are_taken_as_real_ones(dtype: str) -> None:
    with axir.enable_x64(True):
        z = jnp.asarray(POINTS + 1j * POINTS[::-1], dtype)
        check_grads(lambda z: jnp.sin(z) * z, (z,), order=2)
        check_grads(lambda z: jnp.real(z) * jnp.conj(z), (z,), order=2)
        check_grads(lambda z: jnp.sum(jnp.abs(z) ** 2), (z,), order=2)


def test_trees_and_integers_pass() -> None:
    def f(weights: Any, count: Any) -> Any:
        return {"sum": weights["a"] * jnp.cos(weights["b"][0]) * count, "count": count}

    weights = {"a": jnp.asarray(POINTS, "float32"), "b": [jnp.float32(0.5)]}
    check_grads(f, (weights, 3), order=2)


def test_a_function_may_be_large() -> None:
    x = jnp.linspace(-1, 1, 2000)
    check_grads(lambda x: jnp.sin(x) * jnp.exp(x), (x,), order=1)
    check_grads(lambda x: jnp.sum(x * x), (x,), order=1)


def wrong_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return jnp.sin(x), dx


def test_a_wrong_tangent_is_told_with_place_and_both_numbers() -> None:
    x = jnp.array([0.0, 1.0])
    with pytest.raises(AssertionError) as caught:
        check_jvp(jnp.sin, wrong_jvp, (x,))
    text = str(caught.value)
    assert text.startswith("JVP: tangent of the output at (1,) is ")
    numbers = text.split(" is ")[1].split(" give ")
    found, expected = (float(words.split()[0].strip(",")) for words in numbers)
    np.testing.assert_allclose(expected / found, np.cos(1.0), rtol=1e-3)
    assert "(1 of 2 differ by more than atol=0.002, rtol=0.002)" in text


def test_a_wrong_output_is_told() -> None:
    with pytest.raises(AssertionError, match=r"JVP: output is 0\.54.*, but the function gives 0\."):
        check_jvp(jnp.sin, lambda xs, dxs: (jnp.cos(xs[0]), dxs[0]), (1.0,))


def test_a_wrong_shape_is_told() -> None:
    with pytest.raises(AssertionError, match=r"has shape \(\), but it should have \(2,\)"):
        check_jvp(jnp.sin, lambda xs, dxs: (jnp.sin(xs[0]), dxs[0].sum()), (jnp.ones(2),))


def test_a_wrong_cotangent_names_the_argument() -> None:
    def f(pair: Any, z: Any) -> Any:
        return pair["x"] * pair["y"] + z

    def wrong(pair: Any, z: Any) -> Any:
        return f(pair, z), lambda ct: ({"x": ct * pair["y"], "y": 2 * ct * pair["x"]}, ct)

    with pytest.raises(AssertionError) as caught:
        check_vjp(f, wrong, ({"x": 2.0, "y": 3.0}, 1.0))
    assert str(caught.value).startswith("VJP: cotangent of argument [0]['y'] is ")
    with pytest.raises(AssertionError, match="the pullback returned a tree"):
        check_vjp(f, lambda p, z: (f(p, z), lambda ct: (ct, ct)), ({"x": 2.0, "y": 3.0}, 1.0))


def test_nan_for_a_finite_derivative_is_an_error() -> None:
    with pytest.raises(AssertionError, match="is nan, but finite differences give"):
        check_jvp(jnp.sin, lambda xs, dxs: (jnp.sin(xs[0]), dxs[0] * jnp.nan), (jnp.ones(2),))


def test_an_error_of_second_order_is_found_in_every_mode() -> None:
    # The square is zero for finite differences, and so is its derivative; its second one is not.
    def concealed(x: Any) -> Any:
        return jnp.sin(x) + (x - axir.lax.stop_gradient(x)) ** 2

    x = jnp.ones(2)
    check_grads(concealed, (x,), order=1)
    for modes, name in ((("fwd",), "JVP of JVP"), (("rev",), "VJP of VJP")):
        with pytest.raises(AssertionError, match=f"^{name}: "):
            check_grads(concealed, (x,), order=2, modes=modes)


def test_settings_replace_the_defaults() -> None:
    def slightly_wrong(primals: Any, tangents: Any) -> Any:
        return jnp.sin(primals[0]), tangents[0] * jnp.cos(primals[0]) * 1.01

    with pytest.raises(AssertionError):
        check_jvp(jnp.sin, slightly_wrong, (1.0,))
    check_jvp(jnp.sin, slightly_wrong, (1.0,), rtol=0.02)
    check_jvp(jnp.sin, slightly_wrong, (1.0,), atol=0.02)
    with pytest.raises(AssertionError):  # the step is so wide that the difference is no derivative
        check_grads(jnp.sin, (1.0,), order=1, eps=2.0)


def test_arguments_are_checked() -> None:
    with pytest.raises(ParameterError, match="modes are 'fwd' and 'rev'"):
        check_grads(jnp.sin, (1.0,), order=1, modes=("forward",))
    with pytest.raises(ParameterError, match="at least 1"):
        check_grads(jnp.sin, (1.0,), order=0)
