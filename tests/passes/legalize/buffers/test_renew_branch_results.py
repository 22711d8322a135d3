"""`renew-branch-results`: what a branch hands on stays as it is where the result is updated."""

from __future__ import annotations

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax

X = np.random.default_rng(0).normal(size=(60, 60)).astype(np.float32)


def handed_on(p, x):
    x = x * 3
    chosen = lax.cond(p, jnp.sin, lambda x: x, x)
    changed = chosen.at[0].set(1)
    return changed, x, changed + x


def of_a_product(p, x):
    x = x @ x
    chosen, other = lax.cond(p, lambda x: (jnp.sin(x), x), lambda x: (x, x * 2), x)
    return chosen.at[3:5].set(2), x, other


def of_branches_in_branches(n, x):
    x = jnp.cos(x) + 1

    def inner(x):
        return lax.cond(n > 2, lambda x: x, jnp.tanh, x).reshape(-1)

    chosen = lax.switch(n, [lambda x: x.reshape(-1), inner, lambda x: x.reshape(-1) * 2], x)
    return chosen.at[7].add(1), x.sum(0), x


@pytest.mark.parametrize("function", [handed_on, of_a_product, of_branches_in_branches])
def test_the_array_stays(function) -> None:
    axir.config.update("axir_compiler", "iree")
    compiled = axir.jit(function)
    for choice in (0, 1):
        argument = bool(choice) if function is not of_branches_in_branches else choice
        with axir.disable_jit():
            wanted = function(jnp.asarray(argument), jnp.asarray(X))
        # A program that the proof refuses fails the test, too: see the run report.
        for made, want in zip(compiled(argument, X), wanted, strict=True):
            np.testing.assert_allclose(made, want, rtol=1e-5, atol=1e-4)
