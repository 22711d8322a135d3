"""Saved modules keep custom rules: they are functions in the text, and used when read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.errors import SerializationError, VerificationError
from axir.dialect.text.module_reader import parse_module, read_module
from axir.passes.framework.pipeline import run_passes

X = jnp.array([0.5, 1.0, 1.5])


def forward(x: Any) -> Any:
    f = axir.custom_jvp(lambda x: jnp.sin(x) * X)
    f.defjvp(lambda p, t: (f(*p), 2 * f(*p) * t[0]))
    return f(x)


def reverse(x: Any) -> Any:
    f = axir.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (f(x), f(x)), lambda r, ct: (3 * r * X * ct,))
    return f(x)


def solved(x: Any) -> Any:
    return lax.custom_linear_solve(lambda y: y * X, x, lambda m, b: b / X, symmetric=True)


def rematerialized(x: Any) -> Any:
    policy = axir.checkpoint_policies.save_only_these_names("a")
    return axir.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=policy)(x)


def both(x: Any) -> Any:
    return reverse(forward(x)) + rematerialized(solved(x))


@pytest.mark.parametrize("function", [forward, reverse, solved, rematerialized, both])
def test_a_module_read_back_differentiates_by_its_rules(function: Any, tmp_path: Path) -> None:
    path = tmp_path / "saved.mlir"
    axir.export.export(axir.jit(function))(X).save(path)
    loaded = axir.export.load(path)
    np.testing.assert_allclose(np.asarray(loaded(X)), np.asarray(function(X)), rtol=1e-6)
    for compose in (
        lambda f: axir.grad(lambda x: f(x).sum()),
        lambda f: axir.grad(lambda x: (axir.grad(lambda x: f(x).sum())(x) ** 2).sum()),
        lambda f: lambda x: axir.grad(lambda y: axir.vmap(f)(y).sum())(jnp.stack([x, 2 * x])),
    ):
        found, expected = compose(loaded.call)(X), compose(function)(X)
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("function", [forward, both])
@pytest.mark.parametrize("passes", ["simplify", "vmap{axis_size=2}", "linearize"])
def test_passes_keep_rules_in_text(function: Any, passes: str) -> None:
    module = axir.export.export(axir.jit(function))(X).module()
    run_passes(module, passes)
    again = parse_module(str(module))
    assert str(again) == str(module)
    assert "main" in read_module(again)


def test_jvp_of_a_saved_module_uses_the_rule() -> None:
    module = axir.export.export(axir.jit(forward))(X).module()
    run_passes(module, "jvp,lower-to-stablehlo")
    assert "stablehlo.cosine" not in str(module)


def test_linearize_and_transpose_of_a_saved_module_use_the_rules() -> None:
    module = axir.export.export(axir.jit(reverse))(X).module()
    run_passes(module, "linearize")
    assert "jaxpr.custom_lin" in str(module)
    run_passes(module, "transpose{function=linear}")
    functions = read_module(module)
    _, *residuals = functions["main"].evaluate(X)
    (found,) = functions["linear"].evaluate(*residuals, jnp.ones(3))
    np.testing.assert_allclose(np.asarray(found), 3 * np.sin(np.asarray(X)) * np.asarray(X), 1e-6)


def test_rules_of_saved_modules_are_verified() -> None:
    text = str(axir.export.export(axir.jit(forward))(X).module())
    wrong = text.replace("jvp_jaxpr_fun = @lambda_1", "jvp_jaxpr_fun = @lambda")
    if wrong == text:
        wrong = text.replace("jvp_jaxpr_fun = @lambda", "jvp_jaxpr_fun = @lambda_1")
    with pytest.raises(VerificationError, match="the rule @lambda.* must (take|return)"):
        read_module(parse_module(wrong))


def test_policies_in_python_cannot_be_saved() -> None:
    f = axir.checkpoint(lambda x: jnp.sin(x), policy=lambda p, *types, **params: True)
    with pytest.raises((SerializationError, VerificationError), match="Python object"):
        axir.export.export(axir.jit(f))(X).module()


def test_unknown_policies_are_refused() -> None:
    text = str(axir.export.export(axir.jit(rematerialized))(X).module())
    with pytest.raises(VerificationError, match="is no policy"):
        read_module(parse_module(text.replace("save_only_these_names", "save_the_whales")))


def closing_forward(x: Any, scale: Any) -> Any:
    f = axir.custom_jvp(lambda x: jnp.sin(x) * scale)
    f.defjvp(lambda p, t: (f(*p), 3 * t[0] * scale))
    return f(x)


def closing_reverse(x: Any, scale: Any) -> Any:
    f = axir.custom_vjp(lambda x: jnp.sin(x) * scale)
    f.defvjp(lambda x: (f(x), x), lambda r, ct: (3 * ct * scale,))
    return f(x)


@pytest.mark.parametrize("function", [closing_forward, closing_reverse])
def test_rules_that_close_over_values_of_the_function_cannot_be_saved(function: Any) -> None:
    exported = axir.export.export(function)(X, X)
    with pytest.raises(SerializationError, match=r"closes over a value(.|\n)*Pass that value"):
        exported.module()
    np.testing.assert_allclose(np.asarray(exported(X, X)), np.sin(X) * X, rtol=1e-6)
