"""Kernels as code: a kernel of the builders', built by running the user's function once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import maximum, minimum
from axir.dialect.builders.kernels import (
    Memory,
    dispatch,
    each,
    loop,
    repeat_while,
    rows_of,
    scratch,
    when,
)
from axir.dialect.builders.scalars import Scalar, index, operation, to_index, to_integer
from axir.dialect.core.annotations import AnyDtype, UserFunction
from axir.dialect.core.state import Change
from axir.dialect.core.types import ShapedArray, element_type

from .compiled_values import Code, Compiled, Evaluation, Place, number_of, store_block
from .machine import Machine, Ref, check_scratch
from .positions import Axis, block_shape
from .values import KernelValue, Step

_INT32 = np.dtype(np.int32)
_WORKGROUPS = 16


class _Ref(Ref[Code]):
    def __init__(self, memory: Memory, dtype: AnyDtype, *, is_writable: bool):
        super().__init__(memory.shape, dtype, is_writable=is_writable)
        self.memory = memory

    def number(self, number: complex) -> Compiled:
        return number_of(number, self.dtype)

    def read(self, axes: list[Axis[Code]]) -> Compiled:
        starts = [_inside(axis) for axis in axes]
        shape = block_shape(axes)
        if not shape:
            return Compiled(self.memory[tuple(starts)], self.dtype)
        if self.is_writable:
            # What is written later must not be read: the block is computed now.
            own = scratch(shape, element_type(self.dtype))
            source = _block(self.memory, axes, starts, self.dtype)
            store_block(shape, source, source.lanes, lambda place, x: _put(own, place, x))
            return _block(own, [Axis(0, extent, extent) for extent in shape],
                          [0] * len(shape), self.dtype)  # fmt: skip
        return _block(self.memory, axes, starts, self.dtype)

    def write(self, axes: list[Axis[Code]], value: KernelValue[Code]) -> None:
        assert isinstance(value, Compiled)
        starts = [_inside(axis) for axis in axes]
        truths = [_is_inside(axis) for axis in axes if axis.size is None]
        unknown = [truth for truth in truths if truth is not None]

        def put() -> None:
            shape = block_shape(axes)
            if not shape:
                self.memory[tuple(starts)] = value.scalar
                return
            whole = Compiled(value.value, value.dtype, shape, value.is_contiguous)
            lanes = whole.lanes if axes[-1].size is not None else None
            store_block(shape, whole, lanes, lambda place, x: _put(
                self.memory, _position(axes, starts, place), x))  # fmt: skip

        if not unknown:
            return put()
        holds = unknown[0]
        for truth in unknown[1:]:
            holds = holds & truth
        return when(holds)(put)


def _block(
    memory: Memory, axes: list[Axis[Code]], starts: list[Scalar | int], dtype: AnyDtype
) -> Compiled:
    def element(where: Evaluation) -> Scalar:
        position = _position(axes, starts, where.place)
        if where.lanes is None:
            return memory[position]
        return memory.read(position, where.lanes)

    return Compiled(element, dtype, block_shape(axes), axes[-1].size is not None)


def _put(memory: Memory, place: tuple[Scalar | int, ...], x: Scalar) -> None:
    if x.lanes is None:
        memory[place] = x
    else:
        memory.write(place, x)


def _position(
    axes: list[Axis[Code]], starts: list[Scalar | int], place: Place
) -> tuple[Scalar | int, ...]:
    """Returns where in a ref a place in a block at a position is."""
    rest = iter(place)
    return tuple(
        start if axis.size is None else _plus(start, next(rest))
        for axis, start in zip(axes, starts, strict=True)
    )


def _plus(start: Scalar | int, number: Scalar) -> Scalar:
    return number if isinstance(start, int) and not start else number + start


def _inside(axis: Axis[Code]) -> Scalar | int:
    """Returns the start, or the nearest one inside, as an index."""
    start = axis.start
    if not isinstance(start, Compiled):
        assert isinstance(start, int)
        return start
    place = to_index(start.scalar)
    if start.ends is not None and 0 <= start.ends[0] and start.ends[1] <= axis.most:
        return place
    return minimum(maximum(place, 0), axis.most)


def _is_inside(axis: Axis[Code]) -> Scalar | None:
    """Tells whether an index is inside; None if that is known."""
    start = axis.start
    if not isinstance(start, Compiled):
        return None
    if start.ends is not None and 0 <= start.ends[0] and start.ends[1] < axis.extent:
        return None
    place = to_index(start.scalar)
    return (place >= 0) & (place < axis.extent)


class Builder(Machine[Code]):
    """Builds the code of one instance of a kernel, at a place in the grid."""

    def __init__(self, place: Place, grid: tuple[int, ...]):
        self.place = place
        self.grid = grid

    def program_id(self, axis: int) -> Compiled:
        """Returns the place."""
        return _counter(self.place[axis], (0, self.grid[axis] - 1))

    def number(self, number: complex, dtype: AnyDtype) -> Compiled:
        """Returns a constant."""
        return number_of(number, dtype)

    def fori_loop(
        self,
        lower: KernelValue[Code] | int,
        upper: KernelValue[Code] | int,
        step: Step,
        carried: tuple[KernelValue[Code], ...],
    ) -> tuple[KernelValue[Code], ...]:
        """Builds a loop."""
        ends = [_ends(x) for x in (lower, upper)]
        least, most = ends[0], ends[1]
        known = (least[0], most[1] - 1) if least is not None and most is not None else None
        dtypes = [x.dtype for x in carried]

        def body(i: Scalar, *state: Scalar) -> tuple[Scalar, ...]:
            return _scalars(step(_counter(i, known), *_values(state, dtypes)))

        results = loop(_index(lower), _index(upper), _scalars(carried), body)
        return _values(results, dtypes)

    def while_loop(
        self, holds: Step, step: Step, carried: tuple[KernelValue[Code], ...]
    ) -> tuple[KernelValue[Code], ...]:
        """Builds a loop."""
        dtypes = [x.dtype for x in carried]
        results = repeat_while(
            _scalars(carried),
            lambda *state: holds(*_values(state, dtypes)).scalar,
            lambda *state: _scalars(step(*_values(state, dtypes))),
        )
        return _values(results, dtypes)

    def when(self, condition: KernelValue[Code], body: Step) -> None:
        """Builds a branch."""
        assert isinstance(condition, Compiled)
        when(condition.scalar)(lambda: body() and None)

    def scratch(self, shape: tuple[int, ...], dtype: AnyDtype) -> _Ref:
        """Returns memory on the stack."""
        check_scratch(shape, dtype)
        memory = scratch(shape, element_type(dtype))
        zero = number_of(0, dtype)
        if shape:
            whole = Compiled(zero.value, dtype, shape)
            store_block(shape, whole, whole.lanes, lambda place, x: _put(memory, place, x))
        else:
            memory[()] = zero.scalar
        return _Ref(memory, dtype, is_writable=True)


def _counter(number: Scalar, ends: tuple[int, int] | None) -> Compiled:
    return Compiled(to_integer(number, 32), _INT32, ends=ends)


def _ends(x: KernelValue[Code] | int) -> tuple[int, int] | None:
    if isinstance(x, Compiled):
        return x.ends
    assert isinstance(x, int)
    return x, x


def _index(x: KernelValue[Code] | int) -> Scalar | int:
    return to_index(x.scalar) if isinstance(x, Compiled) else x  # type: ignore[return-value]


def _scalars(values: Sequence[KernelValue[Code]]) -> tuple[Scalar, ...]:
    return tuple(x.scalar for x in values if isinstance(x, Compiled))


def _values(scalars: Sequence[Scalar], dtypes: Sequence[AnyDtype]) -> tuple[Compiled, ...]:
    return tuple(Compiled(x, dtype) for x, dtype in zip(scalars, dtypes, strict=True))


# The whole kernel ------------------------------------------------------------------------------


def compile_kernel(
    kernel: UserFunction,
    name: str,
    operands: Sequence[ir.Value],
    operand_types: Sequence[ShapedArray],
    result_types: Sequence[ShapedArray],
    grid: tuple[int, ...],
    batch: tuple[int, ...],
    batched: Sequence[tuple[bool, ...]],
    is_parallel: bool,
) -> list[ir.Value]:
    """Returns the results of a dispatch that runs all instances.

    Args:
        kernel: The user's function of refs.
        name: What it is called in the module.
        operands: With those batch axes in front that each has.
        operand_types: Their types.
        result_types: With all batch axes in front. They begin as zeros.
        grid: How many instances there are along each axis.
        batch: The batch axes.
        batched: For each operand, which of them it has.
        is_parallel: Whether instances along the first axis of the grid may run in parallel.
    """
    parallel = (*batch, *grid[:1]) if is_parallel else batch
    serial = grid[1:] if is_parallel else grid
    count = math.prod(parallel)
    workgroups = min(_WORKGROUPS, count)
    kinds = [t.dtype for t in (*operand_types, *result_types)]
    holders = [*batched, *[(True,) * len(batch)] * len(result_types)]

    def instance(place: Place, arrays: Sequence[Memory]) -> None:
        refs = [
            _Ref(array.at(*(i for i, has in zip(place, held, strict=False) if has)), dtype,
                 is_writable=number >= len(operands))
            for number, (array, dtype, held) in enumerate(zip(arrays, kinds, holders, strict=True))
        ]  # fmt: skip
        with Change(machine=Builder(place[len(batch) :], grid)):
            kernel(*refs)

    def nest(extents: tuple[int, ...], place: Place, arrays: Sequence[Memory]) -> None:
        if not extents:
            return instance(place, arrays)
        return each(0, extents[0])(lambda i: nest(extents[1:], (*place, i), arrays))

    def shared(workgroup: Scalar, *arrays: Memory) -> None:
        @each(*rows_of(workgroup, count, workgroups))
        def one(number: Scalar) -> None:
            nest(serial, _place(number, parallel), arrays)

    zeros = [hlo.full(0, t.shape, element_type(t.dtype)) for t in result_types]
    types = [zero.type for zero in zeros]
    places = {number: len(operands) + number for number in range(len(zeros))}
    return dispatch(
        shared, [*operands, *zeros], types, workgroups=workgroups, in_place=places, name=name
    )


def _place(number: Scalar, extents: tuple[int, ...]) -> Place:
    """Returns the indices of an array's element with a number."""
    place: list[Scalar] = []
    for extent in reversed(extents[1:]):
        size = index(extent)
        place.insert(0, operation("arith.remui", (number, size)))
        number = operation("arith.divui", (number, size))
    return (number, *place) if extents else ()
