"""The options that look for mistakes: NaNs, infinities, tracers that leak; names of scopes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.scipy.special
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.errors import ParameterError, UnexpectedTracerError

MODES: dict[str, Callable[..., Any]] = {"eager": lambda f: f, "jit": axir.jit}


@pytest.fixture(params=MODES)
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return MODES[request.param]


def line_of(function: Callable[..., Any], text: str) -> str:
    """The place of the line of a function that holds a text, as errors tell it."""
    source, start = inspect.getsourcelines(function)
    return f"{__file__}:{start + next(n for n, s in enumerate(source) if text in s)}"


# NaNs and infinities ----------------------------------------------------------------------------


X = np.array([1.0, 2.0], np.float32)


def nested(x: Any) -> Any:
    y = jnp.sin(x)

    def inner(z: Any) -> Any:
        return jnp.log(z) * 2

    return axir.jit(inner)(y - 2) + 1


def test_the_op_and_the_line_are_named(run: Callable[..., Any]) -> None:
    with axir.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        run(nested)(1.0)
    text = str(caught.value)
    assert text.startswith("invalid value (nan) encountered in log.\n")
    assert f"at {line_of(nested, 'jnp.log(z)')}" in text
    assert "jax_debug_nans" in text
    assert caught.value.__context__ is None


def root(x: Any) -> Any:
    return jnp.sum(jnp.where(x > 0, jnp.sqrt(x), 0.0))


def test_the_backward_pass_names_the_line_of_the_forward_op(run: Callable[..., Any]) -> None:
    assert np.isnan(run(axir.grad(root))(0.0))
    with axir.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        run(axir.grad(root))(0.0)
    assert "invalid value (nan) encountered in div" in str(caught.value)
    assert f"at {line_of(root, 'jnp.sqrt(x)')}" in str(caught.value)


def test_infinities_are_found_too(run: Callable[..., Any]) -> None:
    with axir.debug_infs(True):
        with pytest.raises(FloatingPointError, match=r"invalid value \(inf\) encountered in exp"):
            run(jnp.exp)(1000.0)
        with pytest.raises(FloatingPointError, match=r"\(inf\) encountered in div"):
            run(axir.grad(jnp.sqrt))(0.0)


INFINITE_ON_THE_WAY: dict[str, Callable[[Any], Any]] = {
    "logsumexp": lambda lib: lib.scipy.special.logsumexp(X),
    "compiled logsumexp": lambda lib: lib.jit(lib.scipy.special.logsumexp)(X),
    "gradient of logsumexp": lambda lib: lib.grad(lib.scipy.special.logsumexp)(X),
    "nan_to_num": lambda lib: lib.numpy.nan_to_num(X),
    "windows": lambda lib: lib.lax.reduce_window(
        X, -np.inf, lib.lax.max, (2,), (1,), "VALID"
    ),
    "loop": lambda lib: lib.lax.fori_loop(
        0, 2, lambda _, x: lib.numpy.where(lib.numpy.exp(x * 100) > 0, x, 0.0), X
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INFINITE_ON_THE_WAY)
def test_only_results_must_be_finite(name: str) -> None:
    program = INFINITE_ON_THE_WAY[name]
    with axir.debug_infs(True), jax.debug_infs(True):
        np.testing.assert_allclose(program(axir), program(jax), rtol=1e-6)


def test_each_option_lets_the_other_value_pass(run: Callable[..., Any]) -> None:
    with axir.debug_nans(True):
        assert np.isinf(run(jnp.exp)(1000.0))
    with axir.debug_infs(True):
        assert np.isnan(run(jnp.log)(-1.0))


def test_masked_nans_pass_in_compiled_code_only() -> None:
    def masked(x: Any) -> Any:
        return jnp.where(x > 0, jnp.log(x), 0.0)

    with axir.debug_nans(True):
        assert axir.jit(masked)(-1.0) == 0
        with pytest.raises(FloatingPointError):
            masked(-1.0)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32, jnp.complex64])
def test_every_inexact_dtype_is_checked(run: Callable[..., Any], dtype: Any) -> None:
    x = jnp.zeros(2, dtype)
    with axir.debug_nans(True), pytest.raises(FloatingPointError):
        run(lambda x: x / x)(x)


def test_integers_and_their_tangents_pass() -> None:
    with axir.debug_nans(True):
        gradients = axir.grad(lambda x, n: x * n, (0, 1), allow_int=True)(1.0, 2)
    assert gradients[0] == 2


def test_donated_arguments_are_kept_for_finding_the_op() -> None:
    f = axir.jit(lambda x: jnp.log(x.at[0].set(-1.0)), donate_argnums=0)
    with axir.debug_nans(True), pytest.raises(FloatingPointError, match="encountered in log"):
        f(jnp.ones(3))


def test_what_vmap_rules_compute_is_checked() -> None:
    with axir.debug_nans(True), pytest.raises(FloatingPointError, match="in div"):
        axir.vmap(lambda x: x / x)(jnp.array([1.0, 0.0]))


# Leaks ------------------------------------------------------------------------------------------

_KEPT: list[Any] = []
TRACERS: dict[str, Callable[..., Any]] = {
    "Jit": axir.jit,
    "Jit of make_jaxpr": axir.make_jaxpr,
    "Grad": axir.grad,
    "Jvp": lambda f: lambda x: axir.jvp(f, (x,), (x,)),
    "Vjp": lambda f: lambda x: axir.vjp(f, x),
    "Linearize": lambda f: lambda x: axir.linearize(f, x),
}


def keeping(x: Any) -> Any:
    _KEPT.append(jnp.sin(x))
    return x


@pytest.mark.parametrize("kind", TRACERS)
def test_a_leak_is_found_and_described(kind: str) -> None:
    _KEPT.clear()
    with axir.checking_leaks(), pytest.raises(UnexpectedTracerError) as caught:
        TRACERS[kind](keeping)(jnp.float32(1.0))
    text = str(caught.value)
    assert f"after {kind.split()[0]} has traced 'keeping'" in text
    assert f"float32[] (made at {line_of(keeping, 'append')}), held by the list" in text
    assert "_KEPT" in text
    _KEPT.clear()


def test_vmap_finds_leaks() -> None:
    with axir.checking_leaks(), pytest.raises(UnexpectedTracerError, match="_KEPT"):
        axir.vmap(keeping)(jnp.ones(2))
    _KEPT.clear()


class Holder:
    """Something that a function may store a tracer in."""


def test_attributes_variables_and_arguments_are_described() -> None:
    holder = Holder()
    stored = None

    def to_attribute(x: Any) -> Any:
        holder.value = x  # type: ignore[attr-defined]
        return x + 1

    def to_variable(x: Any) -> Any:
        nonlocal stored
        stored = 2 * x
        return x

    with axir.checking_leaks():
        with pytest.raises(UnexpectedTracerError, match=r"\(an argument\), held by .*Holder"):
            axir.jit(to_attribute)(1.0)
        with pytest.raises(UnexpectedTracerError, match="a variable that a closure captured"):
            axir.jit(to_variable)(1.0)
    assert stored is not None


@pytest.mark.usefixtures("small_heap")
def test_functions_that_keep_nothing_pass() -> None:
    def f(x: Any) -> Any:
        y = jnp.where(x > 0, x, 1.0)
        return axir.jit(lambda z: {"a": [z, y], "b": z})(y)["b"].sum()

    x = jnp.arange(3.0)
    with axir.checking_leaks():
        assert axir.jit(f)(x) == f(x) == 4
        assert axir.grad(f)(x).tolist() == [0, 1, 1]
        assert axir.jit(axir.vmap(axir.grad(f)))(x).tolist() == [0, 1, 1]
        assert axir.hessian(f)(x).tolist() == np.zeros((3, 3)).tolist()


def test_the_check_is_an_option() -> None:
    axir.jit(keeping)(jnp.ones(5))
    assert len(_KEPT) == 1
    axir.config.update("jax_check_tracer_leaks", True)
    with pytest.raises(UnexpectedTracerError):
        axir.jit(keeping)(jnp.ones(6))
    with axir.check_tracer_leaks(False):
        axir.jit(keeping)(jnp.ones(7))
    _KEPT.clear()


# Scopes -----------------------------------------------------------------------------------------


def scoped(x: Any) -> Any:
    with axir.named_scope("outer"):
        y = jnp.sin(x)
        with axir.named_scope("inner"):
            return jnp.log(y)


def test_scopes_name_locations() -> None:
    sin, log = axir.make_jaxpr(scoped)(1.0).eqns
    assert str(sin.location).startswith('loc("outer"("')
    assert str(log.location).startswith('loc("outer/inner"("')
    assert '"outer/inner"(' in axir.make_jaxpr(scoped)(1.0).module().operation.get_asm(
        enable_debug_info=True
    )


def test_errors_see_through_scopes() -> None:
    with axir.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        axir.jit(scoped)(-1.0)
    assert f"at {line_of(scoped, 'jnp.log(y)')}" in str(caught.value)


def test_named_call_names_the_ops_of_a_function() -> None:
    def layer(x: Any, *, scale: float) -> Any:
        return jnp.cos(x) * scale

    for name, expected in ((None, "layer"), ("other", "other")):
        named = axir.named_call(layer, name=name)
        assert float(named(0.0, scale=2.0)) == 2
        (first, *_) = axir.make_jaxpr(lambda x, named=named: named(x, scale=2.0))(0.0).eqns
        assert str(first.location).startswith(f'loc("{expected}"(')


def test_a_scope_is_also_a_decorator() -> None:
    @axir.named_scope("decorated")
    def f(x: Any) -> Any:
        return jnp.cos(x)

    (equation,) = axir.make_jaxpr(f)(0.0).eqns
    assert str(equation.location).startswith('loc("decorated"(')
    with pytest.raises(ParameterError, match="must be a string"), axir.named_scope(3):  # type: ignore[arg-type]
        pass


def test_environment_information_names_versions_and_devices(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert axir.print_environment_info() is None
    text = capsys.readouterr().out
    assert text == f"{axir.print_environment_info(return_string=True)}\n"
    assert f"numpy               {np.__version__}\n" in text
    assert "cpu:0" in text
