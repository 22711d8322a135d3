"""`scatter-by-kernel`: a scatter is a loop over its updates, which looks at each index itself."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, dispatch, loop, when
from axir.dialect.builders.scalars import (
    Scalar,
    convert_float,
    extend_unsigned,
    index,
    operation,
    to_index,
)
from axir.passes.legalize.buffers.protect_inputs import is_given_away
from axir.passes.legalize.copies import Columns, begin, copied, uniform_number
from axir.passes.legalize.dimension_numbers import DimensionNumbers, dimension_numbers
from axir.passes.legalize.lanes import Lanes, combination
from axir.passes.legalize.rewriting import RewritePass, operations_in_order, replace

from .drop_scatter import window_sizes

# A workgroup's share of a row: two lines of the cache.
_SHARE_BYTES = 128
_MOST_WORKGROUPS = 8
# Less than this is not worth a second workgroup, nor a copy in a dispatch of its own.
_LARGE_BYTES = 1 << 18
# What loses digits, and after how many updates of few elements it is worth to do something.
_ROUNDED = ("stablehlo.add", "stablehlo.multiply")
_FEW = 1 << 10
_SINGLE = 32


@dataclasses.dataclass(frozen=True)
class ScatterByKernel(RewritePass):
    """Scatters by a kernel that goes through the updates in their order.

    The facts: IREE writes at the indices as they are, so that indices outside of the operand need
    an operand with padding, which is copied before and after (`drop-scatter`); it works on one
    core, and on one number after the other unless windows are whole rows.

    1. Take scatters of one array whose body is one operation, or returns the update.
    2. Copy the operand to the result, or write the number that all of its elements are. What a
       scatter has made for this one alone, or the caller gives away, is not copied but changed.
    3. Read components of index vectors that are put together just for the scatter where they are.
       For each index in its order: compare the index vector with the limits of a window that fits.
       If it does, combine the window with the update, vectors at a time along the last dimension.
    4. Where much is written in rows, workgroups share the rows' columns, never the updates: each
       goes through all of them in their order, so that none waits for another, and the sums do not
       depend on how many run at a time.

    5. Where there are more than twice as many updates as elements, floats are added, or multiplied,
       in f64, and converted at the end: nothing else keeps the digits of millions of updates of
       one element in their order.

    Before::

        %0 = "stablehlo.scatter"(%x, %i, %u) … : (tensor<10000x64xf32>, tensor<20000x1xi32>, …)

    After::

        %1 = flow.dispatch @copy_0::@copy_0(%x)
        %2 = flow.dispatch @scatter_0::@scatter_0(%1, %i, %u) : (…) -> %1

    Only for CPUs. What is not taken is left to `drop-scatter` and those that follow it.
    """

    name: ClassVar[str] = "scatter-by-kernel"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.scatter",)

    def run(self, module: ir.Module) -> None:
        """Rewrites the scatters of the module in their order."""
        for scatter in operations_in_order(module.operation, self.operations):
            with ir.InsertionPoint(scatter), scatter.location:
                replacement = self.rewrite(scatter)
            if replacement is not None:
                replace(scatter, replacement)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the kernel."""
        if len(operation.operands) != 3:
            return None
        operand, indices, updates = operation.operands
        combine = combination(operation.regions[0].blocks[0])
        if combine is None or hlo.is_complex(operand):
            return None
        if not all(math.prod(hlo.shape_of(x)) for x in (operand, updates)):
            return operand
        if not math.prod(hlo.shape_of(indices)):
            return None  # which index nothing
        scatter = _Scatter.read(operation, combine)
        element = hlo.element_type_of(operand)
        is_wide = _is_long_sum(operation, scatter)
        if is_wide:
            operand = hlo.convert(operand, ir.F64Type.get())
        vector_dim = scatter.numbers["index_vector_dim"][0]
        parts = _components(indices, vector_dim)
        found = _scattered(operation, scatter, operand, [*parts, updates])
        return hlo.convert(found, element) if is_wide else found


