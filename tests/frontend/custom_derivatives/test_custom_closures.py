"""`custom_gradient`, `closure_convert`, `linear_transpose`, `linear_call`, `stop_gradient`."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.custom_derivatives import linear_call
from axir.dialect.core.errors import CustomRuleError, GradientError, TreeError, UnsupportedRuleError


def custom_square(lib: Any) -> Any:
    @lib.custom_gradient
    def f(x: Any, y: Any) -> Any:
        z = lib.numpy.sin(x)
        return z * y, lambda ct: (5 * ct * z, ct * y)

    return f


@pytest.mark.parametrize(
    "compose",
    [
        lambda lib, f: lib.grad(f, (0, 1)),
        lambda lib, f: lib.jit(lib.grad(lib.jit(f), (0, 1))),
        lambda lib, f: lib.grad(lambda x, y: lib.grad(f)(x, y)),
    ],
)
def test_custom_gradient_gives_the_values_of_jax(compose: Any) -> None:
    ours = compose(axir, custom_square(axir))(1.0, 2.0)
    theirs = compose(jax, custom_square(jax))(1.0, 2.0)
    for mine, other in zip(axir.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert float(mine) == pytest.approx(float(other), rel=1e-6)


def test_custom_gradient_of_one_argument_may_leave_out_the_tuple() -> None:
    f = axir.custom_gradient(lambda x: (x**2, lambda ct: 7 * ct))
    assert float(f(3.0)) == 9
    assert float(axir.grad(f)(3.0)) == 7
    mapped = axir.vmap(axir.grad(f))(jnp.arange(3.0))
    np.testing.assert_array_equal(np.asarray(mapped), np.full(3, 7, np.float32))


def test_custom_gradient_must_return_a_pair() -> None:
    with pytest.raises(CustomRuleError, match="must return a pair"):
        axir.custom_gradient(lambda x: x)(1.0)


def test_closure_convert_hoists_what_is_differentiated() -> None:
    constant = jnp.arange(3.0)

    def f(a: Any, b: Any) -> Any:
        converted, consts = axir.closure_convert(lambda x: a * x + b * constant, 1.0)
        assert len(consts) == 2
        return axir.grad(lambda first: converted(b, first, consts[1]).sum())(consts[0])

    assert float(axir.jit(f)(2.0, 3.0)) == 9
    converted, consts = axir.closure_convert(lambda x: x * constant, 1.0)
    assert consts == []
    np.testing.assert_array_equal(np.asarray(converted(2.0)), [0, 2, 4])
    with pytest.raises(TreeError, match="was converted for"):
        converted((2.0, 3.0))


def test_linear_transpose_needs_types_only() -> None:
    matrix = jnp.arange(6.0).reshape(2, 3)
    struct = axir.ShapeDtypeStruct((3,), "float32")
    ct = jnp.array([1.0, -2.0])
    transposed = axir.linear_transpose(lambda x: matrix @ x, struct)
    np.testing.assert_allclose(np.asarray(transposed(ct)[0]), np.asarray(matrix.T @ ct))
    np.testing.assert_allclose(np.asarray(axir.jit(transposed)(ct)[0]), np.asarray(matrix.T @ ct))
    back = axir.linear_transpose(lambda c: transposed(c)[0], ct)
    x = jnp.arange(3.0)
    np.testing.assert_allclose(np.asarray(back(x)[0]), np.asarray(matrix @ x))


def test_linear_transpose_of_trees_and_unused_arguments() -> None:
    f = lambda x, y: {"a": 2 * x["p"], "b": x["p"] + x["q"]}  # noqa: E731
    dx, dy = axir.linear_transpose(f, {"p": 1.0, "q": 1.0}, 1.0)({"a": 1.0, "b": 10.0})
    assert (float(dx["p"]), float(dx["q"]), float(dy)) == (12, 10, 0)


@pytest.mark.parametrize("function", [jnp.sin, lambda x: x * x])
def test_functions_that_are_not_linear_are_refused(function: Any) -> None:
    with pytest.raises(UnsupportedRuleError, match="is not linear"):
        axir.linear_transpose(function, 1.0)(1.0)


def test_cotangents_of_linear_transpose_are_checked() -> None:
    transposed = axir.linear_transpose(lambda x: 2.0 * x, 1.0)
    with pytest.raises(GradientError, match="does not match the output"):
        transposed(jnp.ones(3))
    with pytest.raises(TreeError, match="does not match the output"):
        transposed((1.0, 2.0))


def scaled(lib: Any, call: Any) -> Any:
    def f(r: Any, x: Any) -> Any:
        return x / r

    def transpose(r: Any, ct: Any) -> Any:
        return 7 * ct / r

    return lambda x: call(f, transpose, 2.0, x)


def test_linear_call_uses_the_transpose_given() -> None:
    f = scaled(axir, linear_call)
    assert float(f(3.0)) == 1.5
    assert float(axir.grad(f)(3.0)) == 3.5
    assert float(axir.jvp(f, (3.0,), (1.0,))[1]) == 0.5
    assert float(axir.jit(axir.grad(axir.jit(f)))(3.0)) == 3.5
    np.testing.assert_allclose(np.asarray(axir.vmap(axir.grad(f))(jnp.ones(2))), [3.5, 3.5])
    total = lambda x: axir.vmap(f)(x).sum()  # noqa: E731
    np.testing.assert_allclose(np.asarray(axir.grad(total)(jnp.ones(2))), [3.5, 3.5])
    theirs = scaled(jax, jax.custom_derivatives.linear_call)
    assert float(jax.grad(theirs)(3.0)) == 3.5


def test_stop_gradient_cuts_derivatives() -> None:
    f = lambda x: x * lax.stop_gradient(x)  # noqa: E731
    assert float(axir.grad(f)(3.0)) == 3
    assert float(axir.grad(axir.jit(f))(3.0)) == 3
    assert float(axir.jvp(f, (3.0,), (1.0,))[1]) == 3
    assert float(axir.grad(axir.grad(f))(3.0)) == 0
