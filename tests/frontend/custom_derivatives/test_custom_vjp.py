"""`custom_vjp`: when rules run, their arguments and results, and JAX's values."""

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
from axir.custom_derivatives import SymbolicZero, custom_vjp_primal_tree_values
from axir.dialect.core.errors import (
    CustomRuleError,
    ForwardModeError,
    UndefinedRuleError,
    UnexpectedTracerError,
)

FORWARD_MODE = {"jacfwd", "hessian", "hessian of jit", "jvp", "jvp jit", "linearize"}


def doubled_sine(lib: Any, calls: list[str] | None = None) -> Any:
    """A sine with a rule that doubles the derivative, which shows whether the rule was used."""
    log = [] if calls is None else calls

    @lib.custom_vjp
    def f(x: Any) -> Any:
        log.append("f")
        return lib.numpy.sin(x)

    def f_fwd(x: Any) -> Any:
        log.append("f_fwd")
        return lib.numpy.sin(x), lib.numpy.cos(x)

    def f_bwd(cos_x: Any, ct: Any) -> Any:
        log.append("f_bwd")
        return (2 * cos_x * ct,)

    f.defvjp(f_fwd, f_bwd)
    return f


@pytest.mark.parametrize("name", [name for name in COMPOSITIONS if name not in FORWARD_MODE])
def test_compositions_give_the_values_of_jax(name: str) -> None:
    ours = COMPOSITIONS[name](axir, doubled_sine(axir))(jnp.asarray(X))
    theirs = COMPOSITIONS[name](jax, doubled_sine(jax))(X)
    for mine, other in zip(axir.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(other), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", sorted(FORWARD_MODE - {"hessian", "hessian of jit"}))
def test_forward_mode_is_refused(name: str) -> None:
    with pytest.raises(ForwardModeError, match="can't apply forward-mode autodiff") as error:
        COMPOSITIONS[name](axir, doubled_sine(axir))(jnp.asarray(X))
    assert isinstance(error.value, TypeError)


def test_the_rules_run_in_place_of_the_function() -> None:
    calls: list[str] = []
    f = doubled_sine(axir, calls)
    f(1.0)
    assert calls == ["f"]
    calls.clear()
    axir.grad(f)(1.0)
    assert calls == ["f_fwd", "f_bwd"]
    calls.clear()
    _, pullback = axir.vjp(f, 1.0)
    assert calls == ["f_fwd"]
    pullback(1.0)
    assert calls == ["f_fwd", "f_bwd"]
    calls.clear()
    axir.jit(axir.grad(f))(1.0)
    assert calls == ["f_fwd", "f_bwd"]


def test_python_control_flow_in_rules_sees_values() -> None:
    f = axir.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, bool(x > 0)), lambda up, ct: (3 * ct if up else -ct,))
    assert float(axir.grad(f)(1.0)) == 3
    assert float(axir.grad(f)(-1.0)) == -1


def test_trees_and_none() -> None:
    @axir.custom_vjp
    def f(params: Any, x: Any, unused: Any = None) -> Any:
        return {"y": params["w"] * x + params["b"][0]}

    def fwd(params: Any, x: Any, unused: Any) -> Any:
        return f(params, x), {"x": x, "nothing": None}

    def bwd(residuals: Any, ct: Any) -> Any:
        return {"w": residuals["x"] * ct["y"] * 10, "b": (None,)}, None, None

    f.defvjp(fwd, bwd)
    params = {"w": 3.0, "b": (1.0,)}
    for wrap in (lambda g: g, axir.jit):
        gradient, dx = axir.grad(wrap(lambda p, x: f(p, x=x)["y"]), (0, 1))(params, 4.0)
        assert float(gradient["w"]) == 40
        assert float(gradient["b"][0]) == 0
        assert float(dx) == 0


def test_nondifferentiable_arguments() -> None:
    @partial(axir.custom_vjp, nondiff_argnums=(1,))
    def apply(x: Any, g: Any) -> Any:
        return g(x)

    def fwd(x: Any, g: Any) -> Any:
        return g(x), x

    def bwd(g: Any, x: Any, ct: Any) -> Any:
        return (ct * g(x),)

    apply.defvjp(fwd, bwd)
    for wrap in (lambda f: f, axir.jit):
        gradient = axir.grad(wrap(lambda x: apply(x, jnp.exp)))(0.5)
        assert float(gradient) == pytest.approx(np.exp(0.5))


def test_integer_arguments_have_no_cotangent() -> None:
    f = axir.custom_vjp(lambda x, n: x * n)
    f.defvjp(lambda x, n: (x * n, n), lambda n, ct: (ct * n, None))
    assert float(axir.grad(f)(2.0, 3)) == 3
    dx, dn = axir.grad(f, (0, 1), allow_int=True)(2.0, 3)
    assert float(dx) == 3
    assert dn.dtype == axir.dtypes.float0
    assert float(axir.jit(axir.grad(axir.jit(f)))(2.0, 3)) == 3


