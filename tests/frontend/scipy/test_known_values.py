"""Functions with known values computed by SciPy: the same as by the traced formulas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.scipy import special
from axir.scipy.special import _bessel, _elementary, _gamma_family, _normal

FUNCTIONS = [
    _bessel._i0, _bessel._i1, _elementary._entr, _elementary._kl_div, _elementary._logit,
    _elementary._ndtr, _elementary._rel_entr, _elementary._xlog1py, _elementary._xlogy,
    _gamma_family._beta, _gamma_family._betaln, _gamma_family._factorial, _gamma_family._gamma,
    _gamma_family._loggamma, _gamma_family._poch, _gamma_family._sign_of_gamma,
    _normal._boxcox, _normal._boxcox1p, _normal._log_ndtr,
]  # fmt: skip
EDGES = [0.0, -0.0, 1, -1, 2, -2, 0.5, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 35.1, 88, 170.5]
TOLERANCES = {"float16": 3e-2, "float32": 3e-4, "float64": 3e-11}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_each_element_is_that_of_the_formula(function: Callable, dtype: str) -> None:
    with axir.enable_x64(dtype == "float64"):
        line = np.concatenate([EDGES, np.linspace(-12, 12, 20)]).astype(dtype)
        count = function.__wrapped__.__code__.co_argcount
        grid = [jnp.array(x.ravel()) for x in np.meshgrid(*[line] * count)]
        inside = [x[None] for x in (a[::7] for a in grid)]
        found = [
            function(*[x[:, n : n + 1] for x in inside])[0, 0] for n in range(len(inside[0][0]))
        ]
        expected = function.__wrapped__(*[x[0] for x in inside])
    with np.errstate(all="ignore"):
        is_tiny = np.abs(expected) > np.finfo(dtype).max / 1e8
    np.testing.assert_allclose(
        np.where(is_tiny, 0, found), np.where(is_tiny, 0, expected), TOLERANCES[dtype], 1e-35
    )
    assert all(x.dtype == dtype for x in found)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_that_of_single(dtype: str) -> None:
    x = jnp.array([0.5, 2.0, 3.5], dtype)
    found = special.betaln(x, x)
    assert found.dtype == dtype
    expected = special.betaln(x.astype("float32"), x.astype("float32"))
    np.testing.assert_array_equal(found, expected.astype(dtype))


def test_types_and_shapes_are_those_of_the_formula() -> None:
    for arguments in [(2.0, 3), (2.0, jnp.ones((2, 1))), (jnp.ones(3), jnp.ones((2, 1)))]:
        for function in (special.beta, special.betaln, special.poch, special.hyp1f1):
            operands = (*arguments, 0.5) if function is special.hyp1f1 else arguments
            found = function(*operands)
            traced = axir.eval_shape(function, *operands)
            assert (found.shape, found.dtype) == (traced.shape, traced.dtype)
            assert found.weak_type == traced.weak_type
    for z in (2.0, jnp.ones((2, 3)), jnp.array([jnp.inf, 1.0])):
        found, traced = special.bessel_jn(z, v=2), _bessel._bessel_jn(2, 50, jnp.asarray(z))
        assert (found.shape, found.dtype, found.weak_type) == (
            traced.shape,
            traced.dtype,
            traced.weak_type,
        )
        np.testing.assert_allclose(found, traced, atol=1e-6)


def test_derivatives_are_those_of_the_formula() -> None:
    slope = axir.grad(special.betaln)(1.5, 2.5)
    np.testing.assert_allclose(slope, special.digamma(1.5) - special.digamma(4.0), rtol=1e-5)
    with axir.debug_nans(True), pytest.raises(FloatingPointError):
        special.loggamma(-1.5)