@dataclasses.dataclass(frozen=True)
class _Scatter:
    """What a scatter does.

    Attributes:
        combine: What becomes of an element and an update.
        numbers: The dimension numbers.
        shape: Of the operand.
        windows: The extents of a window in the operand's dimensions.
        update_shape: Of the updates.
        index_shape: Of the indices.
        is_unsigned: Whether the indices are.
    """

    combine: Lanes
    numbers: DimensionNumbers
    shape: tuple[int, ...]
    windows: list[int]
    update_shape: tuple[int, ...]
    index_shape: tuple[int, ...]
    is_unsigned: bool

    @classmethod
    def read(cls, operation: ir.Operation, combine: Lanes) -> _Scatter:
        numbers = dimension_numbers(operation.attributes["scatter_dimension_numbers"])
        shape, index_shape, update_shape = map(hlo.shape_of, operation.operands)
        windows = window_sizes(len(shape), update_shape, numbers)
        is_unsigned = hlo.is_unsigned(operation.operands[1])
        return cls(combine, numbers, shape, windows, update_shape, index_shape, is_unsigned)

    @property
    def scattered(self) -> list[int]:
        """The dimensions of the updates that tell them apart."""
        window = self.numbers["update_window_dims"]
        return [axis for axis in range(len(self.update_shape)) if axis not in window]

    @property
    def window_axes(self) -> list[int]:
        """The dimensions of the operand that a window has, in the order of the updates'."""
        missing = {*self.numbers["inserted_window_dims"], *self.numbers["input_batching_dims"]}
        return [axis for axis in range(len(self.shape)) if axis not in missing]

    @property
    def row(self) -> int:
        """How many neighbours of an update are neighbours in the operand."""
        window = self.numbers["update_window_dims"]
        is_row = bool(window) and window[-1] == len(self.update_shape) - 1
        if not is_row or self.window_axes[-1] != len(self.shape) - 1:
            return 1
        return self.update_shape[-1]