def test_symbolic_zeros_tell_what_is_differentiated() -> None:
    seen: list[Any] = []

    @axir.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x * y, x + y

    def fwd(x: Any, y: Any) -> Any:
        seen.append((x.perturbed, y.perturbed))
        return f(*custom_vjp_primal_tree_values((x, y))), y.value

    def bwd(y: Any, cts: Any) -> Any:
        seen.append(tuple(isinstance(ct, SymbolicZero) for ct in cts))
        return 7 * cts[0], None

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    for wrap in (lambda g: g, axir.jit):
        seen.clear()
        assert float(axir.grad(wrap(lambda x, y: f(x, y)[0]))(2.0, 3.0)) == 7
        assert seen == [(True, False), (False, True)]


def test_cotangents_of_unused_results_are_zeros() -> None:
    f = axir.custom_vjp(lambda x: (x, 2 * x))
    f.defvjp(lambda x: ((x, 2 * x), None), lambda _, cts: (cts[0] + 100 * cts[1],))
    assert float(axir.grad(lambda x: f(x)[0])(1.0)) == 1
    assert float(axir.grad(lambda x: axir.jit(f)(x)[1])(1.0)) == 100


def test_unmapped_arguments_get_the_sum_of_cotangents() -> None:
    f = axir.custom_vjp(lambda w, x: w * x)
    f.defvjp(lambda w, x: (w * x, (w, x)), lambda r, ct: (ct * r[1], ct * r[0]))

    def total(w: Any, x: Any) -> Any:
        return axir.vmap(f, in_axes=(None, 0))(w, x).sum()

    dw, dx = axir.grad(total, (0, 1))(2.0, jnp.asarray(X))
    assert float(dw) == pytest.approx(X.sum())
    np.testing.assert_allclose(np.asarray(dx), np.full(4, 2.0))


def test_backward_rules_may_name_the_mapped_axis() -> None:
    f = axir.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (lax.psum(ct, "i"),))

    def total(x: Any) -> Any:
        return (axir.vmap(f, axis_name="i")(x) * jnp.arange(4.0)).sum()

    np.testing.assert_allclose(np.asarray(axir.grad(total)(jnp.asarray(X))), np.full(4, 6.0))


def test_weak_cotangents_take_the_dtype_of_their_argument() -> None:
    f = axir.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (1,))
    gradient = axir.grad(f)(jnp.float32(2.0))
    assert (float(gradient), gradient.dtype) == (1, np.float32)


# Errors -----------------------------------------------------------------------------------------


def fwd_of_product(x: Any, y: Any) -> Any:
    return x * y, (x, y)


def with_rules(fwd: Any, bwd: Any) -> Any:
    @axir.custom_vjp
    def h(x: Any, y: Any) -> Any:
        return x * y

    h.defvjp(fwd, bwd)
    return h


@pytest.mark.parametrize(
    ("bwd", "message"),
    [
        (lambda r, ct: ct, "must produce a tuple of length equal to the number of arguments"),
        (lambda r, ct: (ct,), "must produce a tuple of length equal to the number of arguments"),
        (lambda r, ct: None, "must produce a tuple of length equal to the number of arguments"),
        (lambda r, ct: ((ct, ct), ct), "structure .* for argument 0, which has structure"),
        (lambda r, ct: (ct, jnp.ones(3) * ct), r"type float32\[3\] for argument 1.*shapes do not"),
        (lambda r, ct: (ct.astype("int16"), ct), "for argument 0.*the dtypes do not match"),
    ],
)
def test_wrong_cotangents_are_described(bwd: Any, message: str) -> None:
    for wrap in (lambda f: f, axir.jit):
        with pytest.raises(CustomRuleError, match=message) as error:
            axir.grad(wrap(with_rules(fwd_of_product, bwd)), (0, 1))(3.0, 2.0)
        assert "'h'" in str(error.value)


def test_cotangents_are_rounded_to_the_dtypes_of_arguments() -> None:
    """JAX lets rules be more exact than their arguments, and fails where their values go on."""
    double = axir.custom_vjp(lambda x: 2 * x)
    double.defvjp(lambda x: (2 * x, None), lambda _, ct: (2 * ct.astype("float32"),))
    x = jnp.ones(3, "bfloat16")
    for function in (double, lambda x: double(jnp.sin(x)) + x, lambda x: double(x[:2]) * 3):
        slopes = axir.grad(lambda x, function=function: function(x).sum())(x)
        exact = axir.grad(lambda x, function=function: function(x).sum())(x.astype("float32"))
        assert slopes.dtype == x.dtype
        np.testing.assert_allclose(slopes.astype("float32"), exact, rtol=2**-7)


def test_cotangents_in_trees_are_named_by_path() -> None:
    f = axir.custom_vjp(lambda x, params: params["w"] * x)
    f.defvjp(
        lambda x, params: (params["w"] * x, None), lambda _, ct: (None, {"w": jnp.ones(2) * ct})
    )
    with pytest.raises(CustomRuleError, match=r"for argument 1\['w'\]"):
        axir.grad(f)(2.0, {"w": 3.0})


