"""JAX primitives that axir composes of other ops: they give the same results as JAX's."""

from __future__ import annotations

import jax
import jax.extend.core.primitives
import numpy as np
import pytest
from jax.lax import linalg as their_linalg

import axir
import axir.numpy as jnp
from axir import lax, random
from axir._composite_primitives import COMPOSITE_PRIMITIVES
from axir.extend.core import primitives
from axir.interpreters import ad

_EDGES = np.array([-np.nan, -np.inf, -1.5, -0.0, 0.0, 1e-40, 2.0, np.inf, np.nan])
_MATRIX = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], np.float32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "uint16"])
@pytest.mark.parametrize("name", ["eq_to_p", "le_to_p", "lt_to_p"])
def test_comparisons_by_total_order(name: str, dtype: str) -> None:
    numbers = _EDGES if "float" in dtype else np.array([0, 1, 5, 100])
    values = numbers.astype(jnp.dtype(dtype))
    rows, columns = np.meshgrid(values, values)
    ours = getattr(primitives, name).bind(rows, columns)
    theirs = getattr(jax.extend.core.primitives, name).bind(
        jax.numpy.asarray(rows), jax.numpy.asarray(columns)
    )
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(axir.jit(getattr(lax, name).bind)(rows, columns), ours)


def test_largest_elements() -> None:
    params = dict(
        k=2, reduction_dimension=0, recall_target=0.95, is_max_k=False,
        reduction_input_size_override=-1, aggregate_to_topk=True,
    )  # fmt: skip
    values, indices = lax.approx_top_k_p.bind(jnp.array([3.0, 1.0, 2.0]), **params)
    np.testing.assert_array_equal(values, [1.0, 2.0])
    np.testing.assert_array_equal(indices, [1, 2])


def test_random_numbers() -> None:
    key = random.key(3)
    a = jnp.array([0.5, 2.0])
    for log_space, draw in ((False, random.gamma), (True, random.loggamma)):
        drawn = random.random_gamma_p.bind(key, a, log_space=log_space)
        np.testing.assert_array_equal(drawn, draw(key, a))
    drawn = np.asarray(lax.rng_uniform_p.bind(2.0, 3.0, shape=(50,)))
    assert drawn.shape == (50,)
    assert ((drawn >= 2) & (drawn < 3)).all()


def test_matrices() -> None:
    bound = {
        "symmetric_product_p": ((_MATRIX, _MATRIX), {"alpha": 2.0, "beta": 0.5}),
        "cholesky_update_p": ((np.triu(_MATRIX), np.ones(3, np.float32)), {}),
        "ormqr_p": ((_MATRIX, _MATRIX[0] / 8, _MATRIX), {"left": True, "transpose": False}),
    }
    for name, (operands, params) in bound.items():
        ours = getattr(axir.lax.linalg, name).bind(*operands, **params)
        theirs = getattr(their_linalg, name).bind(*map(jax.numpy.asarray, operands), **params)
        np.testing.assert_allclose(np.tril(ours), np.tril(theirs), rtol=2e-5, atol=2e-5)


def test_updates_tokens_and_places() -> None:
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    changed = lax.scatter_sub_p.bind(
        jnp.ones(3), jnp.array([[1]]), jnp.array([4.0]),
        dimension_numbers=numbers, update_jaxpr=None, update_consts=(),
    )  # fmt: skip
    np.testing.assert_array_equal(changed, [1, -3, 1])
    token = lax.after_all_p.bind(lax.create_token_p.bind(1.0))
    assert token.size == 0
    device = axir.devices()[0]
    (placed,) = lax.device_put_p.bind(jnp.ones(2), devices=[device], srcs=[None])
    assert placed.devices() == {device}


def test_they_are_made_of_ops_and_differentiated_as_such() -> None:
    jaxpr = axir.make_jaxpr(lax.lt_to_p.bind)(1.0, 2.0)
    names = [str(equation.primitive) for equation in jaxpr.eqns]
    assert names[-1] == "lt"
    assert not set(names) & set(COMPOSITE_PRIMITIVES)
    slope = axir.grad(
        lambda x: primitives.symmetric_product_p.bind(x, x, alpha=1.0, beta=0.0).sum()
    )(jnp.eye(2))
    np.testing.assert_array_equal(slope, np.full((2, 2), 2.0))


def test_names() -> None:
    assert {f"{name}_p" for name in COMPOSITE_PRIMITIVES} <= set(dir(primitives))
    assert ad.add_jaxvals_p is lax.add_p is primitives.add_jaxvals_p
    for module in (lax, lax.linalg, random):
        with pytest.raises(AttributeError, match="no attribute 'no_such_p'"):
            module.no_such_p  # noqa: B018
