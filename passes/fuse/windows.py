"""Windows in a kernel: reductions of sliding windows, and convolutions.

The array is copied to memory with the padding between and around its elements, so that a window
needs no checks for borders. Sums run over the positions in the window, for as many neighbours along
the last axis of the result as a vector holds. Elsewhere: running reductions, with windows that grow
along an axis (`reductions.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from iree.compiler import ir

from axir.dialect.builders.kernels import Memory, loops_in_blocks
from axir.dialect.builders.scalars import (
    Scalar,
    broadcast,
    constant,
    convert_float,
    float32,
    fused_multiply_add,
    index,
    operation,
    signless,
)
from axir.passes.legalize.attributes import Convolution
from axir.passes.legalize.windows.position_select_and_scatter import entries
from axir.passes.legalize.windows.running_reductions import running_axis

from . import reductions
from .elementwise import combine
from .emitter import Emitter, Rule, lanes_for
from .updates import padded
from .values import (
    Index,
    Indices,
    Number,
    Value,
    elements_apart,
    lanes_of,
    plus,
    times,
)

Place = Callable[[Indices], Indices]


def _spread(
    emitter: Emitter,
    x: Value,
    padding: Sequence[Sequence[int]],
    dilations: Sequence[int],
    filling: Scalar,
) -> Value:
    """Returns an array with padding around it and between its elements."""
    if all(list(pair) == [0, 0] for pair in padding) and all(n == 1 for n in dilations):
        return emitter.settled(x)
    shape = [
        low + max(0, (extent - 1) * dilation + 1) + high
        for extent, (low, high), dilation in zip(x.shape, padding, dilations, strict=True)
    ]
    low = [pair[0] for pair in padding]
    return padded(emitter, x, Number((), filling), low, [n - 1 for n in dilations], shape)


# Reductions -------------------------------------------------------------------------------------


def _reduce_window(
    emitter: Emitter, created: ir.Operation, operands: list[Value]
) -> Sequence[Value]:
    if running_axis(created) is not None:
        return reductions.RUNNING_RULES[created.name](emitter, created, operands)
    count = len(operands) // 2
    windows = Windows(created)
    starts = [init.at((), None) for init in operands[count:]]
    between = entries(created, "base_dilations", [1] * windows.rank)
    inputs = [
        _spread(emitter, x, windows.padding, between, start)
        for x, start in zip(operands[:count], starts, strict=True)
    ]
    results = [
        emitter.allocate(list(x.type.shape), signless(x.type.element_type)) for x in created.results
    ]

    def write(position: Indices, lanes: int | None) -> None:
        windows.write([x.memory for x in results], inputs, starts, [position], lanes)

    emitter.each(results[0].shape, write, lanes_for(windows.widest), may_repeat=True)
    return results


class Windows:
    """A reduction of sliding windows.

    Args:
        created: The operation.
    """

    def __init__(self, created: ir.Operation):
        self._created = created
        self.rank = created.results[0].type.rank
        ones = [1] * self.rank
        self._window = entries(created, "window_dimensions", ones)
        self._strides = entries(created, "window_strides", ones)
        self._dilations = entries(created, "window_dilations", ones)
        self.padding = entries(created, "padding", [[0, 0]] * self.rank)
        elements = [signless(x.type.element_type) for x in created.results]
        self.widest = max(elements, key=lambda element: element.width)

    def write(
        self,
        results: Sequence[Memory],
        inputs: Sequence[Value],
        starts: Sequence[Scalar],
        places: Sequence[Indices],
        lanes: int | None,
    ) -> None:
        """Writes neighbours of the results, at several places side by side.

        Args:
            results: The memory of the results.
            inputs: The arrays, with padding around them.
            starts: The initial values.
            places: Positions of first neighbours.
            lanes: How many neighbours there are, along the last axis.
        """
        count = len(results)

        def combined(x: Sequence[Scalar], y: Sequence[Scalar]) -> list[Scalar]:
            groups = range(0, len(x), count)
            return [
                z
                for n in groups
                for z in combine(self._created, [*x[n : n + count], *y[n : n + count]])
            ]

        def step(offset: Indices, totals: Sequence[Scalar]) -> list[Scalar]:
            def place(p: Indices) -> Indices:
                return tuple(
                    plus(times(p[d], self._strides[d]), times(offset[d], self._dilations[d]))
                    for d in range(self.rank)
                )

            along_row = self._strides[-1] if self.rank else None
            read = [
                _read(x, place, position, lanes, along_row) for position in places for x in inputs
            ]
            return combined(totals, read)

        ranges = [(0, extent, 1) for extent in self._window]
        begin = [broadcast(start, lanes) for start in starts] * len(places)
        found = iter(loops_in_blocks(ranges, begin, step, combined))
        for position in places:
            for result in results:
                _write(result, position, next(found), lanes)


def _read(
    x: Value, place: Place, position: Indices, lanes: int | None, stride: int | None
) -> Scalar:
    """Reads the elements for neighbours of the result; they are `stride` apart along a row."""
    if lanes is None:
        return x.at(place(position), None)
    if stride == 0:
        return broadcast(x.at(place(position), None), lanes)
    if stride == 1:
        return x.at(place(position), lanes)
    return elements_apart(x, [place(p) for p in lanes_of(position, lanes)])


def _write(result: Memory, position: Indices, x: Scalar, lanes: int | None) -> None:
    if lanes is None:
        result[position] = x
    else:
        result.write(position, x)


# Convolutions -----------------------------------------------------------------------------------


class Products:
    """A convolution: the positions of the factors of a result's element, and their sum.

    Args:
        created: The operation.
        shapes: Shapes of its operands.
    """

    def __init__(self, created: ir.Operation, shapes: Sequence[Sequence[int]]):
        self.numbers = numbers = Convolution.read(created)
        self.lhs_shape, self.rhs_shape = shapes
        self.shape = list(created.results[0].type.shape)
        self.channels = self.rhs_shape[numbers.rhs[1]]
        self.window = [self.rhs_shape[d] for d in numbers.rhs[2:]]
        features = self.shape[numbers.result[1]]
        self.features_of_group = features // max(numbers.feature_groups, numbers.batch_groups)
        self.batches = self.lhs_shape[numbers.lhs[0]] // numbers.batch_groups
        self.element = signless(created.results[0].type.element_type)
        is_half = isinstance(self.element, ir.FloatType) and self.element.width < 32
        self.wide = float32() if is_half else self.element

    @property
    def ranges(self) -> list[tuple[int, int, int]]:
        """Ranges that are summed over: channels, and positions in the window."""
        return [(0, extent, 1) for extent in (self.channels, *self.window)]

    @property
    def padding(self) -> list[list[int]]:
        """Padding of the left operand, by axis."""
        return self._of_lhs([0, 0], self.numbers.padding)

    @property
    def dilations(self) -> list[int]:
        """The distances of elements of the left operand, by axis."""
        return self._of_lhs(1, self.numbers.lhs_dilation)

    def _of_lhs(self, other: object, spatial: Sequence[object]) -> list:
        found = [other] * len(self.lhs_shape)
        for axis, value in zip(self.numbers.lhs[2:], spatial, strict=True):
            found[axis] = value
        return found

    def lhs_place(self, position: Indices, k: Indices) -> Indices:
        """Returns the position of the left factor in the padded array."""
        numbers = self.numbers
        batch, feature, *spatial = (position[d] for d in numbers.result)
        channel, *offsets = k
        group = _divided(feature, self.features_of_group)
        if numbers.batch_groups > 1:
            batch = _sum(batch, group, self.batches)
        elif numbers.feature_groups > 1:
            channel = _sum(channel, group, self.channels)
        found: list[Index] = [0] * len(position)
        found[numbers.lhs[0]], found[numbers.lhs[1]] = batch, channel
        for number, axis in enumerate(numbers.lhs[2:]):
            along = times(spatial[number], numbers.strides[number])
            found[axis] = plus(along, times(offsets[number], numbers.rhs_dilation[number]))
        return tuple(found)

    def rhs_place(self, position: Indices, k: Indices) -> Indices:
        """Returns the position of the right factor."""
        numbers = self.numbers
        channel, *offsets = k
        found: list[Index] = [0] * len(position)
        found[numbers.rhs[0]] = position[numbers.result[1]]
        found[numbers.rhs[1]] = channel
        for number, axis in enumerate(numbers.rhs[2:]):
            offset = offsets[number]
            if numbers.reversal[number]:
                offset = plus(times(offset, -1), self.window[number] - 1)
            found[axis] = offset
        return tuple(found)

    def steps(self) -> tuple[int | None, int | None]:
        """Returns the strides of neighbours' factors in rows of both operands; None: irregular."""
        numbers, last = self.numbers, len(self.shape) - 1
        if numbers.result[1] == last:
            grouped = numbers.feature_groups > 1 or numbers.batch_groups > 1
            return None if grouped else 0, 1 if numbers.rhs[0] == last else None
        if numbers.result[0] == last:
            return 1 if numbers.lhs[0] == last and numbers.batch_groups == 1 else None, 0
        number = numbers.result.index(last) - 2
        is_row = numbers.lhs[2 + number] == last and numbers.strides[number] == 1
        return 1 if is_row else None, 0

    def write(
        self,
        result: Memory,
        lhs: Value,
        rhs: Value,
        places: Sequence[Indices],
        lanes: int | None,
    ) -> None:
        """Writes neighbours of the result, along its last axis, at several places side by side.

        Args:
            result: The memory of the result.
            lhs: The left operand, with padding around its elements and between them.
            rhs: The right operand.
            places: Positions of first neighbours.
            lanes: How many neighbours there are.
        """
        is_float = isinstance(self.element, ir.FloatType)
        lhs_step, rhs_step = self.steps()

        def added(total: Scalar, position: Indices, k: Indices) -> Scalar:
            x = _read(lhs, lambda p: self.lhs_place(p, k), position, lanes, lhs_step)
            y = _read(rhs, lambda p: self.rhs_place(p, k), position, lanes, rhs_step)
            x, y = self._widened(x), self._widened(y)
            return fused_multiply_add(x, y, total) if is_float else total + x * y

        def step(k: Indices, totals: Sequence[Scalar]) -> list[Scalar]:
            return [
                added(total, position, k) for total, position in zip(totals, places, strict=True)
            ]

        starts = [broadcast(constant(0, self.wide), lanes)] * len(places)
        found = loops_in_blocks(self.ranges, starts, step, _sums)
        for position, total in zip(places, found, strict=True):
            whole = convert_float(total, self.element) if is_float else total
            _write(result, position, whole, lanes)

    def _widened(self, x: Scalar) -> Scalar:
        if x.element == self.wide:
            return x
        if isinstance(self.wide, ir.FloatType):
            return convert_float(x, self.wide)
        return operation("arith.extsi", (x,), x.like(self.wide))


