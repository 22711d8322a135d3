"""Operators and methods of sparse arrays."""

from __future__ import annotations

import axir.numpy as jnp
from axir.dialect.core.annotations import Axes, DTypeLike, UserObject
from axir.dialect.core.array import Array

from ._base import OPERATIONS
from ._bcoo import BCOO
from ._bcoo_layout import bcoo_sort_indices, bcoo_update_layout, sum_duplicates
from ._bcoo_shape import getitem
from ._conversion import to_bcoo
from ._transform import sparsify


def _transposed(x: object, axes: Axes) -> BCOO:
    return sparsify(lambda x: jnp.transpose(x, axes))(x)


def _indexed(x: object, key: object) -> BCOO:
    return getitem(to_bcoo(x), key)


def _converted(x: object, dtype: DTypeLike) -> UserObject:
    return sparsify(lambda x: x.astype(dtype))(x)


def _dense(x: UserObject) -> object:
    """Returns NumPy's arrays as arrays, which are traced; other things as they are."""
    return jnp.asarray(x) if hasattr(x, "__array__") and not isinstance(x, Array) else x


def _binary(function: UserObject) -> UserObject:
    apply = sparsify(function)
    return lambda x, y: apply(_dense(x), _dense(y))


OPERATIONS.update(
    {
        "abs": sparsify(jnp.abs),
        "add": _binary(jnp.add),
        "astype": _converted,
        "div": _binary(jnp.divide),
        "getitem": _indexed,
        "matmul": _binary(jnp.matmul),
        "mul": _binary(jnp.multiply),
        "neg": sparsify(jnp.negative),
        "pow": _binary(jnp.power),
        "reshape": lambda x, shape, order: sparsify(lambda x: jnp.reshape(x, shape, order=order))(
            x
        ),
        "sort_indices": bcoo_sort_indices,
        "sub": _binary(jnp.subtract),
        "sum": lambda x, **options: sparsify(lambda x: jnp.sum(x, **options))(x),
        "sum_duplicates": sum_duplicates,
        "transpose": _transposed,
        "update_layout": bcoo_update_layout,
    }
)
