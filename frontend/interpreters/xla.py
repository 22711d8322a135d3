"""Names of `jax.interpreters.xla` that are no part of XLA, and its tables of 2020.

Rules of 2020, `rule(builder, *values, **params)`, are entered in `translations`, or for a platform
in `backend_specific_translations[platform]`; `mlir.register_lowering` is what serves today. The
operations that they write are those of `jax.lib.xla_client.ops`.

>>> from axir import core
>>> from axir.interpreters import xla
>>> twice = core.Primitive("twice")
>>> xla.translations[twice] = lambda builder, x: builder.Add(x, x)
"""

from __future__ import annotations

from collections import UserDict

from axir.core import Primitive, pytype_aval_mappings
from axir.dialect.core.annotations import Param, UserFunction, UserObject
from axir.dialect.core.array import as_array

from ._xla_ops import XlaBuilder
from .mlir import LoweringContext, register_lowering

__all__ = [
    "apply_primitive",
    "backend_specific_translations",
    "canonicalize_dtype_handlers",
    "pytype_aval_mappings",
    "translations",
]

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


class Translations(UserDict[Primitive, UserFunction]):
    """Rules by primitive for one platform, or for all; entering one registers it."""

    def __init__(self, platform: str | None = None) -> None:
        super().__init__()
        self._platform = platform

    def __setitem__(self, primitive: Primitive, rule: UserFunction) -> None:
        super().__setitem__(primitive, rule)

        def lower(_: LoweringContext, *values: UserObject, **params: Param) -> UserObject:
            return rule(XlaBuilder(), *values, **params)

        register_lowering(primitive, lower, self._platform)


class _ByPlatform(UserDict[str, Translations]):
    """Tables of rules, which are made when their platform is named."""

    def __missing__(self, platform: str) -> Translations:
        self[platform] = table = Translations(platform)
        return table


translations = Translations()
backend_specific_translations = _ByPlatform()
