"""Jaxprs that programs make of equations, and edit: they become functions as traced ones do."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.extend import core as their_core

import axir
import axir.numpy as jnp
from axir import core, lax
from axir.dialect.core.errors import VerificationError
from axir.extend import core as extend
from axir.interpreters import partial_eval

_SCALAR = core.ShapedArray((), np.dtype("float32"))
_VECTOR = core.ShapedArray((3,), np.dtype("float32"))


def _example() -> core.Jaxpr:
    """Returns `c, x -> c * sin(x) + [1, 2, 3]`."""
    fresh = core.gensym()
    c, x, y, z, out = (fresh(_VECTOR) for _ in range(5))
    equations = [
        core.new_jaxpr_eqn([x], [y], lax.sin_p, {}, core.no_effects),
        core.new_jaxpr_eqn([c, y], [z], lax.mul_p, {}, core.no_effects),
        core.new_jaxpr_eqn(
            [z, core.Literal(np.float32([1, 2, 3]), _VECTOR)], [out], lax.add_p, {}, core.no_effects
        ),
    ]
    return core.Jaxpr([c], [x], [out], equations, core.no_effects)


def test_a_jaxpr_made_of_equations_is_a_program() -> None:
    jaxpr = _example()
    closed = core.ClosedJaxpr(jaxpr, [np.float32([2, 2, 2])])
    x = np.float32([0.1, 0.2, 0.3])
    expected = 2 * np.sin(x) + np.float32([1, 2, 3])
    (out,) = core.eval_jaxpr(jaxpr, closed.consts, x)
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    function = core.jaxpr_as_fun(closed)
    np.testing.assert_allclose(axir.jit(function)(x)[0], expected, rtol=1e-6)
    slopes = axir.grad(lambda x: function(x)[0].sum())(x)
    np.testing.assert_allclose(slopes, 2 * np.cos(x), rtol=1e-6)
    assert str(jaxpr).startswith("{ lambda a:f32[3] ; b:f32[3]. let")
    assert jaxpr.in_avals == jaxpr.out_avals == [_VECTOR]
    assert not jaxpr.effects
    assert "jaxpr.sin" in str(closed.module())
    extend.check_jaxpr(closed)


def test_what_is_told_of_a_jaxpr_is_that_which_was_given() -> None:
    jaxpr = _example()
    assert jaxpr.replace(outvars=jaxpr.invars).outvars == jaxpr.invars
    assert jaxpr.eqns[1].invars[0] is jaxpr.constvars[0]
    info = core.DebugInfo("jit", "wave", ("x",), ("",))
    assert jaxpr.replace(debug_info=info).debug_info is info
    assert (
        core.ClosedJaxpr(jaxpr, [jnp.ones(3)]).replace(consts=[jnp.zeros(3)]).consts[0].sum() == 0
    )


def test_equations_of_traced_functions_are_replaced() -> None:
    shift = jnp.array([1.0, 2.0, 3.0])
    closed = axir.make_jaxpr(lambda x: jnp.sin(x) * shift)(shift)
    swapped = closed.map_jaxpr(
        lambda jaxpr: jaxpr.replace(
            eqns=[
                e.replace(primitive=lax.cos_p) if e.primitive is lax.sin_p else e
                for e in jaxpr.eqns
            ]
        )
    )
    np.testing.assert_allclose(
        core.jaxpr_as_fun(swapped)(shift)[0], np.cos(shift) * shift, rtol=1e-6
    )
    assert swapped.eqns[0].location == closed.eqns[0].location
    assert str(closed.eqns[0].primitive) == "sin"


def test_functions_within_are_replaced() -> None:
    factor = jnp.array([2.0, 3.0])

    def loop(x):
        return lax.scan(lambda c, y: (c * y + factor, jnp.sin(c)), x, jnp.ones((3, 2)))

    def without_sines(jaxpr: core.Jaxpr) -> core.Jaxpr:
        equations = []
        for e in jaxpr.eqns:
            params = {
                name: without_sines(p.jaxpr) if isinstance(p, core.Function) else p
                for name, p in e.params.items()
            }
            primitive = lax.cos_p if e.primitive is lax.sin_p else e.primitive
            equations.append(e.replace(primitive=primitive, params=params))
        return jaxpr.replace(eqns=equations)

    x = jnp.array([0.5, 1.0])
    closed = axir.make_jaxpr(loop)(x).map_jaxpr(without_sines)
    carry, cosines = core.jaxpr_as_fun(closed)(x)
    expected, sines = loop(x)
    np.testing.assert_allclose(carry, expected, rtol=1e-6)
    np.testing.assert_allclose(cosines**2 + sines**2, np.ones((3, 2)), rtol=1e-5)


def test_a_closed_jaxpr_is_a_parameter() -> None:
    closed = axir.make_jaxpr(lambda x: x * jnp.array([1.0, 2.0, 3.0]))(jnp.ones(3))
    call = axir.make_jaxpr(axir.jit(jnp.negative))(jnp.ones(3))
    (equation,) = call.eqns
    changed = call.map_jaxpr(
        lambda jaxpr: jaxpr.replace(
            eqns=[equation.replace(params={**equation.params, "jaxpr": closed})]
        )
    )
    np.testing.assert_array_equal(core.jaxpr_as_fun(changed)(jnp.ones(3))[0], [1, 2, 3])


def test_dead_code_and_rules_for_it() -> None:
    def function(x, y):
        return jnp.sin(x) * jnp.array([1.0, 2.0]), jnp.cos(y) + jnp.array([3.0, 4.0])

    closed = axir.make_jaxpr(function)(jnp.ones(2), jnp.zeros(2))
    smaller, kept = partial_eval.dce_jaxpr(closed.jaxpr, [False, True])
    assert kept == [False, True]
    assert len(smaller.eqns) == 2
    (out,) = core.eval_jaxpr(smaller, closed.consts, jnp.zeros(2))
    np.testing.assert_array_equal(out, [4, 5])
    smallest, constants, kept = partial_eval.dce_jaxpr_consts(closed.jaxpr, [False, True], True)
    assert sum(constants) == 1
    assert kept == [True, True]
    used = [x for x, is_used in zip(closed.consts, constants, strict=True) if is_used]
    np.testing.assert_array_equal(
        core.eval_jaxpr(smallest, used, jnp.ones(2), jnp.zeros(2))[0], [4, 5]
    )


def test_a_rule_shortens_an_equation(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = core.Primitive("made_pair", multiple_results=True)
    pair.def_impl(lambda *xs: [x + 1 for x in xs])
    pair.def_abstract_eval(lambda *types: types)

    def rule(used, equation):
        places = [i for i, is_used in enumerate(used) if is_used]
        return used, equation.replace(
            invars=[equation.invars[i] for i in places],
            outvars=[equation.outvars[i] for i in places],
        )

    monkeypatch.setitem(partial_eval.dce_rules, pair, rule)
    jaxpr = axir.make_jaxpr(pair.bind)(1.0, 2.0).jaxpr
    smaller, kept = partial_eval.dce_jaxpr(jaxpr, [False, True])
    assert kept == [False, True]
    assert len(smaller.eqns[0].invars) == 1
    assert core.eval_jaxpr(smaller, [], 2.0) == [3.0]


def test_the_same_program_makes_jaxprs_of_both() -> None:
    def build(core, lax, aval):
        x, y = core.Var(aval), core.Var(aval)
        drop = core.DropVar(aval)
        equations = [
            core.new_jaxpr_eqn([x], [y], lax.exp_p, {"accuracy": None}, core.no_effects),
            core.new_jaxpr_eqn([y], [drop], lax.neg_p, {}, core.no_effects),
        ]
        info = core.DebugInfo("test", "build", ("x",), ("",))
        return core.ClosedJaxpr(core.Jaxpr([], [x], [y], equations, debug_info=info), [])

    theirs = build(their_core, jax.lax, jax.core.ShapedArray((), np.dtype("float32")))
    exp = axir.make_jaxpr(lax.exp)(1.0).eqns[0]
    ours = build(extend, lax, _SCALAR).map_jaxpr(
        lambda j: j.replace(eqns=[j.eqns[0].replace(params=exp.params), *j.eqns[1:]])
    )
    expected = their_core.jaxpr_as_fun(theirs)(1.5)
    np.testing.assert_allclose(extend.jaxpr_as_fun(ours)(1.5), expected, rtol=1e-6)


def _two_types() -> core.Jaxpr:
    x, y = core.Var(_SCALAR), core.Var(_VECTOR)
    return core.Jaxpr([], [x], [y], [core.new_jaxpr_eqn([x], [y], lax.neg_p, {}, core.no_effects)])


@pytest.mark.parametrize(
    ("jaxpr", "expected"),
    [
        (lambda: core.Jaxpr([], [], [core.Var(_SCALAR)], []), "is none of its inputs"),
        (
            _two_types,
            "neg gives float32[], but the results of its equation are said to be float32[3]",
        ),
        (lambda: core.ClosedJaxpr(_example(), []), "1 constants, but 0 values"),
    ],
)
def test_what_does_not_fit_together(jaxpr, expected: str) -> None:
    with pytest.raises(VerificationError) as caught:
        jaxpr().function  # noqa: B018
    assert expected in str(caught.value)
