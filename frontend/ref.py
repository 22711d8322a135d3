"""Arrays that can be assigned to, under the names of `jax.ref`.

>>> import axir, axir.numpy as jnp
>>> ref = axir.new_ref(jnp.zeros(3))
>>> @axir.jit
... def fill(ref, value):
...     ref[1:] = value
>>> fill(ref, 2.0)
>>> axir.freeze(ref)
Array([0., 2., 2.], dtype=float32)
"""

from __future__ import annotations

from axir._transforms.refs import (
    AbstractRef,
    FrozenRefError,
    Ref,
    addupdate,
    free_ref,
    freeze,
    get,
    new_ref,
    set,
    swap,
)
from axir.dialect.core.annotations import UserObject
from axir.numpy import zeros

__all__ = [
    "AbstractRef", "FrozenRefError", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get",
    "new_ref", "set", "swap",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def empty_ref(ty: UserObject, memory_space: object = None, pin: bool = False) -> Ref:
    """Makes a ref with unspecified initial elements; axir fills it with zeros.

    Args:
        ty: An object with a shape and a dtype, such as `axir.ShapeDtypeStruct`.
        memory_space, pin: Accepted for compatibility: devices have one memory.

    >>> import axir
    >>> empty_ref(axir.ShapeDtypeStruct((2,), "int32")).shape
    (2,)
    """
    return new_ref(zeros(ty.shape, ty.dtype))
