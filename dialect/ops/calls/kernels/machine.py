"""What a kernel asks of the machine that it runs on: refs, its place in the grid, loops."""

from __future__ import annotations

import abc
from typing import Generic, TypeVar

from axir.dialect.core.annotations import AnyDtype, Foreign, IndexLike
from axir.dialect.core.errors import (
    DTypeError,
    ImmutableArrayError,
    KernelScopeError,
    ShapeError,
)
from axir.dialect.core.state import state

from .positions import Axis, block_shape, read_position
from .values import KernelValue, Step, check_dtype, dtype_of_number

Made = TypeVar("Made")


class Ref(abc.ABC, Generic[Made]):
    """An array while a kernel runs: `ref[i, :]` reads from it, `ref[i, :] = x` writes into it.

    Args:
        shape: Of the array.
        dtype: Of its elements.
        is_writable: False for an operand.
    """

    def __init__(self, shape: tuple[int, ...], dtype: AnyDtype, *, is_writable: bool):
        self.shape = shape
        self.dtype = dtype
        self.is_writable = is_writable

    @abc.abstractmethod
    def read(self, axes: list[Axis[Made]]) -> KernelValue[Made]:
        """Returns a number or a block. Indices outside are moved to the nearest inside."""

    @abc.abstractmethod
    def write(self, axes: list[Axis[Made]], value: KernelValue[Made]) -> None:
        """Writes a number or a block; with a single index outside, nothing."""

    @abc.abstractmethod
    def number(self, number: complex) -> KernelValue[Made]:
        """Returns a constant of the ref's dtype."""

    def __getitem__(self, position: IndexLike) -> KernelValue[Made]:
        return self.read(read_position(position, self.shape))

    def __setitem__(self, position: IndexLike, value: Foreign) -> None:
        if not self.is_writable:
            raise ImmutableArrayError(
                "A kernel assigns to a ref of an operand.",
                "Write into a ref of a result, or into memory of its own (`scratch`).",
            )
        axes: list[Axis[Made]] = read_position(position, self.shape)
        made = value if isinstance(value, KernelValue) else self.number(0).constant(value)
        if made.dtype != self.dtype:
            raise DTypeError(
                f"A kernel assigns {made.dtype} to a ref of {self.dtype}.",
                f"Convert it with astype({str(self.dtype)!r}).",
            )
        if made.shape not in ((), block_shape(axes)):
            raise ShapeError(
                f"A kernel assigns a block of shape {made.shape} to one of {block_shape(axes)}.",
                "Assign a block of the same shape, or a number.",
            )
        self.write(axes, made)


class Machine(abc.ABC, Generic[Made]):
    """Runs an instance of a kernel, at a place in the grid."""

    place: tuple[Foreign, ...]

    @abc.abstractmethod
    def program_id(self, axis: int) -> KernelValue[Made]:
        """Returns the place in the grid along an axis."""

    @abc.abstractmethod
    def number(self, number: complex, dtype: AnyDtype) -> KernelValue[Made]:
        """Returns a constant."""

    @abc.abstractmethod
    def fori_loop(
        self,
        lower: KernelValue[Made] | int,
        upper: KernelValue[Made] | int,
        step: Step,
        carried: tuple[KernelValue[Made], ...],
    ) -> tuple[KernelValue[Made], ...]:
        """Runs a step for each index, an int32."""

    @abc.abstractmethod
    def while_loop(
        self, holds: Step, step: Step, carried: tuple[KernelValue[Made], ...]
    ) -> tuple[KernelValue[Made], ...]:
        """Runs a step as long as a condition holds."""

    @abc.abstractmethod
    def when(self, condition: KernelValue[Made], body: Step) -> None:
        """Runs a function if a condition holds."""

    @abc.abstractmethod
    def scratch(self, shape: tuple[int, ...], dtype: AnyDtype) -> Ref[Made]:
        """Returns memory of the kernel's own, with zeros in it."""


def running(what: str) -> Machine[Foreign]:
    """Returns the machine that runs a kernel now.

    Raises:
        KernelScopeError: outside of kernels.
    """
    machine = state.machine
    if machine is None:
        raise KernelScopeError(
            f"{what} is called outside of a kernel.",
            "Call it in the function that is passed to kernel_call.",
        )
    return machine


def as_value(x: Foreign, dtype: AnyDtype | None = None) -> KernelValue[Foreign]:
    """Returns a value, also for a Python number.

    Raises:
        DTypeError: for anything else, or another dtype.
    """
    if not isinstance(x, KernelValue):
        if not isinstance(x, (bool, int, float)):
            raise DTypeError(
                f"A kernel computes with {x!r} of type {type(x).__name__!r}.",
                "Arrays come into a kernel as operands of its call.",
            )
        made = running("arithmetic of a kernel").number(0, dtype or dtype_of_number(x))
        return made.constant(x)
    if dtype is not None and x.dtype != dtype:
        raise DTypeError(
            f"A loop in a kernel carries {dtype}, and its step returns {x.dtype}.",
            "Convert it with astype.",
        )
    if x.shape:
        raise ShapeError(
            f"A loop or a condition in a kernel has a block of shape {x.shape}.",
            "Carry numbers; blocks live in refs, also in memory of the kernel's own (`scratch`).",
        )
    return x


def check_scratch(shape: tuple[int, ...], dtype: AnyDtype) -> None:
    """Raises the user's error for memory that cannot be.

    Raises:
        ShapeError: if it is empty.
        DTypeError: if kernels do not know the dtype.
    """
    check_dtype("Memory of a kernel's own", dtype)
    if any(extent < 1 for extent in shape):
        raise ShapeError(f"Memory of a kernel's own is empty: {shape}.", "Ask for some.")
