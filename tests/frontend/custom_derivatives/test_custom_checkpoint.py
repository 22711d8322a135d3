"""`checkpoint`: derivatives equal the function's; policies decide the recomputed values."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from support.derivative_programs import COMPOSITIONS, X

import axir
import axir.numpy as jnp
from axir import ad_checkpoint, lax
from axir.ad_checkpoint import checkpoint_name, print_saved_residuals, saved_residuals
from axir.dialect.core.errors import ParameterError, StaticArgumentError, TracerBoolConversionError
from axir.dialect.program.function import Function, functions_in

P = axir.checkpoint_policies


def nested_sine(lib: Any) -> Any:
    return lib.checkpoint(lambda x: lib.numpy.sin(lib.numpy.sin(lib.numpy.sin(x))))


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_compositions_give_the_values_of_jax(name: str) -> None:
    ours = COMPOSITIONS[name](axir, nested_sine(axir))(jnp.asarray(X))
    theirs = COMPOSITIONS[name](jax, nested_sine(jax))(X)
    for mine, other in zip(axir.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(other), rtol=5e-6, atol=1e-6)


def count_ops(function: Function, name: str) -> int:
    """Counts the ops of a kind in a function and in those that it calls."""
    return sum(
        (e.primitive.name == name)
        + sum(count_ops(f, name) for v in e.params.values() for f in functions_in(v))
        for e in function.equations
    )


def gradient_ops(f: Any, name: str, *args: Any) -> int:
    return count_ops(axir.make_jaxpr(axir.grad(f))(*args).function, name)


def named(x: Any) -> Any:
    first = checkpoint_name(jnp.sin(x), "first")
    second = checkpoint_name(jnp.sin(first), "second")
    return jnp.sin(second)


# The forward pass computes three sines, and the derivative needs the first two of them.
@pytest.mark.parametrize(
    ("policy", "sines"),
    [
        (None, 5),
        (P.nothing_saveable, 5),
        (P.everything_saveable, 3),
        (P.dots_saveable, 5),
        (P.save_only_these_names("first"), 4),
        (P.save_only_these_names("second"), 4),
        (P.save_only_these_names("first", "second"), 3),
        (P.save_any_names_but_these("second"), 4),
        (P.save_anything_except_these_names("first", "second"), 3),
        (P.save_from_both_policies(P.dots_saveable, P.save_only_these_names("first")), 4),
        (P.save_from_both_policies(P.dots_saveable, lambda p, *types, **params: True), 3),
        (lambda primitive, *types, **params: primitive.name == "sin", 3),
        (lambda primitive, *types, **params: ad_checkpoint.Recompute, 5),
        (lambda primitive, *types, **params: ad_checkpoint.Saveable, 3),
        (lambda *args, **params: ad_checkpoint.Offloadable("device", "pinned_host"), 3),
    ],
)
def test_policies_say_what_is_repeated(policy: Any, sines: int) -> None:
    f = axir.checkpoint(named, policy=policy)
    assert gradient_ops(f, "sin", 1.0) == sines
    assert gradient_ops(f, "cos", 1.0) == 3
    assert float(axir.grad(f)(1.0)) == pytest.approx(float(axir.grad(named)(1.0)), rel=1e-6)
    assert float(axir.jit(axir.grad(f))(1.0)) == pytest.approx(float(axir.grad(named)(1.0)), 1e-6)


def test_without_checkpoint_nothing_is_repeated() -> None:
    assert gradient_ops(named, "sin", 1.0) == 3


@pytest.mark.parametrize(
    ("policy", "batched", "dots"),
    [
        (None, False, 6),
        (P.dots_saveable, False, 5),
        (P.dots_with_no_batch_dims_saveable, False, 5),
        (P.dots_saveable, True, 5),
        (P.dots_with_no_batch_dims_saveable, True, 6),
    ],
)
def test_policies_for_products(policy: Any, batched: bool, dots: int) -> None:
    def f(w: Any, v: Any, x: Any) -> Any:
        return jnp.sin(jnp.matmul(v, jnp.sin(jnp.matmul(w, x)))).sum()

    shape = (2, 3, 3) if batched else (3, 3)
    w = jnp.ones(shape) / 7
    # Two products forward, two in each of the cotangents of w and v and x, less one for the last.
    assert gradient_ops(axir.checkpoint(f, policy=policy), "dot_general", w, w, w) >= 3
    plain = gradient_ops(f, "dot_general", w, w, w)
    repeated = gradient_ops(axir.checkpoint(f, policy=policy), "dot_general", w, w, w) - plain
    assert repeated == (2 if dots == 6 else 0)


def test_policies_see_the_ops_of_called_functions() -> None:
    f = axir.checkpoint(axir.jit(named), policy=P.save_only_these_names("first", "second"))
    assert gradient_ops(f, "sin", 1.0) == 3
    assert float(axir.grad(f)(1.0)) == pytest.approx(float(axir.grad(named)(1.0)), rel=1e-6)


def test_compiled_code_repeats_behind_a_barrier() -> None:
    def barriers(prevent_cse: bool) -> int:
        f = axir.checkpoint(named, prevent_cse=prevent_cse)
        return axir.jit(axir.grad(f)).lower(1.0).as_text().count("stablehlo.optimization_barrier")

    assert barriers(True) == 1
    assert barriers(False) == 0


def test_residuals_are_the_arguments_and_what_policies_keep(
    capsys: pytest.CaptureFixture[str],
) -> None:
    x = jnp.arange(3.0)
    assert len(saved_residuals(named, x)) == 3
    ((array_type, origin),) = saved_residuals(axir.checkpoint(named), x)
    assert (str(array_type), origin) == ("float32[3]", "from the argument x")
    print_saved_residuals(axir.checkpoint(named, policy=P.save_only_these_names("second")), x)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "float32[3] from the argument x"
    assert lines[1].startswith("float32[3] output of checkpoint at ")


def test_checkpoints_nest() -> None:
    inner = axir.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    outer = axir.checkpoint(lambda x: inner(inner(x)))
    plain = lambda x: jnp.sin(jnp.sin(jnp.sin(jnp.sin(x))))  # noqa: E731
    for f, g in ((outer, plain), (axir.grad(outer), axir.grad(plain))):
        assert float(axir.grad(f)(0.7)) == pytest.approx(float(axir.grad(g)(0.7)), rel=1e-5)


def test_static_arguments_and_python_control_flow() -> None:
    def f(x: Any, flag: Any) -> Any:
        return jnp.sin(x) if flag else x

    for static in (1, (1,), -1):
        g = axir.checkpoint(f, static_argnums=static)
        assert float(axir.grad(g)(0.0, True)) == 1
        assert float(axir.grad(lambda x, g=g: 3 * g(x, False))(0.0)) == 3
    assert float(axir.grad(axir.checkpoint(f, static_argnums=1))(0.0, [1])) == 1
    with pytest.raises(StaticArgumentError, match="out of range"):
        axir.checkpoint(f, static_argnums=2)(0.0, True)
    with pytest.raises(TracerBoolConversionError, match="static_argnums of checkpoint"):
        axir.grad(axir.checkpoint(f))(0.0, True)


def test_options() -> None:
    @axir.remat(prevent_cse=False)
    def f(x: Any) -> Any:
        return {"y": x**2}

    assert float(axir.grad(lambda x: f(x)["y"])(3.0)) == 6
    with pytest.raises(NotImplementedError, match="static_argnums"):
        axir.checkpoint(lambda x: x, concrete=True)
    with pytest.raises(ParameterError, match="policy must be a function"):
        axir.checkpoint(lambda x: x, policy="dots")
    assert repr(P.save_only_these_names("a", "b")) == "save_only_these_names('a', 'b')"


def test_values_closed_over_are_differentiated() -> None:
    f = lambda a, x: axir.checkpoint(lambda x: jnp.sin(a * x))(x)  # noqa: E731
    g = lambda a, x: jnp.sin(a * x)  # noqa: E731
    for mine, other in zip(
        axir.grad(f, (0, 1))(2.0, 3.0), axir.grad(g, (0, 1))(2.0, 3.0), strict=True
    ):
        assert float(mine) == pytest.approx(float(other), rel=1e-6)


def test_custom_rules_inside_checkpoints() -> None:
    f = axir.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda c, ct: (2 * c * ct,))
    g = axir.checkpoint(lambda x: f(f(x)))
    expected = 4 * np.cos(1.0) * np.cos(np.sin(1.0))
    assert float(axir.grad(g)(1.0)) == pytest.approx(expected, rel=1e-6)
    assert float(axir.jit(axir.grad(g))(1.0)) == pytest.approx(expected, rel=1e-6)


def test_scanned_layers() -> None:
    def step(carry: Any, w: Any) -> Any:
        return jnp.tanh(w * carry), carry

    def loss(function: Any, ws: Any) -> Any:
        return lax.scan(function, 1.0, ws)[0]

    ws = jnp.asarray(X)
    expected = np.asarray(axir.grad(lambda ws: loss(step, ws))(ws))
    for cse in (True, False):
        remat = axir.checkpoint(step, prevent_cse=cse)
        for wrap in (lambda f: f, axir.jit):
            found = wrap(axir.grad(lambda ws, g=remat: loss(g, ws)))(ws)
            np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-6)


def test_offloading_keeps_values_in_the_only_memory() -> None:
    policy = P.save_and_offload_only_these_names(
        names_which_can_be_saved=["first"],
        names_which_can_be_offloaded=["second"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    assert policy == P.save_only_these_names("first", "second")
    assert P.offload_dot_with_no_batch_dims("device", "pinned_host") == (
        P.dots_with_no_batch_dims_saveable
    )
    with pytest.raises(ParameterError, match="a should be both saved and offloaded"):
        P.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"],
            names_which_can_be_offloaded=["a"],
            offload_src="device",
            offload_dst="pinned_host",
        )
