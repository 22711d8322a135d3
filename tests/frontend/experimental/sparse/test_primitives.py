"""The primitives of sparse arrays, bound with JAX's operands and parameters, beside JAX's."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental import sparse as their_sparse
from jax.experimental.sparse import bcoo as their_bcoo
from jax.experimental.sparse import coo as their_coo

import axir
import axir.numpy as jnp
from axir.experimental import sparse
from axir.experimental.sparse import api, bcoo, coo, linalg

_DENSE = np.array([[0, 1, 2], [3, 0, 0]], np.float32)
_DATA = np.array([1, 2, 3], np.float32)
_PLACES = np.array([[0, 1], [0, 2], [1, 0]], np.int32)
_ROWS, _COLUMNS = _PLACES.T.copy()
_POINTERS = np.array([0, 2, 3], np.int32)
_PRODUCT = {"dimension_numbers": (((1,), (0,)), ((), ())), "preferred_element_type": None}
_BY_COORDINATES = [_DATA, _PLACES]
_BY_ROWS = [_DATA, _COLUMNS, _POINTERS]
_IN_COO = [_DATA, _ROWS, _COLUMNS]
_INFO = ("SparseInfo", ((2, 3), True, True))
_COO_INFO = ("COOInfo", ((2, 3), True, False))
_MAKING = {"nse": 3, "index_dtype": np.int32}

CASES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "bcoo_dot_general_p": ([*_BY_COORDINATES, _DENSE.T], {**_PRODUCT, "lhs_spinfo": _INFO}),
    "bcoo_dot_general_sampled_p": (
        [_DENSE, _DENSE.T, _PLACES[:, :1].repeat(2, 1)],
        {"dimension_numbers": _PRODUCT["dimension_numbers"]},
    ),
    "bcoo_extract_p": ([_PLACES, _DENSE], {"assume_unique": True}),
    "bcoo_fromdense_p": ([_DENSE], {**_MAKING, "n_batch": 0, "n_dense": 0}),
    "bcoo_sort_indices_p": ([_DATA, _PLACES[::-1].copy()], {"spinfo": ("SparseInfo", ((2, 3),))}),
    "bcoo_sum_duplicates_p": (
        [_DATA, np.array([[0, 1], [0, 1], [1, 0]], np.int32)],
        {"spinfo": ("SparseInfo", ((2, 3),)), "nse": 2},
    ),
    "bcoo_todense_p": (_BY_COORDINATES, {"spinfo": _INFO}),
    "bcoo_transpose_p": (_BY_COORDINATES, {"permutation": (1, 0), "spinfo": _INFO}),
    "bcsr_dot_general_p": ([*_BY_ROWS, _DENSE.T], {**_PRODUCT, "lhs_spinfo": _INFO}),
    "bcsr_extract_p": ([_COLUMNS, _POINTERS, _DENSE], {}),
    "bcsr_fromdense_p": ([_DENSE], {**_MAKING, "n_batch": 0, "n_dense": 0}),
    "bcsr_todense_p": (_BY_ROWS, {"spinfo": _INFO}),
    "coo_fromdense_p": ([_DENSE], _MAKING),
    "coo_matmat_p": ([*_IN_COO, _DENSE.T], {"spinfo": _COO_INFO, "transpose": False}),
    "coo_matvec_p": ([*_IN_COO, _DATA[:2]], {"spinfo": _COO_INFO, "transpose": True}),
    "coo_todense_p": (_IN_COO, {"spinfo": _COO_INFO}),
    "csr_fromdense_p": ([_DENSE], _MAKING),
    "csr_matmat_p": ([*_BY_ROWS, _DENSE], {"shape": (2, 3), "transpose": True}),
    "csr_matvec_p": ([*_BY_ROWS, _DATA], {"shape": (2, 3), "transpose": False}),
    "csr_todense_p": (_BY_ROWS, {"shape": (2, 3)}),
}


def _params(given: dict[str, Any], infos: dict[str, Any]) -> dict[str, Any]:
    return {
        name: infos[value[0]](*value[1]) if name.endswith("spinfo") else value
        for name, value in given.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    operands, given = CASES[name]
    theirs = {"SparseInfo": their_bcoo.SparseInfo, "COOInfo": their_coo.COOInfo}
    ours = {"SparseInfo": sparse.util.SparseInfo, "COOInfo": coo.COOInfo}
    expected = getattr(their_sparse, name).bind(
        *map(jax.numpy.asarray, operands), **_params(given, theirs)
    )
    primitive, params = getattr(sparse, name), _params(given, ours)
    for bind in (primitive.bind, lambda *xs, **params: axir.jit(
        lambda *xs: primitive.bind(*xs, **params)
    )(*xs)):  # fmt: skip
        found = bind(*map(jnp.asarray, operands), **params)
        several = primitive.multiple_results
        assert several == getattr(their_sparse, name).multiple_results
        pairs = zip(found, expected, strict=True) if several else [(found, expected)]
        for x, y in pairs:
            np.testing.assert_allclose(x, y, rtol=1e-6)
            assert (x.shape, x.dtype) == (y.shape, y.dtype)


def test_products_of_sparse_arrays() -> None:
    parts = [jnp.asarray(x) for x in _BY_COORDINATES]
    info = sparse.util.SparseInfo((2, 3), True, True)
    numbers = (((1,), (1,)), ((), ()))
    data, indices = bcoo.bcoo_spdot_general_p.bind(
        *parts, *parts, lhs_spinfo=info, rhs_spinfo=info, dimension_numbers=numbers,
        preferred_element_type=None,
    )  # fmt: skip
    product = sparse.BCOO((data, indices), shape=(2, 2)).todense()
    np.testing.assert_array_equal(product, _DENSE @ _DENSE.T)


def test_arrays_of_any_kind_and_equations() -> None:
    matrix = sparse.BCOO.fromdense(_DENSE)
    leaves, tree = axir.tree.flatten(matrix)
    np.testing.assert_array_equal(api.todense_p.bind(*leaves, tree=tree), _DENSE)
    pointers = jnp.array([0, 1, 3])
    solved = linalg.spsolve_p.bind(
        jnp.array([2.0, 1.0, 4.0]), jnp.array([0, 0, 1]), pointers, jnp.array([2.0, 9.0]),
        tol=1e-6, reorder=1,
    )  # fmt: skip
    np.testing.assert_allclose(solved, [1, 2])


def test_derivatives() -> None:
    places = jnp.asarray(_PLACES)
    info = sparse.util.SparseInfo((2, 3), True, True)

    def total(data):
        return (sparse.bcoo_todense_p.bind(data, places, spinfo=info) * jnp.asarray(_DENSE)).sum()

    np.testing.assert_array_equal(axir.grad(total)(jnp.zeros(3)), _DATA)
