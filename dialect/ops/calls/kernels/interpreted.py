"""Kernels on NumPy: the reference, and what runs eagerly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from axir.dialect.builders import expressions
from axir.dialect.core.annotations import AnyDtype, HostArray, UserFunction
from axir.dialect.core.state import Change

from .machine import Machine, Ref, as_value, check_scratch
from .positions import Axis, block_shape
from .values import KernelValue, Step


def _floordiv(x: HostArray, y: HostArray) -> HostArray:
    return np.where(y == 0, x.dtype.type(0), np.floor_divide(x, np.where(y == 0, 1, y)))


def _mod(x: HostArray, y: HostArray) -> HostArray:
    return np.where(y == 0, x, np.mod(x, np.where(y == 0, 1, y)))


_FUNCTIONS: Mapping[str, Callable[..., HostArray]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide,
    "floordiv": _floordiv, "mod": _mod, "neg": np.negative, "abs": np.abs,
    "and": np.logical_and, "or": np.logical_or, "not": np.logical_not,
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal,
    "GT": np.greater, "GE": np.greater_equal, "select": np.where, "power": np.power,
    "sum": np.sum, "max": np.max, "min": np.min,
}  # fmt: skip


class Interpreted(KernelValue[HostArray]):
    """Numbers as a NumPy array."""

    __slots__ = ()

    def number(self, number: complex, dtype: AnyDtype) -> Interpreted:
        """Returns an array of rank 0."""
        return _value(np.asarray(number, dtype))

    def build(
        self, name: str, operands: tuple[KernelValue[HostArray], ...], dtype: AnyDtype
    ) -> Interpreted:
        """Computes."""
        arrays = [x.value for x in operands]
        if name == "convert":
            return _value(_converted(arrays[0], dtype))
        function = _FUNCTIONS.get(name) or getattr(expressions, name)
        return _value(np.asarray(function(*arrays)).astype(dtype))

    def reduced(self, name: str) -> Interpreted:
        """Computes."""
        return _value(np.asarray(_FUNCTIONS[name](self.value)).astype(self.dtype))


def _value(array: HostArray) -> Interpreted:
    return Interpreted(array, array.dtype, array.shape)


def _converted(x: HostArray, dtype: AnyDtype) -> HostArray:
    if dtype.kind != "i" or x.dtype.kind in "bi":
        return x.astype(dtype)
    ends = np.iinfo(dtype)
    wide = x.astype(np.float64)
    inside = (wide >= ends.min) & (wide < -float(ends.min))
    found = np.where(inside, wide, 0.0).astype(dtype)
    found = np.where(wide >= -float(ends.min), ends.max, found)
    return np.where(wide < ends.min, ends.min, found).astype(dtype)


class _Ref(Ref[HostArray]):
    def __init__(self, array: HostArray, *, is_writable: bool):
        super().__init__(array.shape, array.dtype, is_writable=is_writable)
        self.array = array

    def read(self, axes: list[Axis[HostArray]]) -> Interpreted:
        return _value(np.array(self.array[_places(axes)]))

    def write(self, axes: list[Axis[HostArray]], value: KernelValue[HostArray]) -> None:
        if all(axis.size is not None or 0 <= _start(axis) < axis.extent for axis in axes):
            self.array[_places(axes)] = np.broadcast_to(value.value, block_shape(axes))

    def number(self, number: complex) -> Interpreted:
        return _value(np.asarray(number, self.dtype))


def _start(axis: Axis[HostArray]) -> int:
    return int(axis.start.value if isinstance(axis.start, KernelValue) else axis.start)


def _places(axes: list[Axis[HostArray]]) -> tuple[int | slice, ...]:
    starts = [min(max(_start(axis), 0), axis.most) for axis in axes]
    return tuple(
        start if axis.size is None else slice(start, start + axis.size)
        for start, axis in zip(starts, axes, strict=True)
    )


class Interpreter(Machine[HostArray]):
    """Runs one instance of a kernel, at a place in the grid."""

    def __init__(self, place: tuple[int, ...]):
        self.place = place

    def program_id(self, axis: int) -> Interpreted:
        """Returns the place."""
        return self.number(self.place[axis], np.dtype(np.int32))

    def number(self, number: complex, dtype: AnyDtype) -> Interpreted:
        """Returns an array of rank 0."""
        return _value(np.asarray(number, dtype))

    def fori_loop(
        self,
        lower: KernelValue[HostArray] | int,
        upper: KernelValue[HostArray] | int,
        step: Step,
        carried: tuple[KernelValue[HostArray], ...],
    ) -> tuple[KernelValue[HostArray], ...]:
        """Loops in Python."""
        ends = (int(x.value if isinstance(x, KernelValue) else x) for x in (lower, upper))
        for i in range(*ends):
            carried = step(self.number(i, np.dtype(np.int32)), *carried)
        return carried

    def while_loop(
        self, holds: Step, step: Step, carried: tuple[KernelValue[HostArray], ...]
    ) -> tuple[KernelValue[HostArray], ...]:
        """Loops in Python."""
        while bool(holds(*carried).value):
            carried = step(*carried)
        return carried

    def when(self, condition: KernelValue[HostArray], body: Step) -> None:
        """Asks in Python."""
        if bool(as_value(condition).value):
            body()

    def scratch(self, shape: tuple[int, ...], dtype: AnyDtype) -> _Ref:
        """Returns an array of zeros."""
        check_scratch(shape, dtype)
        return _Ref(np.zeros(shape, dtype), is_writable=True)


def interpret(
    kernel: UserFunction,
    operands: Sequence[HostArray],
    results: Sequence[HostArray],
    grid: tuple[int, ...],
) -> None:
    """Runs all instances of a kernel, one after the other; they write into the results."""
    refs = [_Ref(x, is_writable=False) for x in operands]
    refs += [_Ref(x, is_writable=True) for x in results]
    with np.errstate(all="ignore"):
        for place in np.ndindex(*grid):
            with Change(machine=Interpreter(place)):
                kernel(*refs)
