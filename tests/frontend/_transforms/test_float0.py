"""Arrays of float0, which gradients of integers are, as arguments and results of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.errors import GradientError

MISSING = np.zeros((2,), axir.float0)
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda lib: lib.jit(lambda x: x)(MISSING),
    "beside others": lambda lib: lib.jit(lambda x, y: (y, [x]))(MISSING, 1.0),
    "its shape": lambda lib: lib.jit(lambda x: lib.numpy.ones(x.shape))(MISSING),
    "part": lambda lib: lib.jit(lambda x: x[0])(MISSING),
    "zeros_like": lambda lib: lib.numpy.zeros_like(MISSING),
    "ones_like": lambda lib: lib.numpy.ones_like(MISSING),
    "full_like of lax": lambda lib: lib.lax.full_like(MISSING, 0),
    "zeros_like in jit": lambda lib: lib.jit(lib.numpy.zeros_like)(MISSING),
    "vmap": lambda lib: lib.vmap(lambda x: x)(MISSING),
    "vmap beside": lambda lib: lib.vmap(lambda x, y: y)(MISSING, np.arange(2, dtype=np.float32)),
    "cond": lambda lib: lib.lax.cond(True, lambda x: 1.0, lambda x: 2.0, MISSING),
    "tangents": lambda lib: lib.jit(
        lambda t: lib.jvp(lambda i: i, (lib.numpy.arange(2),), (t,))
    )(MISSING),
    "gradients": lambda lib: lib.jit(lambda g: lib.tree.map(lib.numpy.zeros_like, g))(
        lib.grad(lambda i: i * 1.0, allow_int=True)(3)
    ),
    "eval_shape": lambda lib: lib.eval_shape(lambda x: [x], MISSING),
    "checkpoint": lambda lib: lib.checkpoint(lambda x, y: (x, y * 2))(MISSING, np.float32(2.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_arrays_of_float0_go_in_and_out(name: str) -> None:
    found, expected = (jax.tree.leaves(PROGRAMS[name](lib)) for lib in (axir, jax))
    assert [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in expected]


def test_functions_are_compiled_for_float0_apart_from_bools() -> None:
    seen = []
    function = axir.jit(lambda x: seen.append(x.dtype))
    for x in (MISSING, np.zeros(2, np.bool_), MISSING, np.zeros(2, np.bool_)):
        function(x)
    assert seen == [axir.float0, np.bool_]


@pytest.mark.parametrize("wrap", [lambda f: f, axir.jit])
def test_integers_may_be_their_own_cotangents(wrap) -> None:
    """Programs pass on the result of a function as a cotangent; for integers it is ignored."""

    def both(x):
        return 2 * x, jnp.argmax(x)

    out, pull = axir.vjp(wrap(both), jnp.ones(3))
    np.testing.assert_array_equal(pull(out)[0], [4, 4, 4])
    with pytest.raises(GradientError, match=r"Cotangent of type float32\[\]"):
        pull((out[0], jnp.float32(1)))
    with pytest.raises(GradientError, match="Tangent of type"):
        axir.jvp(lambda n: n, (jnp.int32(3),), (jnp.int32(1),))
