"""Numbers, and blocks of them, in a kernel: which go together, on whatever machine.

Operators and functions are those of formulas (`dialect/builders/expressions.py`).
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from axir.dialect.builders.expressions import Expression
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import AnyDtype, DTypeLike, Foreign
from axir.dialect.core.errors import DTypeError, ShapeError

Made = TypeVar("Made")
Number: TypeAlias = bool | int | float
"""A Python number, which takes the dtype of what it stands beside."""

DTYPES = tuple(
    map(np.dtype, ("bool", "int8", "int16", "int32", "int64", "float16", "float32", "float64"))
)
BFLOAT16 = dtypes.as_dtype("bfloat16")
_ALL = (*DTYPES, BFLOAT16)

_NUMBERS: dict[str, tuple[type, ...]] = {
    "b": (bool,), "i": (bool, int), "f": (bool, int, float),
}  # fmt: skip
_FOR_TRUTHS = frozenset({"and", "or", "not"})
_FOR_INTEGERS = frozenset({"floordiv", "mod"})
_FOR_ALL_NUMBERS = frozenset({"add", "sub", "mul", "neg", "abs"})


def check_dtype(what: str, dtype: AnyDtype) -> AnyDtype:
    """Returns a dtype that kernels know.

    Raises:
        DTypeError: for others: complex numbers, unsigned integers, keys.
    """
    if dtype not in _ALL:
        raise DTypeError(
            f"{what} is of dtype {dtype}; kernels work on {', '.join(map(str, _ALL))}.",
            "Convert it with astype, or split it: complex numbers are two arrays.",
        )
    return dtype


class KernelValue(Expression, Generic[Made]):
    """A number (of shape `()`), or a block of numbers, in a kernel.

    Args:
        value: What the machine has for it.
        dtype: Of the numbers.
        shape: Of the block.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, value: Made, dtype: AnyDtype, shape: tuple[int, ...] = ()):
        super().__init__(value)
        self.dtype = dtype
        self.shape = shape

    # What a machine gives ------------------------------------------------------------------------

    @abc.abstractmethod
    def number(self, number: complex, dtype: AnyDtype) -> KernelValue[Made]:
        """Returns a constant."""

    @abc.abstractmethod
    def build(
        self, name: str, operands: tuple[KernelValue[Made], ...], dtype: AnyDtype
    ) -> KernelValue[Made]:
        """Returns an operation on operands of one shape, or numbers beside such."""

    @abc.abstractmethod
    def reduced(self, name: str) -> KernelValue[Made]:
        """Returns the `sum`, `max` or `min` of all numbers of a block."""

    # What is the same on all ---------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """What arithmetic there is: `b` for truth values, `i` for integers, `f` for floats."""
        return "f" if self.dtype == BFLOAT16 else str(self.dtype.kind)

    def constant(self, number: complex) -> KernelValue[Made]:
        """Returns a Python number as one of this dtype.

        Raises:
            DTypeError: for a float beside integers, or a number beside truth values.
        """
        allowed = _NUMBERS[self.kind]
        given: Foreign = number.item() if isinstance(number, np.generic) else number
        is_allowed = isinstance(given, allowed)
        if not is_allowed:
            is_number = isinstance(given, (bool, int, float, complex))
            raise DTypeError(
                f"{number!r} stands beside {self.dtype} in a kernel.",
                "Convert one of them with astype."
                if is_number
                else "Arrays come into a kernel as operands of its call.",
            )
        return self.number(given, self.dtype)

    def apply(self, name: str, *others: KernelValue[Made]) -> KernelValue[Made]:
        """Returns an operation on numbers of one dtype.

        Raises:
            DTypeError: if they are not, or their dtype has no such operation.
            ShapeError: if they are blocks of different shapes.
        """
        if not self._has(name):
            raise DTypeError(
                f"{name!r} of {self.dtype} in a kernel.",
                "Convert it with astype; integers are divided by // and %.",
            )
        return self._build(name, (self, *others), self.dtype)

    def compare(self, direction: str, other: KernelValue[Made]) -> KernelValue[Made]:
        """Returns truth values."""
        return self._build(direction, (self, other), np.dtype(bool))

    def choose(self, on_true: KernelValue[Made], on_false: KernelValue[Made]) -> KernelValue[Made]:
        """Returns one of two by truth values."""
        if self.kind != "b":
            raise DTypeError(
                f"select by {self.dtype} in a kernel, where truth values are needed.",
                "Compare it with something.",
            )
        _check_dtypes(on_true, on_false)
        return self.build("select", _of_one_shape(self, on_true, on_false), on_true.dtype)

    def __floordiv__(self, other: KernelValue[Made] | Number) -> KernelValue[Made]:
        return self.apply("floordiv", self.operand(other))

    def __mod__(self, other: KernelValue[Made] | Number) -> KernelValue[Made]:
        return self.apply("mod", self.operand(other))

    def astype(self, dtype: DTypeLike) -> KernelValue[Made]:
        """Returns the numbers in another dtype; integers are saturated, and nan becomes 0."""
        wanted = check_dtype("The result of astype", dtypes.as_dtype(dtype))
        return self if wanted == self.dtype else self.build("convert", (self,), wanted)

    def _has(self, name: str) -> bool:
        if name in _FOR_TRUTHS:
            return self.kind == "b"
        if name in _FOR_INTEGERS:
            return self.kind == "i"
        return self.kind == "f" or (self.kind == "i" and name in _FOR_ALL_NUMBERS)

    def _build(
        self, name: str, operands: tuple[KernelValue[Made], ...], dtype: AnyDtype
    ) -> KernelValue[Made]:
        _check_dtypes(*operands)
        return self.build(name, _of_one_shape(*operands), dtype)


def _check_dtypes(first: KernelValue[Made], *others: KernelValue[Made]) -> None:
    if any(x.dtype != first.dtype for x in others):
        found = " and ".join(str(x.dtype) for x in (first, *others))
        raise DTypeError(
            f"{found} meet in a kernel, which converts nothing by itself.",
            "Convert one of them with astype.",
        )


def _of_one_shape(*operands: KernelValue[Made]) -> tuple[KernelValue[Made], ...]:
    shapes = {x.shape for x in operands if x.shape}
    if len(shapes) > 1:
        found = " and ".join(str(x.shape) for x in operands)
        raise ShapeError(
            f"Blocks of shapes {found} meet in a kernel.",
            "Take blocks of equal shapes; only a number goes with any block.",
        )
    return operands


def dtype_of_number(number: Number) -> AnyDtype:
    """Returns the dtype of a Python number that stands alone: bool, int32 or float32."""
    if isinstance(number, bool):
        return np.dtype(bool)
    return np.dtype(np.int32 if isinstance(number, int) else np.float32)


Step: TypeAlias = Callable[..., Foreign]
"""A function of the user's, of values."""