def _sums(x: Sequence[Scalar], y: Sequence[Scalar]) -> list[Scalar]:
    return [first + second for first, second in zip(x, y, strict=True)]


def _sum(x: Index, group: Index, extent: int) -> Index:
    return plus(x, times(group, extent))


def _divided(x: Index, by: int) -> Index:
    if isinstance(x, int):
        return x // by
    return x if by == 1 else operation("arith.divui", (x, index(by)), x.type)


def _convolution(emitter: Emitter, created: ir.Operation, operands: list[Value]) -> Sequence[Value]:
    products = Products(created, [x.shape for x in operands])
    zero = constant(0, operands[0].element)
    lhs = _spread(emitter, operands[0], products.padding, products.dilations, zero)
    rhs = emitter.settled(operands[1])
    result = emitter.allocate(products.shape, products.element)

    def write(position: Indices, lanes: int | None) -> None:
        products.write(result.memory, lhs, rhs, [position], lanes)

    emitter.each(products.shape, write, lanes_for(products.wide), may_repeat=True)
    return [result]


def work(created: ir.Operation) -> int:
    """Returns the number of scalar operations of windows."""
    size = math.prod(created.results[0].type.shape)
    if created.name == "stablehlo.convolution":
        numbers = Convolution.read(created)
        extents = list(created.operands[1].type.shape)
        return size * math.prod(extents) // max(1, extents[numbers.rhs[0]])
    if running_axis(created) is not None:
        return size
    return size * math.prod(entries(created, "window_dimensions", [1]))


RULES: dict[str, Rule] = {
    "stablehlo.convolution": _convolution,
    "stablehlo.reduce_window": _reduce_window,
}
