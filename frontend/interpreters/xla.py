"""Names of `jax.interpreters.xla` that are no part of XLA."""

from __future__ import annotations

from axir.core import Primitive, pytype_aval_mappings
from axir.dialect.core.annotations import Param, UserFunction, UserObject
from axir.dialect.core.array import as_array

__all__ = ["apply_primitive", "canonicalize_dtype_handlers", "pytype_aval_mappings"]

# What makes arguments arrays of legal dtypes, by their class. Classes that are added are not asked
# for: a class says how it becomes an array by `__jax_array__`.
canonicalize_dtype_handlers: dict[type, UserFunction] = dict.fromkeys(
    pytype_aval_mappings, as_array
)


def apply_primitive(prim: Primitive, *args: UserObject, **params: Param) -> UserObject:
    """Applies a primitive to values.

    >>> from axir import lax
    >>> apply_primitive(lax.add_p, 1.0, 2.0)
    Array(3., dtype=float32, weak_type=True)
    """
    return prim.bind(*args, **params)
