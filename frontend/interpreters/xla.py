"""Names of `jax.interpreters.xla` that are no part of XLA, and its tables of 2020.

Rules of 2020, `rule(builder, *values, **params)`, are entered in `translations`, or for a platform
in `backend_specific_translations[platform]`; today's function is `mlir.register_lowering`. They
write the operations of `jax.lib.xla_client.ops`.

>>> from axir import core
>>> from axir.interpreters import xla
>>> twice = core.Primitive("twice")
>>> xla.translations[twice] = lambda builder, x: builder.Add(x, x)
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from functools import lru_cache, partial

from axir._transforms.jit import jit
from axir.core import Primitive, pytype_aval_mappings
from axir.dialect.core.annotations import Params, UserFunction, UserObject
from axir.dialect.core.array import as_array
from axir.dialect.core.config import config
from axir.dialect.program.tracer import Tracer

from ._xla_ops import XlaBuilder
from .mlir import LoweringContext, register_lowering

__all__ = [
    "apply_primitive", "backend_specific_translations", "canonicalize_dtype_handlers",
    "pytype_aval_mappings", "translations",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


# Functions that convert arguments to arrays of legal dtypes, by class. Added entries are ignored: a
# class defines its conversion to an array by `__jax_array__`.
canonicalize_dtype_handlers: dict[type, UserFunction] = dict.fromkeys(
    pytype_aval_mappings, as_array
)


def apply_primitive(prim: Primitive, *args: UserObject, **params: object) -> UserObject:
    """Applies a primitive to values: a user's primitive is compiled by its lowering.

    So it serves as the rule of `def_impl` for a primitive that has no other.

    >>> from axir import lax
    >>> apply_primitive(lax.add_p, 1.0, 2.0)
    Array(3., dtype=float32, weak_type=True)
    """
    if prim.implementation is None or any(type(x) is Tracer for x in args):
        return prim.bind(*args, **params)
    # Also where jit is switched off: `bind` would come back here.
    with config(jax_disable_jit=False):
        return _compiled_once(prim, params)(*args)


def _compiled_once(prim: Primitive, params: Params) -> Callable[..., object]:
    """Returns a primitive compiled; the same function for equal hashable parameters."""
    key = tuple(params.items())
    try:
        hash(key)
    except TypeError:
        return _compiled.__wrapped__(prim, key)
    return _compiled(prim, key)


@lru_cache(maxsize=256)
def _compiled(prim: Primitive, params: tuple[tuple[str, object], ...]) -> Callable[..., object]:
    return jit(partial(prim.bind, **dict(params)))


class Translations(UserDict[Primitive, UserFunction]):
    """Rules by primitive for one platform, or for all; entering one registers it."""

    def __init__(self, platform: str | None = None) -> None:
        super().__init__()
        self._platform = platform

    def __setitem__(self, primitive: Primitive, rule: Callable[..., object]) -> None:
        super().__setitem__(primitive, rule)

        def lower(_: LoweringContext, *values: object, **params: object) -> UserObject:
            return rule(XlaBuilder(), *values, **params)

        register_lowering(primitive, lower, self._platform)


class _ByPlatform(UserDict[str, Translations]):
    """Tables of rules, which are made when their platform is named."""

    def __missing__(self, platform: str) -> Translations:
        self[platform] = table = Translations(platform)
        return table


translations = Translations()
backend_specific_translations = _ByPlatform()
