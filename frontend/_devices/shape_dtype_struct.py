"""`ShapeDtypeStruct`: the description of an array that need not exist."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from axir.dialect.core.annotations import DTypeLike, Extent, UserObject
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.dtypes import as_dtype
from axir.dialect.core.errors import AxirError, ParameterError
from axir.dialect.core.symbolic_dims import SymbolicDim

from .sharding import Sharding


class ImmutableStructError(AxirError, AttributeError, RuntimeError):
    """An attribute of a `ShapeDtypeStruct` was assigned to."""


class ShapeDtypeStruct:
    """Shape and dtype of an array that need not exist. Immutable and hashable.

    Args:
        shape: Extents of the axes; for `axir.export` they may be symbolic dimensions.
        dtype: Its dtype, or a name or scalar type of one.
        sharding: Where it lies, or None.
        weak_type: Whether the dtype yields to others.

    Raises:
        ParameterError: without a dtype, or if `sharding` is not a sharding.

    >>> import axir, axir.numpy as jnp
    >>> axir.eval_shape(jnp.sin, axir.ShapeDtypeStruct((2,), "float32"))
    ShapeDtypeStruct(shape=(2,), dtype=float32)
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")
    shape: tuple[int, ...]
    dtype: np.dtype
    sharding: Sharding | None
    weak_type: bool

    def __init__(
        self,
        shape: Sequence[Extent],
        dtype: DTypeLike,
        *,
        sharding: Sharding | None = None,
        weak_type: bool = False,
    ):
        if dtype is None:
            raise ParameterError("ShapeDtypeStruct: the dtype must be given.", "It may be a name.")
        if sharding is not None and not isinstance(sharding, Sharding):
            raise ParameterError(
                f"ShapeDtypeStruct: sharding={sharding!r} is no axir.sharding.Sharding.",
                "Leave it out, or pass a SingleDeviceSharding.",
            )
        assign = super().__setattr__
        assign("shape", tuple(x if isinstance(x, SymbolicDim) else int(x) for x in shape))
        assign("dtype", as_dtype(dtype))
        assign("sharding", sharding)
        assign("weak_type", bool(weak_type))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise ImmutableStructError(
            f"ShapeDtypeStruct is immutable: {name} cannot be assigned to.",
            f"Make another one: s.update({name}=...).",
        )

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def update(self, **changes: object) -> ShapeDtypeStruct:
        """Returns the struct with some of shape, dtype, sharding and weak_type replaced.

        >>> import axir
        >>> axir.ShapeDtypeStruct((2,), "float32").update(dtype="int32")
        ShapeDtypeStruct(shape=(2,), dtype=int32)
        """
        return ShapeDtypeStruct(**{**{name: getattr(self, name) for name in _FIELDS}, **changes})

    @classmethod
    def like(cls, x: object) -> ShapeDtypeStruct:
        """Returns the struct of an array, or of a Python scalar.

        >>> import axir
        >>> axir.ShapeDtypeStruct.like(2.0)
        ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
        """
        aval = x.aval if hasattr(x, "aval") else as_array(x).type
        placed: UserObject = x if isinstance(x, ConcreteArray) else None
        sharding = placed.sharding if placed is not None and placed.committed else None
        return cls(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a scalar's ShapeDtypeStruct: it has no axes.")
        return self.shape[0]

    # It has a length, but cannot be iterated over.
    __iter__ = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash(_values(self))

    def __repr__(self) -> str:
        sharding = f", sharding={self.sharding}" if self.sharding is not None else ""
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype}{sharding}{weak})"

    def __reduce__(self) -> tuple[UserObject, ...]:
        return _rebuild, _values(self)


_FIELDS = ("shape", "dtype", "sharding", "weak_type")


def _values(struct: ShapeDtypeStruct) -> tuple[UserObject, ...]:
    return tuple(getattr(struct, name) for name in _FIELDS)


def _rebuild(*values: UserObject) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(**dict(zip(_FIELDS, values, strict=True)))
