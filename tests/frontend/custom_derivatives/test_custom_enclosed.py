"""Rules that close over values of a `vmap` or `jit`, and calls within rules that do."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.errors import UnexpectedTracerError

X = np.arange(3, dtype=np.float32)
TEN_X = 10 * X


def forward_rule(x):
    """The rule closes over `x`, and the function does not."""

    @axir.custom_jvp
    def f(y):
        return 2 * y

    f.defjvp(functools.partial(lambda x, primals, tangents: (f(*primals), 10 * x * tangents[0]), x))
    return f


def reverse_rules(x):
    """The function closes over `x`, and so does the forward rule."""

    @axir.custom_vjp
    def f(y):
        return x * y

    f.defvjp(lambda y: (f(y), x), lambda x, ct: (10 * x * ct,))
    return f


def forward_rule_alone(x):
    """The forward rule of a pair closes over `x`, and the function does not."""

    @axir.custom_vjp
    def f(y):
        return 2 * y

    f.defvjp(lambda y: (f(y), {"x": x}), lambda residual, ct: (10 * residual["x"] * ct,))
    return f


@pytest.mark.parametrize("make", [forward_rule, reverse_rules, forward_rule_alone])
def test_gradient_of_a_vmap_that_the_rule_closes_over(make):
    def total(y):
        return axir.vmap(lambda x, y: make(x)(y))(X, y).sum()

    assert axir.grad(total)(X).tolist() == TEN_X.tolist()


def test_gradients_of_jit_and_of_vmap_within():
    def total(y):
        called = axir.jit(lambda x, y: forward_rule_alone(x)(y))(3.0, y)
        return (called + axir.vmap(lambda x, y: reverse_rules(x)(y))(X, y)).sum()

    assert axir.jit(axir.grad(total))(X).tolist() == (30 + TEN_X).tolist()


def test_no_derivative_in_what_is_closed_over():
    def total(x):
        return axir.vmap(lambda x: reverse_rules(x)(1.0))(x).sum()

    with pytest.raises(UnexpectedTracerError, match="with respect to a closed-over value"):
        axir.grad(total)(X)


def test_a_backward_rule_gets_residuals():
    def call(x, y):
        f = axir.custom_vjp(lambda y: 2 * y)
        f.defvjp(lambda y: (2 * y, None), lambda residual, ct: (ct * x,))
        return f(y)

    with pytest.raises(UnexpectedTracerError, match="to the rule as a residual"):
        axir.grad(lambda y: axir.vmap(call)(X, y).sum())(jnp.asarray(X))


@axir.custom_jvp
def tripled(x):
    return 2 * x


tripled.defjvp(lambda primals, tangents: (tripled(*primals), 3 * tangents[0]))


def test_calls_that_close_over_what_a_rule_is_asked_about():
    assert axir.grad(lambda x: tripled(axir.jit(lambda y: y * x)(2.0)))(5.0) == 6.0


def test_a_call_within_a_rule_closes_over_primals():
    f = axir.custom_jvp(lambda x: x)

    @f.defjvp
    def rule(primals, tangents):
        (x,), (dx,) = primals, tangents
        return f(x), axir.jit(lambda dx: tripled(dx) * x)(dx)

    assert axir.jit(axir.grad(f))(5.0) == 10.0