@pytest.mark.parametrize(
    ("fwd", "message"),
    [
        (lambda x, y: x * y, "must produce a pair .* instead of a pair the fwd rule produced 6.0"),
        (lambda x, y: ((x,), None), "its structure is .* the function's output"),
        (lambda x, y: (x * jnp.ones(3), None), r"of type float32\[3\], and the function's output"),
    ],
)
def test_wrong_forward_rules_are_described(fwd: Any, message: str) -> None:
    h = with_rules(fwd, lambda r, ct: (None, None))
    function = h if "pair" in message and "6.0" in message else axir.jit(h)
    with pytest.raises(CustomRuleError, match=message):
        axir.grad(function)(3.0, 2.0)


def test_rules_must_be_defined_before_the_call() -> None:
    with pytest.raises(UndefinedRuleError, match="No VJP defined for custom_vjp function"):
        axir.custom_vjp(lambda x: x)(1.0)


@pytest.mark.parametrize("function", [axir.grad, lambda f, n: axir.jit(f)])
def test_traced_nondifferentiable_arguments_are_refused(function: Any) -> None:
    f = axir.custom_vjp(lambda n, x: n * x, nondiff_argnums=(0,))
    f.defvjp(lambda n, x: (n * x, None), lambda n, r, ct: (n * ct,))
    assert float(axir.grad(f, 1)(2.0, 3.0)) == 2
    with pytest.raises(UnexpectedTracerError, match=r"nondiff_argnums=\[0\]"):
        function(f, 0)(2.0, 3.0)


def closing_over(y: Any) -> Any:
    f = axir.custom_vjp(lambda x: x * y)
    f.defvjp(lambda x: (x * y, None), lambda r, ct: (ct * y,))
    return f


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: closing_over(y)(x),
        lambda x, y: closing_over(y)(2.0) * x,
        axir.jit(lambda x, y: closing_over(y)(x)),
    ],
)
def test_differentiation_in_closed_over_values_is_refused(function: Any) -> None:
    with pytest.raises(UnexpectedTracerError, match="with respect to a closed-over value"):
        axir.grad(function, (0, 1))(3.0, 2.0)


def test_constants_may_be_closed_over() -> None:
    assert float(axir.jit(lambda y: axir.grad(closing_over(y))(3.0))(2.0)) == 2
    assert float(axir.jit(lambda y: axir.grad(axir.jit(closing_over(y)))(3.0))(2.0)) == 2


def test_a_rule_that_outlives_what_it_closes_over_is_explained() -> None:
    with pytest.raises(UnexpectedTracerError, match="rule .* closes over a traced value"):
        axir.grad(axir.jit(lambda x, y: closing_over(y)(x)))(3.0, 2.0)


def test_none_in_arguments_is_a_container_and_in_cotangents_zeros() -> None:
    @axir.custom_vjp
    def total(tree: Any) -> Any:
        return tree["x"] + 2 * tree["y"][1]

    total.defvjp(lambda tree: (total(tree), None), lambda _, ct: ({"x": ct, "y": (None, None)},))
    argument = {"x": 1.0, "y": (None, 2.0)}
    gradient = axir.grad(total)(argument)
    assert gradient["y"][0] is None
    assert [float(x) for x in axir.tree.leaves(gradient)] == [1.0, 0.0]


@pytest.mark.parametrize("wrap", [lambda f: f, axir.jit], ids=["eager", "jit"])
def test_bools_among_residuals_stay_bools(wrap: Any) -> None:
    seen = []

    @axir.custom_vjp
    def doubled(x: Any) -> Any:
        return 2 * x

    def backward(residuals: Any, ct: Any) -> Any:
        seen.append(residuals["is_scaled"])
        return (2 * ct if residuals["is_scaled"] else ct,)

    doubled.defvjp(lambda x: (2 * x, {"is_scaled": True, "x": x}), backward)
    assert float(axir.grad(wrap(doubled))(1.0)) == 2.0
    assert seen == [True]


def test_a_cotangent_stands_for_a_container_of_one_leaf() -> None:
    f = axir.custom_vjp(lambda tree: tree["x"][0] * tree["y"]["inner"][0])
    f.defvjp(lambda tree: (f(tree), None), lambda _, ct: ({"x": 2 * ct, "y": {"inner": None}},))
    found = axir.grad(f)({"x": (3.0,), "y": {"inner": (4.0,)}})
    assert axir.tree.map(float, found) == {"x": (2,), "y": {"inner": (0,)}}
    g = axir.custom_vjp(lambda pair: pair[0] * pair[1])
    g.defvjp(lambda pair: (g(pair), None), lambda _, ct: (ct,))
    with pytest.raises(CustomRuleError, match="same container"):
        axir.grad(g)((3.0, 4.0))
