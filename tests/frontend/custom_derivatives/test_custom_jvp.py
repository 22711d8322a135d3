"""`custom_jvp`: when rules run, their arguments and results, and JAX's values."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from support.derivative_programs import COMPOSITIONS, X

import axir
import axir.numpy as jnp
from axir import lax
from axir.custom_derivatives import SymbolicZero
from axir.dialect.core.errors import (
    CustomRuleError,
    TreeError,
    UndefinedRuleError,
    UnexpectedTracerError,
    UnsupportedRuleError,
)


def doubled_sine(lib: Any, calls: list[str] | None = None) -> Any:
    """A sine with a rule that doubles the derivative, which shows whether the rule was used."""
    log = [] if calls is None else calls

    @lib.custom_jvp
    def f(x: Any) -> Any:
        log.append("f")
        return lib.numpy.sin(x)

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        log.append("f_jvp")
        (x,), (dx,) = primals, tangents
        return lib.numpy.sin(x), 2 * lib.numpy.cos(x) * dx

    return f


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_compositions_give_the_values_of_jax(name: str) -> None:
    ours = COMPOSITIONS[name](axir, doubled_sine(axir))(jnp.asarray(X))
    theirs = COMPOSITIONS[name](jax, doubled_sine(jax))(X)
    for mine, other in zip(axir.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(other), rtol=2e-6, atol=1e-6)


def test_the_rule_runs_in_place_of_the_function() -> None:
    calls: list[str] = []
    f = doubled_sine(axir, calls)
    assert float(f(1.0)) == pytest.approx(np.sin(1.0))
    assert calls == ["f"]
    calls.clear()
    axir.grad(f)(1.0)
    assert calls == ["f_jvp"]
    calls.clear()
    axir.jvp(f, (1.0,), (1.0,))
    assert calls == ["f_jvp"]
    calls.clear()
    axir.jit(axir.grad(f))(1.0)
    assert calls == ["f_jvp"]
    calls.clear()
    axir.jit(f)(1.0)
    assert calls == ["f"]


def test_a_rule_that_calls_its_function_serves_every_order() -> None:
    @axir.custom_jvp
    def f(x: Any) -> Any:
        return x**3

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        return f(*primals), 5 * f(*primals) * tangents[0]

    # f' = 5 f, so the derivative of order n is 5^n f.
    assert float(axir.grad(f)(2.0)) == 40
    assert float(axir.grad(axir.grad(f))(2.0)) == 200
    assert float(axir.grad(axir.grad(axir.grad(axir.jit(f))))(2.0)) == 1000


def test_python_control_flow_in_rules_sees_values() -> None:
    @axir.custom_jvp
    def f(x: Any) -> Any:
        return x

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        (x,), (dx,) = primals, tangents
        return x, (3 * dx if x > 0 else -dx)

    assert float(axir.grad(f)(1.0)) == 3
    assert float(axir.grad(f)(-1.0)) == -1
    assert float(axir.grad(lambda x: axir.grad(f)(x) * x)(-1.0)) == -1


@pytest.mark.parametrize("wrap", [lambda f: f, axir.jit])
def test_rules_may_call_jitted_functions_and_loops(wrap: Any) -> None:
    inner = axir.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c), x))

    @axir.custom_jvp
    def f(x: Any) -> Any:
        return inner(x)

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        y, dy = axir.jvp(inner, primals, tangents)
        return y, 2 * dy

    expected = 2 * float(axir.grad(inner)(1.0))
    assert float(axir.grad(wrap(f))(1.0)) == pytest.approx(expected, rel=1e-6)


def test_a_jitted_rule_is_split() -> None:
    @axir.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    f.defjvp(axir.jit(lambda p, t: (jnp.sin(p[0]), 3 * jnp.cos(p[0]) * t[0])))
    value, gradient = axir.value_and_grad(f)(1.0)
    assert float(value) == pytest.approx(np.sin(1.0))
    assert float(gradient) == pytest.approx(3 * np.cos(1.0))


def test_trees_keywords_and_defaults() -> None:
    @axir.custom_jvp
    def f(params: Any, x: Any, scale: Any = 2.0) -> Any:
        return {"y": params["w"] * x * scale, "x": (x,)}

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        (params, x, scale), (dparams, dx, _) = primals, tangents
        out = f(params, x, scale)
        return out, {"y": 7 * dparams["w"] + dx, "x": (dx,)}

    for wrap in (lambda g: g, axir.jit):
        gradient = axir.grad(wrap(lambda p, x: f(x=x, params=p)["y"]), (0, 1))({"w": 3.0}, 4.0)
        assert float(gradient[0]["w"]) == 7
        assert float(gradient[1]) == 1


def test_keyword_only_arguments_are_refused() -> None:
    f = axir.custom_jvp(lambda x, *, scale: x * scale)
    f.defjvps(lambda dx, out, x: dx)
    with pytest.raises(TreeError, match="could not be resolved to positions: scale"):
        f(1.0, scale=2.0)


def test_defjvps_sums_over_arguments() -> None:
    f = axir.custom_jvp(lambda x, y, n: x * y)
    f.defjvps(lambda dx, out, x, y, n: 10 * dx, lambda dy, out, x, y, n: out * dy, None)
    assert [float(g) for g in axir.grad(f, (0, 1, 2))(2.0, 3.0, 4.0)] == [10, 6, 0]
    bound = axir.custom_jvp(lambda g, x: g(x), nondiff_argnums=(0,))
    with pytest.raises(TypeError, match="Can't use ``defjvps`` with ``nondiff_argnums``"):
        bound.defjvps(None, None)


@pytest.mark.parametrize("options", [{"nondiff_argnums": (0,)}, {"nondiff_argnames": "g"}])
def test_nondifferentiable_arguments_come_first(options: Any) -> None:
    @partial(axir.custom_jvp, **options)
    def apply(g: Any, x: Any) -> Any:
        return g(x)

    @apply.defjvp
    def apply_jvp(g: Any, primals: Any, tangents: Any) -> Any:
        return g(*primals), 2 * tangents[0]

    assert float(axir.grad(lambda x: apply(jnp.sin, x))(1.0)) == 2
    assert float(axir.jit(axir.grad(axir.jit(lambda x: apply(lambda y: y**2, x))))(1.0)) == 2


@pytest.mark.parametrize("wrap", [lambda f: f, axir.jit])
def test_traced_nondifferentiable_arguments_have_no_derivative(wrap: Any) -> None:
    f = axir.custom_jvp(lambda n, x: n * x, nondiff_argnums=(0,))
    f.defjvp(lambda n, p, t: (n * p[0], n * t[0]))
    assert [float(g) for g in axir.grad(wrap(f), (0, 1))(3.0, 4.0)] == [0, 3]


def test_integers_have_float0_tangents() -> None:
    seen = []

    @axir.custom_jvp
    def f(x: Any, n: Any) -> Any:
        return x * n, n

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        seen.append(tangents[1].dtype)
        return f(*primals), (tangents[0] * primals[1], tangents[1])

    for wrap in (lambda g: g, axir.jit):
        assert float(axir.grad(wrap(lambda x, n: f(x, n)[0]))(2.0, 3)) == 3
    assert seen == [axir.dtypes.float0] * 2


def test_symbolic_zeros_tell_which_arguments_are_constant() -> None:
    seen: list[tuple[bool, ...]] = []

    @axir.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * y

    def f_jvp(primals: Any, tangents: Any) -> Any:
        seen.append(tuple(isinstance(t, SymbolicZero) for t in tangents))
        dx, dy = tangents
        out = f(*primals)
        if isinstance(dx, SymbolicZero):
            return out, SymbolicZero(out.aval) if isinstance(dy, SymbolicZero) else 5 * dy
        return out, 3 * dx

    f.defjvp(f_jvp, symbolic_zeros=True)
    assert float(axir.grad(f)(2.0, 3.0)) == 3
    assert float(axir.grad(f, 1)(2.0, 3.0)) == 5
    assert seen == [(False, True), (True, False)]
    assert float(axir.grad(lambda x: f(lax.stop_gradient(x), x))(2.0)) == 5
    assert float(axir.grad(axir.jit(f), 1)(2.0, 3.0)) == 5
    assert seen[2:] == [(True, False), (True, False)]


def test_rules_of_vectorized_functions_may_name_the_axis() -> None:
    @axir.custom_jvp
    def f(x: Any) -> Any:
        return x

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        return primals[0], lax.psum(tangents[0], "i")

    def total(x: Any) -> Any:
        return (axir.vmap(f, axis_name="i")(x) * jnp.arange(4.0)).sum()

    np.testing.assert_allclose(np.asarray(axir.grad(total)(jnp.asarray(X))), np.full(4, 6.0))


def mapped_product(lib: Any, kind: str) -> Any:
    @getattr(lib, kind)
    def f(w: Any, x: Any) -> Any:
        return w * x.sum()

    if kind == "custom_jvp":
        f.defjvp(lambda p, t: (f(*p), 2 * t[0] * p[1].sum() + p[0] * t[1].sum()))
    else:
        f.defvjp(
            lambda w, x: (f(w, x), (w, x)),
            lambda r, ct: (2 * ct * r[1].sum(), ct * r[0] * lib.numpy.ones_like(r[1])),
        )
    return f


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
@pytest.mark.parametrize("axes", [(0, 1), (None, 0), (0, None), (0, 0)])
def test_mapped_axes_anywhere_give_the_values_of_jax(kind: str, axes: Any) -> None:
    def gradient(lib: Any, w: Any, x: Any) -> Any:
        def total(w: Any, x: Any) -> Any:
            return (lib.vmap(mapped_product(lib, kind), axes)(w, x) * lib.numpy.arange(3.0)).sum()

        return lib.grad(total, (0, 1))(w, x)

    w = np.float32(2) if axes[0] is None else np.arange(1, 4, dtype=np.float32)
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    ours = gradient(axir, jnp.asarray(w), jnp.asarray(x))
    theirs = gradient(jax, jax.numpy.asarray(w), jax.numpy.asarray(x))
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(other), rtol=2e-6)


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_complex_derivatives_follow_the_convention(kind: str) -> None:
    f = getattr(axir, kind)(lambda z: z * z)
    if kind == "custom_jvp":
        f.defjvp(lambda p, t: (p[0] * p[0], 2 * p[0] * t[0]))
    else:
        f.defvjp(lambda z: (z * z, z), lambda z, ct: (2 * z * ct,))
    expected = complex(axir.grad(lambda z: jnp.abs(z * z))(1.0 + 2j))
    assert complex(axir.grad(lambda z: jnp.abs(f(z)))(1.0 + 2j)) == pytest.approx(expected)
    compiled = axir.jit(axir.grad(lambda z: jnp.abs(f(z))))
    assert complex(compiled(1.0 + 2j)) == pytest.approx(expected)


def test_loops_of_unknown_length_push_tangents() -> None:
    f = doubled_sine(axir)

    def loop(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (0, x))[1]

    expected = 4 * np.cos(1.0) * np.cos(np.sin(1.0))
    assert float(axir.jvp(loop, (1.0,), (1.0,))[1]) == pytest.approx(expected, rel=1e-6)


def test_methods() -> None:
    class Scale:
        def __init__(self, factor: float):
            self.factor = factor

        @partial(axir.custom_jvp, nondiff_argnums=(0,))
        def apply(self, x: Any) -> Any:
            return self.factor * x

        apply.defjvp(lambda self, p, t: (self.apply(*p), 10 * self.factor * t[0]))

    assert float(axir.grad(Scale(3.0).apply)(2.0)) == 30
    assert float(axir.grad(axir.jit(Scale(4.0).apply))(2.0)) == 40


def test_jaxpr_shows_the_call() -> None:
    jaxpr = axir.make_jaxpr(doubled_sine(axir))(1.0)
    (equation,) = jaxpr.eqns
    assert equation.primitive.name == "custom_jvp_call"
    assert str(equation.params["jvp_jaxpr_fun"]) == "f_jvp"
    assert [e.primitive.name for e in equation.params["call_jaxpr"].equations] == ["sin"]
    text = " ".join(str(jaxpr).split())
    assert "custom_jvp_call[" in text
    assert "jvp_jaxpr_fun=f_jvp name=f num_consts=0 symbolic_zeros=False" in text


def test_compiled_code_has_the_body_only() -> None:
    text = axir.jit(doubled_sine(axir)).lower(1.0).as_text()
    assert "stablehlo.sine" in text
    assert "call" not in text.replace("caller", "")


# Errors -----------------------------------------------------------------------------------------


def with_rule(rule: Any) -> Any:
    @axir.custom_jvp
    def h(x: Any, y: Any) -> Any:
        return x * y

    h.defjvp(rule)
    return h


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda p, t: p[0], "must produce a pair .* but got"),
        (lambda p, t: (p[0], (t[0], t[0])), "equal container .pytree. structures, but got"),
        (lambda p, t: (p[0], None), "equal container .pytree. structures, but got"),
        (lambda p, t: (p[0], jnp.ones(2) * t[0]), r"Expected ~float32\[\] .* but got float32\[2\]"),
        (
            lambda p, t: (p[0], t[0].astype("float16")),
            r"Expected ~float32\[\] \(tangent type of ~float32\[\]\) but got float16\[\]",
        ),
    ],
)
def test_wrong_rules_are_described(rule: Any, message: str) -> None:
    for wrap in (lambda f: f, axir.jit):
        with pytest.raises(CustomRuleError, match=message) as error:
            axir.grad(wrap(with_rule(rule)))(3.0, 2.0)
        assert isinstance(error.value, TypeError)
        assert "'h'" in str(error.value) or "function h" in str(error.value)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda p, t: ((p[0],), (t[0],)), "its structure is .* the function's output"),
        (lambda p, t: (p[0] * jnp.ones(2), t[0] * jnp.ones(2)), r"of type float32\[2\]"),
    ],
)
def test_primal_outputs_are_compared_with_the_function(rule: Any, message: str) -> None:
    with pytest.raises(CustomRuleError, match=message):
        axir.grad(axir.jit(with_rule(rule)))(3.0, 2.0)


@pytest.mark.parametrize(
    ("rule", "op"),
    [
        (lambda p, t: (p[0], t[0] * t[0]), "mul"),
        (lambda p, t: (p[0], jnp.sin(t[0])), "sin"),
    ],
)
def test_rules_that_are_not_linear_fail_in_reverse_mode(rule: Any, op: str) -> None:
    with pytest.raises(UnsupportedRuleError, match=f"'{op}' can.*linear"):
        axir.grad(with_rule(rule))(3.0, 2.0)
    assert np.isfinite(float(axir.jvp(with_rule(rule), (3.0, 2.0), (1.0, 0.0))[1]))


def test_a_rule_must_be_defined_before_the_call() -> None:
    h = axir.custom_jvp(lambda x: x)
    with pytest.raises(UndefinedRuleError, match="No JVP defined for custom_jvp function") as error:
        h(1.0)
    assert isinstance(error.value, AttributeError)


def closing_over(y: Any) -> Any:
    f = axir.custom_jvp(lambda x: x * y)
    f.defjvp(lambda p, t: (p[0] * y, t[0] * y))
    return f


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: closing_over(y)(x),
        lambda x, y: closing_over(y)(2.0) * x,
        axir.jit(lambda x, y: closing_over(y)(x)),
        axir.jit(lambda x, y: closing_over(y)(2.0) * x),
    ],
)
def test_differentiation_in_closed_over_values_is_refused(function: Any) -> None:
    with pytest.raises(UnexpectedTracerError, match="with respect to a closed-over value"):
        axir.grad(function, (0, 1))(3.0, 2.0)


def test_constants_may_be_closed_over() -> None:
    assert float(axir.grad(lambda x: closing_over(lax.stop_gradient(x))(x))(3.0)) == 3
    assert float(axir.jit(lambda y: axir.grad(closing_over(y))(3.0))(2.0)) == 2
    assert float(axir.jit(lambda y: axir.grad(axir.jit(closing_over(y)))(3.0))(2.0)) == 2


def test_what_loops_compute_of_constants_does_not_move() -> None:
    @axir.custom_jvp
    def doubled(x: Any) -> Any:
        return axir.vmap(lambda x: lax.while_loop(lambda x: x < 10, lambda x: 2 * x, x))(x)

    doubled.defjvp(lambda p, t: (doubled(p[0]), 2 * t[0]))
    function = lambda y: jnp.sum(doubled(jnp.array([3.0, 5.0])) * y)  # noqa: E731
    assert float(axir.grad(function)(2.0)) == 22
    assert float(axir.jvp(function, (2.0,), (1.0,))[1]) == 22
    assert float(axir.jit(axir.grad(function))(2.0)) == 22
    assert float(axir.grad(axir.grad(lambda y: function(y) * y))(2.0)) == 44


@pytest.mark.parametrize("wrap", [axir.jit, lambda f: axir.vmap(f, (None, 0))])
def test_traced_constants_of_rules_become_operands(wrap: Any) -> None:
    def total(x: Any) -> Any:
        return wrap(lambda x, y: closing_over(y)(x))(x, jnp.arange(3.0)).sum()

    assert float(axir.grad(total)(5.0)) == 3
    assert float(axir.jvp(total, (5.0,), (1.0,))[1]) == 3
    assert float(axir.jit(axir.grad(total))(5.0)) == 3


def test_rules_that_call_their_function_may_close_over_traced_constants() -> None:
    def total(x: Any, y: Any) -> Any:
        f = axir.custom_jvp(lambda x: x * y)
        f.defjvp(lambda p, t: (f(*p), 10 * y * t[0]))
        return f(x)

    assert float(axir.grad(axir.jit(total))(5.0, 2.0)) == 20


@pytest.mark.parametrize(
    "constant",
    [
        lambda x: lax.stop_gradient(2 * x),
        lambda x: jnp.where(x < 1, 3.0, 4.0),
        lambda x: jnp.clip(lax.stop_gradient(x), 0, 1) ** 2,
        axir.jit(lambda x: jnp.floor(x) + lax.stop_gradient(x)),
        lambda x: axir.jit(lambda x, y: (x, 2 * y))(x, lax.stop_gradient(x))[1],
    ],
)
def test_rules_do_not_run_for_what_is_not_differentiated(constant: Any) -> None:
    def refuse(primals: Any, tangents: Any) -> Any:
        raise RuntimeError("differentiated")

    f = axir.custom_jvp(lambda x: 1.0 * x)
    f.defjvp(refuse)
    g = axir.custom_vjp(lambda x: 1.0 * x)
    g.defvjp(lambda x: refuse(x, x), refuse)
    for fixed in (f, g):
        check_that_only_what_moves_calls(fixed, constant)


def check_that_only_what_moves_calls(fixed: Any, constant: Any) -> None:
    gradient = axir.grad(lambda x: x * fixed(constant(x)))
    assert float(gradient(0.5)) == float(constant(0.5))
    axir.eval_shape(axir.grad(axir.jit(lambda x: x * fixed(constant(x)))), 0.5)
    with pytest.raises(RuntimeError, match="differentiated"):
        axir.grad(lambda x: x * fixed(constant(x) + x))(0.5)


def test_a_rule_may_apply_its_function_to_tangents() -> None:
    for wrap in (lambda f: f, axir.jit):

        @axir.custom_jvp
        def scaled(x: Any, y: Any) -> Any:
            return x / y

        @scaled.defjvp
        def rule(primals: Any, tangents: Any, scaled: Any = scaled, wrap: Any = wrap) -> Any:
            again = wrap(scaled)
            return again(*primals), again(tangents[0], primals[1])

        def half(x: Any, scaled: Any = scaled) -> Any:
            return scaled(x, 2.0)

        assert axir.jvp(half, (3.0,), (1.0,)) == (1.5, 0.5)
        assert axir.grad(half)(3.0) == axir.jit(axir.grad(half))(3.0) == 0.5
        assert axir.vmap(axir.grad(half))(jnp.ones(2)).tolist() == [0.5, 0.5]
        assert axir.hessian(half)(3.0) == 0


def test_partial_functions_keep_their_keywords() -> None:
    def weighted(x: Any, y: Any, a: Any) -> Any:
        return x + y * a

    wrapped = partial(weighted, a=0.5)
    function = axir.custom_jvp(wrapped)
    function.defjvp(lambda primals, tangents: axir.jvp(wrapped, primals, tangents))
    assert axir.grad(lambda args: function(*args))((1.0, 2.0)) == (1.0, 0.5)
    with pytest.raises(TreeError, match="could not be resolved to positions: a"):
        function(1.0, 2.0, a=3.0)


@pytest.mark.parametrize("wrap", [lambda f: f, axir.jit])
def test_keywords_behind_a_parameter_that_is_left_out(wrap) -> None:
    @partial(axir.custom_jvp, nondiff_argnums=(1, 3))
    def scaled(x, power=2, shift=0.0, sign=False):
        return (-1 if sign else 1) * x**power + shift

    @scaled.defjvp
    def rule(power, sign, primals, tangents):
        (x, shift), (dx, _ds) = primals, tangents
        return scaled(x, power, shift, sign), 100.0 * dx

    assert float(wrap(lambda x: scaled(x, sign=True))(3.0)) == -9.0
    assert float(axir.grad(wrap(lambda x: scaled(x, shift=1.0, sign=True)))(3.0)) == 100.0
