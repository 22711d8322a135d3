"""`JAXSparse`, the base of sparse arrays, and the errors of this package."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import ClassVar

from axir.dialect.core.annotations import (
    Axes,
    Dtype,
    DTypeLike,
    IndexLike,
    ShapeLike,
    UserFunction,
    UserObject,
)
from axir.dialect.core.array import Array
from axir.dialect.core.errors import AxirError, UnsupportedRuleError
from axir.dialect.program.rules import Value


class SparseEfficiencyError(AxirError, ValueError):
    """An operation would need an inefficient layout of a sparse array."""


class SparseEfficiencyWarning(UserWarning):
    """An operation needs more memory than its operands do."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """An operation on a GPU is not done by its library for sparse arrays; axir never warns so."""


class SparseLayoutError(AxirError, ValueError, TypeError):
    """The parts of a sparse array do not fit together."""


class SparseRuleError(UnsupportedRuleError):
    """An operation has no rule for sparse operands."""


OPERATIONS: dict[str, UserFunction] = {}
"""What operators and methods do, by name; `_transform.py` fills it."""


class JAXSparse(abc.ABC):
    """Base of sparse arrays: trees with the parts of the array as leaves.

    Attributes:
        shape: The shape of the array.
        data: The elements that are stored.
        dtype: Their dtype.
        nse: How many are stored (of each batch).
    """

    shape: tuple[int, ...]
    data: Value
    __array_priority__: ClassVar[int] = 100
    __hash__ = None  # type: ignore[assignment]

    @property
    @abc.abstractmethod
    def nse(self) -> int:
        """The number of elements that are stored."""

    @abc.abstractmethod
    def todense(self) -> Value:
        """Returns the array with all its elements."""

    @property
    def dtype(self) -> Dtype:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, stored or not."""
        return math.prod(self.shape)

    @property
    def T(self) -> UserObject:
        """The transpose."""
        return self.transpose()

    def transpose(self, axes: Sequence[int] | None = None) -> UserObject:
        """Returns the array with its dimensions in another order, by default reversed."""
        return OPERATIONS["transpose"](self, axes)

    def block_until_ready(self) -> UserObject:
        """Waits until the elements are computed."""
        self.data.block_until_ready()
        return self

    def sum(self, axis: Axes = None, **options: object) -> UserObject:
        """Returns the sum along axes, as `jnp.sum`."""
        return OPERATIONS["sum"](self, axis=axis, **options)

    def reshape(self, *shape: ShapeLike, order: str = "C") -> UserObject:
        """Returns the array in another shape, as `jnp.reshape`."""
        sizes = shape[0] if len(shape) == 1 else shape
        return OPERATIONS["reshape"](self, sizes, order=order)

    def astype(self, dtype: DTypeLike) -> UserObject:
        """Returns the array in another dtype."""
        return OPERATIONS["astype"](self, dtype)

    def __getitem__(self, index: IndexLike) -> UserObject:
        return OPERATIONS["getitem"](self, index)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dtype}{list(self.shape)}, nse={self.nse})"

    def __neg__(self) -> UserObject:
        return OPERATIONS["neg"](self)

    def __abs__(self) -> UserObject:
        return OPERATIONS["abs"](self)

    def __add__(self, other: object) -> UserObject:
        return OPERATIONS["add"](self, other)

    def __radd__(self, other: object) -> UserObject:
        return OPERATIONS["add"](other, self)

    def __sub__(self, other: object) -> UserObject:
        return OPERATIONS["sub"](self, other)

    def __rsub__(self, other: object) -> UserObject:
        return OPERATIONS["sub"](other, self)

    def __mul__(self, other: object) -> UserObject:
        return OPERATIONS["mul"](self, other)

    def __rmul__(self, other: object) -> UserObject:
        return OPERATIONS["mul"](other, self)

    def __truediv__(self, other: object) -> UserObject:
        return OPERATIONS["div"](self, other)

    def __pow__(self, other: object) -> UserObject:
        return OPERATIONS["pow"](self, other)

    def __matmul__(self, other: object) -> UserObject:
        return OPERATIONS["matmul"](self, other)

    def __rmatmul__(self, other: object) -> UserObject:
        return OPERATIONS["matmul"](other, self)


def is_sparse(x: object) -> bool:
    """Tells whether something is a sparse array."""
    return isinstance(x, JAXSparse)


def dense_shape(x: object) -> tuple[int, ...]:
    """Returns the shape of a sparse array, an array or a Python number."""
    return tuple(x.shape) if isinstance(x, (JAXSparse, Array)) else ()