def _scattered(
    made: ir.Operation, scatter: _Scatter, operand: ir.Value, reads: list[ir.Value]
) -> ir.Value:
    size = _bytes_of(operand)
    row_bytes = scatter.row * size // math.prod(scatter.shape)
    is_large = _bytes_of(reads[-1]) >= _LARGE_BYTES
    workgroups = max(1, min(_MOST_WORKGROUPS, row_bytes // _SHARE_BYTES)) if is_large else 1
    fill = uniform_number(operand)
    # What a loop computes anew in each of its passes, IREE may compute once, before it begins.
    is_in_loop = _is_in_loop(made)
    if (_is_made_for_one(operand) or is_given_away(operand)) and not is_in_loop:
        return _dispatch(scatter, operand, reads, workgroups, is_in_place=True)
    if size >= _LARGE_BYTES and not is_in_loop:
        copy = copied(operand, fill)
        return _dispatch(scatter, copy, reads, workgroups, is_in_place=True)
    return _dispatch(scatter, operand, reads, workgroups, is_in_place=False, fill=fill)


def _dispatch(
    scatter: _Scatter,
    operand: ir.Value,
    reads: list[ir.Value],
    workgroups: int,
    *,
    is_in_place: bool,
    fill: float | None = None,
) -> ir.Value:
    """Runs the kernel on the operand's memory, or on memory of its own that it fills before."""
    has_source = is_in_place or fill is None
    count = len(reads) - 1

    def kernel(workgroup: Scalar, *arrays: Memory) -> None:
        given = arrays[1:] if has_source else arrays
        indices, updates, own = given[:count], given[count], given[count + 1 :]
        target = own[0] if own else arrays[0]
        columns = Columns(scatter.row, target, workgroup, workgroups)
        if not is_in_place:
            extent = scatter.row if workgroups > 1 or not scatter.shape else scatter.shape[-1]
            whole = dataclasses.replace(columns, extent=extent)
            begin(target, arrays[0] if fill is None else target.constant(fill), whole)
        _Kernel(scatter, target, indices, updates, columns).run()

    [result] = dispatch(
        kernel,
        [operand, *reads] if has_source else reads,
        [operand.type],
        workgroups=workgroups,
        in_place={0: 0} if is_in_place else None,
        name="scatter",
    )
    return result


class _Kernel:
    """The code of a scatter."""

    def __init__(
        self,
        scatter: _Scatter,
        target: Memory,
        indices: Sequence[Memory],
        updates: Memory,
        columns: Columns,
    ):
        self.scatter = scatter
        self.target = target
        self.indices = indices
        self.updates = updates
        self.columns = columns

    def run(self) -> None:
        """Writes a loop for each dimension that tells updates apart."""
        self._each_update(self.scatter.scattered, [])

    def _each_update(self, axes: list[int], places: list[Scalar]) -> None:
        if axes:
            extent = self.scatter.update_shape[axes[0]]
            loop(0, extent, (), lambda i: self._each_update(axes[1:], [*places, i]))
            return
        starts, fits = self._starts(places)
        if fits is None:
            self._each_row(places, starts)
        else:
            when(fits)(lambda: self._each_row(places, starts))

    def _starts(self, places: list[Scalar]) -> tuple[list[Scalar], Scalar | None]:
        """Returns where a window begins, and whether it fits."""
        numbers = self.scatter.numbers
        starts = [index(0)] * len(self.scatter.shape)
        vector_dim = numbers["index_vector_dim"][0]
        fits: Scalar | None = None
        for number, axis in enumerate(numbers["scatter_dims_to_operand_dims"]):
            position = list(places)
            is_apart = len(self.indices) > 1
            if vector_dim < len(self.scatter.index_shape):
                position.insert(vector_dim, index(0 if is_apart else number))
            components = self.indices[number if is_apart else 0]
            start = self._number(components[tuple(position)])
            limit = self.scatter.shape[axis] - self.scatter.windows[axis]
            inside = (start >= 0) & (start <= limit)
            fits = inside if fits is None else fits & inside
            starts[axis] = to_index(start)
        batches = zip(
            numbers["input_batching_dims"], numbers["scatter_indices_batching_dims"], strict=True
        )
        for axis, batch in batches:
            starts[axis] = places[batch - (batch > vector_dim)]
        return starts, fits

    def _number(self, x: Scalar) -> Scalar:
        if self.scatter.is_unsigned or x.width == 64:
            return extend_unsigned(x, 64)
        return operation("arith.extsi", (x,), ir.IntegerType.get_signless(64))

    def _each_row(self, places: list[Scalar], starts: list[Scalar]) -> None:
        """Combines one window and its update."""
        scatter = self.scatter
        axes = list(zip(scatter.window_axes, scatter.numbers["update_window_dims"], strict=True))
        update = [index(0)] * len(scatter.update_shape)
        for axis, place in zip(scatter.scattered, places, strict=True):
            update[axis] = place

        def nest(axes: list[tuple[int, int]], start: list[Scalar], update: list[Scalar]) -> None:
            if not axes:
                self._combine(tuple(start), tuple(update), 1)
            elif len(axes) == 1 and scatter.row > 1:
                self._row(start, update)
            else:
                axis, own = axes[0]

                def step(i: Scalar) -> None:
                    nest(axes[1:], _moved(start, axis, i), _moved(update, own, i))

                loop(0, scatter.update_shape[own], (), step)

        nest(axes, starts, update)

    def _row(self, start: list[Scalar], update: list[Scalar]) -> None:
        """Combines neighbours."""
        last = len(start) - 1, len(update) - 1

        def step(i: Scalar, width: int) -> None:
            places = _moved(start, last[0], i), _moved(update, last[1], i)
            self._combine(tuple(places[0]), tuple(places[1]), width)

        self.columns.each(step)

    def _combine(self, start: tuple[Scalar, ...], update: tuple[Scalar, ...], width: int) -> None:
        combine = self.scatter.combine
        if width == 1:
            new = self._widened(self.updates[update])
            self.target[start] = combine(self.target[start], new)
        else:
            new = self._widened(self.updates.read(update, width))
            self.target.write(start, combine(self.target.read(start, width), new))

    def _widened(self, x: Scalar) -> Scalar:
        return convert_float(x, self.target.element) if x.is_float else x


def _is_long_sum(operation: ir.Operation, scatter: _Scatter) -> bool:
    """Tells whether much is added to, or multiplied into, few elements that are not double."""
    body = operation.regions[0].blocks[0].operations[0].operation.name
    element = hlo.element_type_of(operation.operands[0])
    if body not in _ROUNDED or not isinstance(element, ir.FloatType) or element.width > _SINGLE:
        return False
    updates = math.prod(scatter.update_shape[axis] for axis in scatter.scattered)
    size = math.prod(scatter.shape)
    return updates > _FEW and math.prod(scatter.update_shape) > 2 * size


def _moved(position: list[Scalar], axis: int, by: Scalar) -> list[Scalar]:
    return [x + by if number == axis else x for number, x in enumerate(position)]


def _components(indices: ir.Value, vector_dim: int) -> list[ir.Value]:
    """Returns the components of index vectors that are put together only for the scatter.

    To put them together, one number after the other, takes as long as the scatter.
    """
    if isinstance(indices, ir.BlockArgument) or indices.owner.name != "stablehlo.concatenate":
        return [indices]
    parts = list(indices.owner.operands)
    dimension = ir.IntegerAttr(indices.owner.attributes["dimension"]).value
    is_single = all(hlo.shape_of(x)[vector_dim] == 1 for x in parts)
    return parts if dimension == vector_dim and is_single else [indices]


def _bytes_of(value: ir.Value) -> int:
    return math.prod(hlo.shape_of(value)) * -(-hlo.element_type_of(value).width // 8)


def _is_in_loop(made: ir.Operation) -> bool:
    parent = made.parent
    while parent is not None and parent.name != "stablehlo.while":
        parent = parent.parent
    return parent is not None


def _is_made_for_one(value: ir.Value) -> bool:
    """Tells whether a value is the result of a kernel, and used once."""
    is_result = not isinstance(value, ir.BlockArgument) and value.owner.name == "flow.dispatch"
    return is_result and len(list(value.uses)) == 1
