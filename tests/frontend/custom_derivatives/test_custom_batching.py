"""`custom_vmap`: when rules run, their arguments and results, and their derivatives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.custom_batching
import numpy as np
import pytest
from support.derivative_programs import COMPOSITIONS
from support.derivative_programs import X as POINTS

import axir
import axir.numpy as jnp
from axir import lax
from axir.custom_batching import custom_vmap, sequential_vmap
from axir.dialect.core.errors import (
    CustomRuleError,
    MissingRuleError,
    UndefinedRuleError,
    UnexpectedTracerError,
)
from axir.dialect.program.module_writer import write_module
from axir.dialect.text.module_reader import parse_module, read_module
from axir.passes.transforms.vmap import batch_function

X = np.array([1.0, 2.0, 3.0], np.float32)
Y = np.array([0.5, -1.0, 4.0], np.float32)


def product(lib: Any, log: list[Any]) -> Any:
    """sin(x) y, which the rule computes as cos(x) y, so that it shows which was used."""

    @lib.custom_batching.custom_vmap
    def f(x: Any, y: Any) -> Any:
        return lib.numpy.sin(x) * y

    @f.def_vmap
    def rule(axis_size: int, in_batched: list[bool], x: Any, y: Any) -> Any:
        log.append((axis_size, in_batched))
        return lib.numpy.cos(x) * y, any(in_batched)

    return f


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree_util.tree_leaves(tree)]


PROGRAMS = {
    "call": lambda lib, f: f(1.0, 2.0),
    "jit": lambda lib, f: lib.jit(f)(X, Y),
    "vmap": lambda lib, f: lib.vmap(f)(X, Y),
    "one operand": lambda lib, f: lib.vmap(f, (0, None))(X, 2.0),
    "out axis": lambda lib, f: lib.vmap(f, (1, None), 1)(np.stack([X, Y]), X[:2]),
    "jit of vmap": lambda lib, f: lib.jit(lib.vmap(f))(X, Y),
    "vmap of jit": lambda lib, f: lib.vmap(lib.jit(f))(X, Y),
    "nested": lambda lib, f: lib.vmap(lib.vmap(f))(np.stack([X, Y]), np.stack([Y, X])),
    "cross": lambda lib, f: lib.vmap(lib.vmap(f, (0, None)), (None, 0))(X, Y),
    "jvp": lambda lib, f: lib.jvp(f, (1.0, 2.0), (3.0, 4.0)),
    "jvp of vmap": lambda lib, f: lib.jvp(lib.vmap(f), (X, Y), (Y, X)),
    "vmap of jvp": lambda lib, f: lib.vmap(lambda *a: lib.jvp(f, a[:2], a[2:]))(X, Y, Y, X),
    "one direction": lambda lib, f: lib.vmap(lambda x, y: lib.jvp(f, (x, y), (1.0, 1.0)))(X, Y),
    "one point": lambda lib, f: lib.vmap(lambda d: lib.jvp(f, (1.0, 2.0), (d, d)))(X),
    "jacfwd": lambda lib, f: lib.jacfwd(lambda x: f(x, 2.0))(1.0),
    "second": lambda lib, f: lib.vmap(
        lambda x: lib.jvp(lambda x: lib.jvp(lambda x: f(x, x), (x,), (x,)), (x,), (x,))
    )(X),
    "grad of vmap": lambda lib, f: lib.grad(lambda x, y: lib.vmap(f)(x, y).sum(), (0, 1))(X, Y),
    "scan": lambda lib, f: lib.vmap(
        lambda x, y: lib.lax.scan(lambda c, _: (f(c, y), c), x, None, length=2)
    )(X, Y),
    "cond": lambda lib, f: lib.vmap(lambda x, y: lib.lax.cond(x > 2, f, lambda x, y: x * y, x, y))(
        X, Y
    ),
    "while": lambda lib, f: lib.vmap(
        lambda x, y: lib.lax.while_loop(lambda c: c < 3.0, lambda c: f(c, y * 0) + c + 1, x)
    )(X, Y),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_rule_is_used_where_jax_uses_it(name: str) -> None:
    ours, theirs = (leaves(PROGRAMS[name](lib, product(lib, []))) for lib in (axir, jax))
    assert [x.shape for x in ours] == [x.shape for x in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["vmap", "one operand", "vmap of jvp", "one point", "second"])
def test_the_rule_is_told_what_jax_tells_it(name: str) -> None:
    ours: list[Any] = []
    theirs: list[Any] = []
    PROGRAMS[name](axir, product(axir, ours))
    PROGRAMS[name](jax, product(jax, theirs))
    assert ours == theirs


def test_the_rule_gets_trees_and_says_for_each_leaf() -> None:
    seen: list[Any] = []

    @custom_vmap
    def f(state: Any, pair: Any) -> Any:
        return {"sum": state["a"] + pair[0], "rest": (state["a"] - pair[1], state["n"])}

    @f.def_vmap
    def rule(axis_size: int, in_batched: Any, state: Any, pair: Any) -> Any:
        seen.append(in_batched)
        outs = {"sum": 2 * (state["a"] + pair[0]), "rest": (state["a"] - pair[1], state["n"])}
        return outs, {"sum": True, "rest": (True, in_batched[0]["n"])}

    out = axir.vmap(f, ({"a": 0, "n": None}, None))({"a": jnp.array(X), "n": 7}, (1.0, 2.0))
    assert seen == [[{"a": True, "n": False}, (False, False)]]
    np.testing.assert_allclose(out["sum"], 2 * (X + 1))
    np.testing.assert_allclose(out["rest"][0], X - 2)
    np.testing.assert_array_equal(out["rest"][1], [7, 7, 7])


def test_keyword_arguments_come_by_position() -> None:
    f = product(axir, log := [])
    axir.vmap(lambda x: f(y=2.0, x=x))(X)
    assert log == [(3, [True, False])]


def test_on_values_the_rule_may_look_at_them() -> None:
    f = custom_vmap(lambda x: x)
    f.def_vmap(lambda size, flags, x: (x if x[0] > 0 else -x, True))
    assert axir.vmap(f)(-X).tolist() == X.tolist()


# Derivatives in reverse, which JAX does not know here ---------------------------------------------


def test_gradients_are_those_of_the_rule() -> None:
    f = product(axir, log := [])
    dx, dy = axir.grad(f, (0, 1))(1.0, 2.0)
    np.testing.assert_allclose([dx, dy], [np.cos(1.0) * 2, np.sin(1.0)], rtol=1e-6)
    assert log == []
    for transformed in (axir.vmap(axir.grad(f, (0, 1))), axir.jit(axir.vmap(axir.grad(f, (0, 1))))):
        dx, dy = transformed(X, Y)
        np.testing.assert_allclose(dx, -np.sin(X) * Y, rtol=1e-5)
        np.testing.assert_allclose(dy, np.cos(X), rtol=1e-5)
    assert all(flags == [True, True] for _, flags in log)


def test_an_argument_for_all_elements_gets_a_gradient_for_each() -> None:
    f = product(axir, [])
    dx, dy = axir.vmap(axir.grad(f, (0, 1)), (0, None))(X, 2.0)
    np.testing.assert_allclose(dx, -np.sin(X) * 2, rtol=1e-5)
    np.testing.assert_allclose(dy, np.cos(X), rtol=1e-5)
    np.testing.assert_allclose(
        axir.vmap(axir.grad(f, 1), (None, 0))(1.0, Y), np.full(3, np.cos(1.0)), rtol=1e-5
    )


def test_a_result_that_is_the_same_for_all_sums_the_cotangents() -> None:
    mean = custom_vmap(lambda x: (x, x * 1.0))
    mean.def_vmap(lambda size, flags, x: ((x, x.mean(0)), (True, False)))
    _, pullback = axir.vjp(axir.vmap(mean, out_axes=(0, None)), X)
    np.testing.assert_allclose(pullback((jnp.array(X), 6.0))[0], X + 2)
    gradients = axir.vmap(axir.grad(lambda x, y: mean(x)[1] * y))(X, Y)
    np.testing.assert_allclose(gradients, np.full(3, Y.sum() / 3), rtol=1e-6)


def test_cotangents_at_one_point_need_no_rule() -> None:
    f = product(axir, log := [])
    jacobian = axir.jacrev(lambda x: f(x, 2.0) * jnp.array(Y))(1.0)
    np.testing.assert_allclose(jacobian, 2 * np.cos(1.0) * Y, rtol=1e-5)
    assert log == []
    np.testing.assert_allclose(axir.jacrev(axir.grad(f))(1.0, 2.0), -2 * np.sin(1.0), rtol=1e-5)


def test_higher_derivatives() -> None:
    f = product(axir, [])
    hessian = axir.vmap(axir.hessian(f, (0, 1)))(X, Y)
    np.testing.assert_allclose(hessian[0][0], -np.cos(X) * Y, rtol=1e-5)
    np.testing.assert_allclose(hessian[0][1], -np.sin(X), rtol=1e-5)
    np.testing.assert_allclose(hessian[1][0], -np.sin(X), rtol=1e-5)
    both = axir.vmap(axir.jacrev(axir.jacrev(f)))(X, Y)
    np.testing.assert_allclose(both, -np.cos(X) * Y, rtol=1e-5)
    twice = axir.vmap(axir.grad(axir.grad(f)))(X, Y)
    np.testing.assert_allclose(twice, -np.cos(X) * Y, rtol=1e-5)


def test_gradients_through_loops_and_checkpoints() -> None:
    f = product(axir, [])

    def looped(call: Any) -> Any:
        return lambda x, y: lax.scan(lambda c, _: (call(c, y), None), x, None, length=2)[0]

    def plain(x: Any, y: Any) -> Any:
        return jnp.cos(x) * y

    expected = axir.vmap(axir.grad(looped(plain)))(X, Y)
    np.testing.assert_allclose(axir.vmap(axir.grad(looped(f)))(X, Y), expected, rtol=1e-5)
    once = axir.vmap(axir.grad(axir.checkpoint(f)))(X, Y)
    np.testing.assert_allclose(once, -np.sin(X) * Y, rtol=1e-5)


def test_forward_mode_mixes_batched_and_plain_arguments() -> None:
    f = product(axir, log := [])
    out, tangent = axir.vmap(lambda x, y, d: axir.jvp(lambda x: f(x, y), (x,), (d,)))(X, Y, Y)
    np.testing.assert_allclose(out, np.cos(X) * Y, rtol=1e-5)
    np.testing.assert_allclose(tangent, -np.sin(X) * Y * Y, rtol=1e-5)
    assert log == [(3, [True, True])]


def test_linear_functions_are_transposed_with_their_rule() -> None:
    f = custom_vmap(lambda x: 2 * x)
    f.def_vmap(lambda size, flags, x: (3 * x, True))
    transposed = axir.linear_transpose(f, jnp.float32(0))
    assert float(transposed(1.0)[0]) == 2.0
    assert axir.vmap(transposed)(X)[0].tolist() == (2 * X).tolist()
    batched = axir.linear_transpose(axir.vmap(f), X)
    assert batched(X)[0].tolist() == (3 * X).tolist()


def elementwise(x: Any) -> Any:
    return jnp.sin(x) * jnp.exp(x / 2) + x


def with_rule(kind: str) -> Any:
    if kind == "sequential":
        return sequential_vmap(elementwise)
    f = custom_vmap(elementwise)
    f.def_vmap(lambda size, flags, x: (elementwise(x), flags[0]))
    return f


@pytest.mark.parametrize("kind", ["rule", "sequential"])
def test_a_rule_that_says_what_holds_anyway_changes_nothing(kind: str) -> None:
    f = with_rule(kind)
    for name, compose in COMPOSITIONS.items():
        expected = leaves(compose(axir, elementwise)(jnp.array(POINTS)))
        for mine, other in zip(leaves(compose(axir, f)(jnp.array(POINTS))), expected, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6, err_msg=name)
    batch = jnp.stack([jnp.array(POINTS), -jnp.array(POINTS)])
    for name in ("jvp", "vjp", "linearize", "jacfwd", "jacrev", "hessian", "scan", "cond"):
        ours, plain = (axir.vmap(COMPOSITIONS[name](axir, g))(batch) for g in (f, elementwise))
        for mine, other in zip(leaves(ours), leaves(plain), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6, err_msg=name)


# With other rules, effects, closures, and saved --------------------------------------------------


def test_rules_of_both_kinds_are_defined_on_one_name() -> None:
    @axir.custom_vjp
    @custom_vmap
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    f.def_vmap(lambda size, flags, x, y: (jnp.cos(x) * y, True))
    f.defvjp(lambda x, y: (f(x, y), None), lambda residuals, ct: (ct * 7, ct * 8))
    np.testing.assert_allclose(axir.vmap(f)(X, Y), np.cos(X) * Y, rtol=1e-5)
    assert axir.vmap(axir.grad(f, (0, 1)))(X, Y)[1].tolist() == [8, 8, 8]

    g = axir.custom_jvp(custom_vmap(jnp.sin))
    g.def_vmap(lambda size, flags, x: (jnp.cos(x), True))
    g.defjvp(lambda p, t: (g(*p), 5 * t[0]))
    np.testing.assert_allclose(axir.vmap(g)(X), np.cos(X), rtol=1e-5)
    assert axir.vmap(axir.grad(g))(X).tolist() == [5, 5, 5]
    with pytest.raises(AttributeError, match="'custom_jvp' object has no attribute 'defvjp'"):
        g.defvjp  # noqa: B018


def test_a_traced_value_closed_over() -> None:
    def scaled(y: Any) -> Any:
        f = custom_vmap(lambda x: x * y)
        f.def_vmap(lambda size, flags, x: (x * y * 10, True))
        return f

    assert axir.jit(lambda y: axir.vmap(scaled(y))(X))(2.0).tolist() == (20 * X).tolist()
    assert float(axir.grad(lambda y: axir.vmap(scaled(y))(X).sum())(2.0)) == 10 * X.sum()
    assert float(axir.grad(lambda y: scaled(y)(3.0))(2.0)) == 3.0
    with pytest.raises(UnexpectedTracerError, match="over a closed-over value: its rule only says"):
        axir.vmap(lambda x, y: scaled(y)(x))(X, Y)


def test_a_collective_inside() -> None:
    f = custom_vmap(lambda x: lax.psum(x, "i"))
    f.def_vmap(lambda size, flags, x: (10 * x.sum(0), False))
    assert axir.vmap(f, axis_name="i")(X).tolist() == [60, 60, 60]
    f.def_vmap(lambda size, flags, x: (lax.psum(x, "i"), True))
    with pytest.raises(NameError, match="unbound axis name: 'i'"):
        axir.vmap(f, axis_name="i")(X)


def test_effects_happen_once(capfd: pytest.CaptureFixture[str]) -> None:
    @custom_vmap
    def f(x: Any) -> Any:
        axir.debug.print("f")
        return jnp.sin(x)

    @f.def_vmap
    def rule(size: int, flags: Any, x: Any) -> Any:
        axir.debug.print("rule")
        return jnp.cos(x), True

    gradient = axir.grad(f)
    for transformed, x in (
        (gradient, 1.0),
        (axir.jit(gradient), 1.0),
        (axir.vmap(gradient), X),
        (axir.jit(axir.vmap(gradient)), X),
    ):
        transformed(x)
        axir.effects_barrier()
    assert capfd.readouterr().out.split() == ["f", "f", "rule", "rule"]


def test_sequential_vmap_loops_in_order(capfd: pytest.CaptureFixture[str]) -> None:
    @sequential_vmap
    def f(x: Any, y: Any) -> Any:
        axir.debug.print("{}", x, ordered=True)
        return {"out": x * y}

    assert axir.vmap(f, (0, None))(X, 2.0)["out"].tolist() == (2 * X).tolist()
    axir.effects_barrier()
    assert capfd.readouterr().out.split() == ["1.0", "2.0", "3.0"]
    g = sequential_vmap(lambda x, y: x * y)
    assert axir.vmap(axir.vmap(g))(np.stack([X, Y]), np.stack([Y, X])).shape == (2, 3)
    assert axir.vmap(axir.grad(g))(X, Y).tolist() == Y.tolist()
    assert float(axir.jacfwd(g)(2.0, 3.0)) == 3.0
    assert axir.jit(axir.vmap(g))(X, Y).tolist() == (X * Y).tolist()


def test_a_saved_module_keeps_the_function_and_names_the_rule(tmp_path: Path) -> None:
    closed = axir.make_jaxpr(product(axir, []))(1.0, 2.0)
    text = str(write_module({"main": closed.function}))
    assert 'rule = "rule"' in text
    read = read_module(parse_module(text))["main"]
    assert str(write_module({"main": read})) == text
    np.testing.assert_allclose(read.evaluate(1.0, 2.0)[0], 2 * np.sin(1.0), rtol=1e-6)
    gradient = axir.grad(lambda x: read.evaluate(x, jnp.float32(2.0))[0])(jnp.float32(1.0))
    np.testing.assert_allclose(gradient, 2 * np.cos(1.0), rtol=1e-6)
    with pytest.raises(MissingRuleError, match="'rule' of a custom_vmap function is Python"):
        batch_function(read, 3, (0, 0))


# Errors -------------------------------------------------------------------------------------------


def with_result(result: Any) -> Any:
    f = custom_vmap(lambda x: x)
    f.def_vmap(lambda size, flags, x: result(x))
    return f


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda x: x, "must produce a pair"),
        (lambda x: (x, (True, True)), "batching specification returned by custom vmap rule"),
        (lambda x: ((x, x), (True, True)), "does not match that of original custom-vmapped"),
        (lambda x: (x, False), "without batch axis; the function's output is of type float32"),
        (lambda x: (x[0], True), "with a batch axis of 3 in front"),
        (lambda x: (x.astype("int32"), True), r"so it must be of type float32\[3\]"),
    ],
)
def test_what_a_rule_returns_is_checked(result: Any, message: str) -> None:
    with pytest.raises(CustomRuleError, match=message):
        axir.vmap(with_result(result))(X)


def test_a_function_without_a_rule() -> None:
    f = custom_vmap(lambda x: x)
    with pytest.raises(UndefinedRuleError, match="No batching rule defined for custom_vmap"):
        f(1.0)


def test_a_nonlinear_function_is_not_transposed() -> None:
    f = with_result(lambda x: (x, True))
    assert axir.linear_transpose(f, jnp.float32(1))(2.0)[0] == 2.0
    g = custom_vmap(jnp.sin)
    g.def_vmap(lambda size, flags, x: (jnp.sin(x), True))
    with pytest.raises(NotImplementedError, match="sin"):
        axir.linear_transpose(g, jnp.float32(1))(2.0)


@pytest.mark.parametrize("axis_name", [None, "i"])
def test_devices_run_the_function_and_leave_the_rule_to_vmap(axis_name: Any) -> None:
    @custom_vmap
    def f(x: Any) -> Any:
        return jnp.sin(x) if axis_name is None else axir.lax.psum(jnp.sin(x), axis_name)

    f.def_vmap(lambda size, batched, x: (jnp.cos(x), True))
    x = np.arange(3, dtype=np.float32).reshape(1, 3)
    over_devices = axir.pmap(f, axis_name)
    np.testing.assert_allclose(over_devices(x), np.sin(x), rtol=1e-6)
    for both in (axir.vmap(over_devices), axir.pmap(axir.vmap(f), axis_name)):
        np.testing.assert_allclose(both(x[None]), np.cos(x[None]), rtol=1e-6)
