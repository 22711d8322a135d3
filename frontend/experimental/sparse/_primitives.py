"""The primitives of JAX's sparse arrays, which take their parts: here functions of sparse arrays.

They have JAX's operands and parameters. `spinfo` describes the array of these parts: a
`SparseInfo`, or a `COOInfo`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import axir.numpy as jnp
from axir._composite_primitives import CompositePrimitive
from axir.dialect.core.annotations import Param, UserObject
from axir.dialect.program.rules import Value

from . import _bcoo, _bcoo_layout, _bcoo_products, _bcoo_shape, _bcsr, _matrices
from ._base import JAXSparse
from ._bcoo import BCOO
from ._bcsr import BCSR
from ._matrices import COO, CSR
from ._transform import todense

Shape = tuple[int, ...]


class SparseInfo(NamedTuple):
    """The properties of a sparse array in addition to its parts.

    Attributes:
        shape: Its shape.
        indices_sorted, unique_indices: Properties of its indices.
    """

    shape: Shape
    indices_sorted: bool = False
    unique_indices: bool = False


class COOInfo(NamedTuple):
    """The properties of a COO matrix in addition to its parts.

    Attributes:
        shape: Rows and columns.
        rows_sorted, cols_sorted: Properties of its indices.
    """

    shape: Shape
    rows_sorted: bool = False
    cols_sorted: bool = False


def _array(kind: Callable[..., object], parts: Sequence[object], info: object) -> UserObject:
    """Returns an array of parts; `spinfo` may contain only its shape."""
    facts = info._asdict() if hasattr(info, "_asdict") else {"shape": info}
    return kind(tuple(parts), **facts)


def _parts(array: UserObject) -> list[Value]:
    return [array.data, *(getattr(array, name) for name in _PLACES[type(array)])]


_PLACES: dict[type[JAXSparse], tuple[str, ...]] = {
    BCOO: ("indices",),
    BCSR: ("indices", "indptr"),
    COO: ("row", "col"),
    CSR: ("indices", "indptr"),
}


def _of_array(
    kind: type[JAXSparse], function: Callable[..., object], info: str = "spinfo"
) -> Callable[..., UserObject]:
    """Makes a function of parts of one of a sparse array, and of arrays after it."""

    def bound(*operands: object, **params: object) -> UserObject:
        count = 1 + len(_PLACES[kind])
        array = _array(kind, operands[:count], params.pop(info))
        result = function(array, *operands[count:], **params)
        return _parts(result) if isinstance(result, JAXSparse) else result

    return bound


def _to_parts(function: Callable[..., object]) -> Callable[..., list[Value]]:
    return lambda x, **params: _parts(function(x, **params))


def _bcoo_extract(indices: Value, x: Value, *, assume_unique: bool = True) -> Value:
    nse, sparse = indices.shape[-2:]
    batch = indices.ndim - 2
    dense = x.shape[batch + sparse :]
    unknown = BCOO((jnp.zeros((*indices.shape[:-2], nse, *dense)), indices), shape=x.shape)
    return _bcoo.bcoo_extract(unknown, x, assume_unique=assume_unique).data


def _bcoo_spdot_general(
    *operands: Value, lhs_spinfo: SparseInfo, rhs_spinfo: SparseInfo, **params: Param
) -> list[Value]:
    lhs, rhs = _array(BCOO, operands[:2], lhs_spinfo), _array(BCOO, operands[2:], rhs_spinfo)
    return _parts(_bcoo_products.bcoo_dot_general(lhs, rhs, **params))


def _todense(*leaves: Value, tree: UserObject) -> Value:
    return todense(tree.unflatten(leaves))


bcoo_dot_general_p = CompositePrimitive(
    "bcoo_dot_general", _of_array(BCOO, _bcoo_products.bcoo_dot_general, "lhs_spinfo")
)
bcoo_dot_general_sampled_p = CompositePrimitive(
    "bcoo_dot_general_sampled", _bcoo_products.bcoo_dot_general_sampled
)
bcoo_extract_p = CompositePrimitive("bcoo_extract", _bcoo_extract)
bcoo_fromdense_p = CompositePrimitive("bcoo_fromdense", _to_parts(_bcoo.bcoo_fromdense), True)
bcoo_sort_indices_p = CompositePrimitive(
    "bcoo_sort_indices", _of_array(BCOO, _bcoo_layout.bcoo_sort_indices), True
)
bcoo_spdot_general_p = CompositePrimitive("bcoo_spdot_general", _bcoo_spdot_general, True)
bcoo_sum_duplicates_p = CompositePrimitive(
    "bcoo_sum_duplicates", _of_array(BCOO, _bcoo_layout.bcoo_sum_duplicates), True
)
bcoo_todense_p = CompositePrimitive("bcoo_todense", _of_array(BCOO, _bcoo.bcoo_todense))
bcoo_transpose_p = CompositePrimitive(
    "bcoo_transpose", _of_array(BCOO, _bcoo_shape.bcoo_transpose), True
)
bcsr_dot_general_p = CompositePrimitive(
    "bcsr_dot_general", _of_array(BCSR, _bcsr.bcsr_dot_general, "lhs_spinfo")
)
bcsr_extract_p = CompositePrimitive("bcsr_extract", _bcsr.bcsr_extract)
bcsr_fromdense_p = CompositePrimitive("bcsr_fromdense", _to_parts(_bcsr.bcsr_fromdense), True)
bcsr_todense_p = CompositePrimitive("bcsr_todense", _of_array(BCSR, _bcsr.bcsr_todense))
coo_fromdense_p = CompositePrimitive("coo_fromdense", _to_parts(_matrices.coo_fromdense), True)
coo_matmat_p = CompositePrimitive("coo_matmat", _of_array(COO, _matrices.coo_matmat))
coo_matvec_p = CompositePrimitive("coo_matvec", _of_array(COO, _matrices.coo_matvec))
coo_todense_p = CompositePrimitive("coo_todense", _of_array(COO, _matrices.coo_todense))
csr_fromdense_p = CompositePrimitive("csr_fromdense", _to_parts(_matrices.csr_fromdense), True)
csr_matmat_p = CompositePrimitive("csr_matmat", _of_array(CSR, _matrices.csr_matmat, "shape"))
csr_matvec_p = CompositePrimitive("csr_matvec", _of_array(CSR, _matrices.csr_matvec, "shape"))
csr_todense_p = CompositePrimitive("csr_todense", _of_array(CSR, _matrices.csr_todense, "shape"))
todense_p = CompositePrimitive("todense", _todense)
