"""Names of `jax.interpreters.xla` that are no part of XLA."""

from __future__ import annotations

import numpy as np

from axir._arguments.arguments import type_of
from axir.core import Primitive
from axir.dialect.core.annotations import Param, UserFunction, UserObject
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.program.tracer import Tracer

__all__ = ["apply_primitive", "canonicalize_dtype_handlers", "pytype_aval_mappings"]

_CLASSES = (ConcreteArray, Tracer, np.ndarray, np.generic, bool, int, float, complex)

# What makes arguments arrays of legal dtypes, and what takes their type, by their class. Classes
# that are added are not asked for: a class says how it becomes an array by `__jax_array__`.
canonicalize_dtype_handlers: dict[type, UserFunction] = dict.fromkeys(_CLASSES, as_array)
pytype_aval_mappings: dict[type, UserFunction] = dict.fromkeys(_CLASSES, type_of)


def apply_primitive(prim: Primitive, *args: UserObject, **params: Param) -> UserObject:
    """Applies a primitive to values.

    >>> from axir import lax
    >>> apply_primitive(lax.add_p, 1.0, 2.0)
    Array(3., dtype=float32)
    """
    return prim.bind(*args, **params)
