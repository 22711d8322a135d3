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


def refuse(*_):
    raise AssertionError("the rule ran although nothing is differentiated")


def uncalled(kind, **options):
    """A function of `x` and `y` with a rule that captures `x`, and must not run."""

    def f(x, y):
        inner = getattr(axir, kind)(lambda y: x * y)
        rule = functools.partial(refuse, x)
        if kind == "custom_vjp":
            inner.defvjp(rule, rule, **options)
        else:
            inner.defjvp(rule, **options)
        return inner(y)

    return f


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
@pytest.mark.parametrize("symbolic_zeros", [False, True])
def test_rules_wait_until_something_is_differentiated(kind, symbolic_zeros):
    f = uncalled(kind, symbolic_zeros=symbolic_zeros)
    squares = [0, 1, 4]
    assert axir.vmap(f)(X, X).tolist() == squares
    assert axir.jit(axir.vmap(f, (0, None)))(X, 2.0).tolist() == [0, 2, 4]
    assert axir.jit(f)(X, X).tolist() == squares
    assert axir.vmap(axir.jit(f))(X, X).tolist() == squares
    assert axir.lax.map(lambda x: f(x, x), X).tolist() == squares
    assert axir.lax.scan(lambda c, x: (f(x, c), c), 1.0, X[1:])[0] == 2.0
    assert axir.grad(lambda z: z * axir.vmap(f)(X, X).sum())(1.0) == 5.0


@pytest.mark.parametrize("make", [forward_rule, reverse_rules, forward_rule_alone])
def test_rules_run_when_traces_have_ended(make):
    """The value that the rule closes over belongs to a trace that is over when it is asked for."""

    def f(x, y):
        return make(x)(y)

    called = axir.jit(f)
    called(X, X)
    assert axir.grad(lambda y: called(X, y).sum())(X).tolist() == TEN_X.tolist()
    scanned = lambda y: axir.lax.scan(lambda c, xy: (c + f(*xy), None), 0.0, (X, y))[0]  # noqa: E731
    assert axir.grad(scanned)(X).tolist() == TEN_X.tolist()
    chosen = axir.vmap(lambda x, y: axir.lax.cond(x > 1, f, lambda x, y: y, x, y))
    assert axir.grad(lambda y: chosen(X, y).sum())(X).tolist() == [1, 1, 20]
    twice = axir.grad(lambda y: axir.grad(lambda y: (axir.vmap(f)(X, y) ** 2).sum())(y).sum())
    assert twice(X).tolist() == (2 * TEN_X**2).tolist()


def test_rules_run_within_loops_and_branches_and_calls_of_their_own():
    def f(x, y):
        inner = axir.custom_jvp(lambda y: 2 * y)

        @inner.defjvp
        def rule(primals, tangents):
            slope = axir.lax.fori_loop(0, 5, lambda i, c: c + 2 * x, 0.0)
            slope = axir.lax.cond(x > -1, lambda: slope, lambda: 0 * x)
            return inner(*primals), axir.jit(lambda t: slope * t)(tangents[0])

        return inner(y)

    total = axir.jit(lambda y: axir.vmap(f)(X, y).sum())
    total(X)
    assert axir.grad(total)(X).tolist() == TEN_X.tolist()
    assert axir.jit(axir.grad(total))(X).tolist() == TEN_X.tolist()


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_what_the_rule_alone_closes_over_has_no_derivative(kind):
    f = lambda x, y: (forward_rule if kind == "custom_jvp" else forward_rule_alone)(x)(y)  # noqa: E731
    mapped = lambda x, y: axir.vmap(f)(x, y).sum()  # noqa: E731
    assert axir.grad(mapped)(X, X).tolist() == [0, 0, 0]
    by_x, by_y = axir.grad(mapped, (0, 1))(X, X)
    assert (by_x.tolist(), by_y.tolist()) == ([0, 0, 0], TEN_X.tolist())
    mixed = axir.grad(lambda x: axir.grad(mapped, 1)(x, X).sum())
    assert mixed(X).tolist() == [10, 10, 10]


def test_attributes_of_objects_that_a_rule_holds():
    class Scale:
        def __init__(self, factors):
            self.factors = {"all": factors}

    def f(x, y):
        scale = Scale([x])
        inner = axir.custom_jvp(lambda y: 2 * y)
        inner.defjvp(lambda p, t: (inner(*p), 10 * scale.factors["all"][0] * t[0]))
        return inner(y)

    assert axir.grad(lambda y: axir.vmap(f)(X, y).sum())(X).tolist() == TEN_X.tolist()
