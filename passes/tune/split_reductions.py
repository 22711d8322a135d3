"""`split-reductions`: large reductions in stages that run side by side and read memory in order."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.annotations import Dtype
from axir.dialect.core.types import numpy_dtype
from axir.passes.legalize.rewriting import RewritePass
from axir.passes.legalize.windows.position_select_and_scatter import copied_body

_COMBINE: dict[str, Callable[[ir.Value, ir.Value], ir.Value]] = {
    "stablehlo.add": hlo.add,
    "stablehlo.multiply": hlo.multiply,
    "stablehlo.maximum": hlo.maximum,
    "stablehlo.minimum": hlo.minimum,
}
# Operations with an error that grows with the numbers that are combined one after the other.
_ROUNDED = ("stablehlo.add", "stablehlo.multiply")
# So many numbers may be combined one after the other, and so many in a row, in vectors.
_LONGEST = 256
_LONGEST_ROW = 4096
# The operations that reduce booleans written as the numbers 0 and 1.
_OF_TRUTHS = {"stablehlo.or": "stablehlo.maximum", "stablehlo.and": "stablehlo.minimum"}
# The numbers of parts into which a stage divides the rows of a matrix.
_ROW_PARTS = (8, 16, 10, 12, 20, 24)
# The same for one long row: enough parts for all cores, of many whole vectors.
_ELEMENT_PARTS = (64, 128, 32, 96, 80, 40, 100, 50, 125)
_VECTOR = 16
# Operations with a separate loop nest, which is not repeated for every stage of a reduction.
_NESTS = frozenset(
    f"stablehlo.{name}"
    for name in "reduce dot_general convolution reduce_window scatter gather sort while".split()
)
# How many operations are searched for such an operation.
_SEARCHED = 64
# A last axis this long is worth a separate stage.
_LONG_ROW = 512


@dataclasses.dataclass(frozen=True)
class SplitReductions(RewritePass):
    """Reduces a large array in stages.

    The facts: IREE computes one element of the result after the other, each on one core. For a sum
    down the columns of a row-major matrix it reads a strip of a few columns at a time, one element
    in a page. The sum of a whole array runs on a single core. It reduces booleans one by one: `any`
    of a million took 880 us, counting them took 50 us.

    1. Take reductions of one operand by add, multiply, maximum or minimum, or of booleans by `or`
       and `and`, which become maxima and minima of 0 and 1. The reduced axes must be adjacent,
       which gives a shape [outer, reduced, inner], with at least `elements` elements for each outer
       index.
    2. Where inner is 1 and there are few rows, reduce the last axis first, or if it is the only
       one, divide it into 64 parts and reduce each part; then reduce the results.
    3. Else divide the reduced rows into 8 blocks (or another number that divides them) and add the
       blocks to each other, which reads 8 streams in order. Repeat this with the result until it is
       small, then reduce it with the original initial value.
    4. Compute the operand beforehand (an optimization barrier) if it has other uses or reads the
       result of a reduction, contraction or the like: fused into the first stage, such a
       computation would run in the stage's order, which jumps through memory.
    5. If no number of parts fits, reduce the rest separately and combine the two results.
    6. Sums and products of more than 256 floats down columns, or 4,096 in a row, also of complex
       numbers and by other computations, run in blocks of so many numbers, and the results of the
       blocks in blocks again (`dialect/builders/kernels/blocks.py` says why).

    Before::

        %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0]
            : (tensor<4096x1024xf32>, tensor<f32>) -> tensor<1024xf32>

    After::

        %1 = stablehlo.reshape %0 : (tensor<4096x1024xf32>) -> tensor<8x512x1024xf32>
        %2 = stablehlo.reduce(%1 init: %zero) … dimensions = [0] : … -> tensor<512x1024xf32>
        %3 = stablehlo.reshape %2 : (tensor<512x1024xf32>) -> tensor<8x64x1024xf32>
        %4 = stablehlo.reduce(%3 init: %zero) … dimensions = [0] : … -> tensor<64x1024xf32>
        %5 = stablehlo.reduce(%4 init: %c) … dimensions = [0] : … -> tensor<1024xf32>

    Measured, processor time relative to JAX before and after: 4096x1024 over axis 0 4.7 and 0.6,
    4096x4096 2.8 and 0.4, 100000x32 3.8 and 0.9, 2^20x8 3.0 and 0.5, 65536x256 1.0 and 0.4;
    1,000,003 numbers to a scalar 4.3 and 1.1. Sums become more accurate, as fewer numbers are added
    in a row.
    """

    name: ClassVar[str] = "split-reductions"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce",)
    elements: int = 1 << 19
    stop: int = 1 << 17

    def rewrite(self, operation: ir.Operation) -> ir.Value | list[ir.Value] | None:
        """Builds the stages."""
        name = _body_name(operation)
        if name is None:
            return _in_blocks(operation)
        operand, init = operation.operands
        axes = sorted(operation.attributes["dimensions"])
        shape = hlo.shape_of(operand)
        is_contiguous = bool(axes) and axes == list(range(axes[0], axes[-1] + 1))
        if not is_contiguous:
            return None
        is_rounded = name in _ROUNDED and not isinstance(
            hlo.element_type_of(operand), ir.IntegerType
        )
        is_large = math.prod(shape[axes[0] :]) >= self.elements
        is_long = is_rounded and math.prod(shape[axes[0] : axes[-1] + 1]) > _LONGEST
        if not is_large and not is_long:
            return None
        word = ir.IntegerType.get_signless(32)
        if name in _OF_TRUTHS:
            name, operand, init = (
                _OF_TRUTHS[name],
                hlo.convert(operand, word),
                hlo.convert(init, word),
            )
        reduction = _Reduction(_COMBINE[name], _identity(name, operand), init, is_rounded)
        result = (
            self._reduced(reduction, operand, axes) if is_large else reduction.last(operand, axes)
        )
        return (
            None
            if result is None
            else hlo.convert(result, hlo.element_type_of(operation.results[0]))
        )

    def _reduced(
        self, reduction: _Reduction, operand: ir.Value, axes: list[int]
    ) -> ir.Value | None:
        if axes[-1] == len(hlo.shape_of(operand)) - 1:
            length = math.prod(hlo.shape_of(operand)[axes[0] :])
            if reduction.is_rounded and length > _LONGEST_ROW:
                return reduction.last(operand, axes)
            return _reduce_rows(reduction, operand, axes)
        if _is_shared(operand):
            operand = hlo.optimization_barrier(operand)[0]
        return self._reduce_columns(reduction, operand, axes)

    def _reduce_columns(
        self, reduction: _Reduction, operand: ir.Value, axes: list[int]
    ) -> ir.Value | None:
        first, stages = axes[0], 0
        while math.prod(hlo.shape_of(operand)[first:]) > self.stop:
            shape = hlo.shape_of(operand)
            before, after = shape[:first], shape[axes[-1] + 1 :]
            rows = math.prod(shape[first : axes[-1] + 1])
            parts = next((n for n in _ROW_PARTS if rows % n == 0 and rows > n), 0)
            if len(axes) > 1 and shape[first] in _ROW_PARTS:
                operand, axes = reduction.stage(operand, first), axes[:-1]
            elif parts:
                blocks = hlo.reshape(operand, (*before, parts, rows // parts, *after))
                operand, axes = reduction.stage(blocks, first), [first]
            elif rows > 2 * _ROW_PARTS[0]:
                flat = hlo.reshape(operand, (*before, rows, *after))
                even = rows - rows % _ROW_PARTS[0]
                whole = self._reduce_columns(reduction, _part(flat, first, 0, even), [first])
                return reduction.with_rest(whole, _part(flat, first, even, rows), first)
            else:
                break
            stages += 1
        return reduction.last(operand, axes) if stages else None


@dataclasses.dataclass(frozen=True)
class _Reduction:
    """The combiner of a reduction, its neutral element, its initial value, and whether its error
    grows with the number of elements that are combined one after the other.
    """

    combine: Callable[[ir.Value, ir.Value], ir.Value]
    identity: ir.Value
    init: ir.Value
    is_rounded: bool

    def stage(self, operand: ir.Value, axis: int) -> ir.Value:
        """Reduces one axis in a stage that others follow."""
        return hlo.reduce([operand], [self.identity], [axis], self.combine)[0]

    def last(self, operand: ir.Value, axes: list[int]) -> ir.Value:
        """Reduces the remaining axes, in blocks of blocks, with the original initial value."""
        shape, first = hlo.shape_of(operand), axes[0]
        rows = math.prod(shape[first : axes[-1] + 1])
        before, after = shape[:first], shape[axes[-1] + 1 :]
        longest = _LONGEST if after else _LONGEST_ROW
        if not self.is_rounded or rows <= longest:
            return hlo.reduce([operand], [self.init], axes, self.combine)[0]
        size = _block_size(rows, longest)
        flat = hlo.reshape(operand, (*before, rows, *after))
        even = rows - rows % size
        blocks = hlo.reshape(_part(flat, first, 0, even), (*before, even // size, size, *after))
        whole = self.last(self.stage(blocks, first + 1), [first])
        if even == rows:
            return whole
        return self.with_rest(whole, _part(flat, first, even, rows), first)

    def with_rest(self, whole: ir.Value, rest: ir.Value, axis: int) -> ir.Value:
        """Combines a result with the elements that it left out."""
        return self.combine(whole, self.stage(rest, axis))


def _in_blocks(operation: ir.Operation) -> list[ir.Value] | None:
    """Builds a long reduction of floats by any computation in blocks of blocks. Each block begins
    with the initial values, as StableHLO allows.
    """
    axes = sorted(operation.attributes["dimensions"])
    arrays, inits = _halves(operation)
    shape = hlo.shape_of(arrays[0])
    is_contiguous = bool(axes) and axes == list(range(axes[0], axes[-1] + 1))
    rows = math.prod(shape[axis] for axis in axes)
    *inner, _ = operation.regions[0].blocks[0].operations
    is_rounded = any(view.operation.name in _ROUNDED for view in inner)
    if (
        not is_contiguous
        or not is_rounded
        or rows <= _LONGEST
        or not any(map(hlo.is_float, arrays))
    ):
        return None
    body = copied_body(operation.regions[0])
    before, after = shape[: axes[0]], shape[axes[-1] + 1 :]
    axis = axes[0]
    arrays = [hlo.reshape(x, (*before, rows, *after)) for x in arrays]
    while rows > _LONGEST:
        size = _block_size(rows, _LONGEST)
        even = rows - rows % size
        blocked = (*before, even // size, size, *after)
        found = hlo.reduce(
            [hlo.reshape(_part(x, axis, 0, even), blocked) for x in arrays], inits, [axis + 1], body
        )
        rows, rest = even // size, [_part(x, axis, even, rows) for x in arrays]
        if even < hlo.shape_of(arrays[0])[axis]:
            rest = hlo.reduce(rest, inits, [axis], body)
            ends = [hlo.reshape(x, (*before, 1, *after)) for x in rest]
            found = [hlo.concatenate(pair, axis) for pair in zip(found, ends, strict=True)]
            rows += 1
        arrays = found
    return hlo.reduce(arrays, inits, [axis], body)


def _halves(operation: ir.Operation) -> tuple[list[ir.Value], list[ir.Value]]:
    """Returns the arrays that are reduced, and the initial values."""
    values = list(operation.operands)
    count = len(values) // 2
    return values[:count], values[count:]


def _block_size(rows: int, longest: int) -> int:
    """Returns the length of blocks, which divides the rows if possible."""
    sizes = range(longest, longest // 4, -1)
    vectors = [n for n in sizes if n % _VECTOR == 0]
    return next((n for n in (*vectors, *sizes) if rows % n == 0), longest)


def _reduce_rows(reduction: _Reduction, operand: ir.Value, axes: list[int]) -> ir.Value | None:
    """Reduces the last axes of few rows in two stages."""
    shape = hlo.shape_of(operand)
    outer, length = math.prod(shape[: axes[0]]), math.prod(shape[axes[0] :])
    if outer >= _ELEMENT_PARTS[0]:
        return None
    last = shape[-1]
    if len(axes) > 1 and last >= _LONG_ROW and outer * length // last >= _VECTOR:
        return reduction.last(reduction.stage(operand, axes[-1]), axes[:-1])
    axis = axes[0]
    flat = hlo.reshape(operand, (*shape[:axis], length))
    divisors = [n for n in _ELEMENT_PARTS if length % (n * _VECTOR) == 0]
    parts = divisors[0] if divisors else _ELEMENT_PARTS[0]
    size = length // (parts * _VECTOR) * _VECTOR
    even = parts * size
    if not size:
        return None
    blocks = hlo.reshape(_part(flat, axis, 0, even), (*shape[:axis], parts, size))
    whole = reduction.last(reduction.stage(blocks, axis + 1), [axis])
    if even == length:
        return whole
    return reduction.with_rest(whole, _part(flat, axis, even, length), axis)


def _is_shared(value: ir.Value) -> bool:
    """Tells whether a value has several uses, or depends on the result of a loop nest."""
    if len(list(value.uses)) > 1:
        return not isinstance(value, ir.BlockArgument)
    pending = [value]
    seen: set[ir.Value] = set()
    while pending and len(seen) < _SEARCHED:
        value = pending.pop()
        if isinstance(value, ir.BlockArgument) or value in seen:
            continue
        seen.add(value)
        if value.owner.name in _NESTS:
            return True
        pending.extend(value.owner.operands)
    return False


def _part(operand: ir.Value, axis: int, start: int, limit: int) -> ir.Value:
    """Returns the elements from `start` to `limit` along an axis."""
    shape = list(hlo.shape_of(operand))
    if (start, limit) == (0, shape[axis]):
        return operand
    starts, limits = [0] * len(shape), shape
    starts[axis], limits[axis] = start, limit
    return hlo.slice(operand, starts, limits)


def _body_name(reduce: ir.Operation) -> str | None:
    """Returns the name of the operation in the region of a reduction of one operand, if it can be
    split into stages.
    """
    if len(reduce.operands) != 2:
        return None
    element = hlo.element_type_of(reduce.operands[0])
    is_truth = isinstance(element, ir.IntegerType) and element.width == 1
    is_real = hlo.is_float(reduce.operands[0]) or isinstance(element, ir.IntegerType)
    if not is_real and not hlo.is_complex(reduce.operands[0]):
        return None
    block = reduce.regions[0].blocks[0]
    operations = list(block.operations)
    if len(operations) != 2:
        return None
    body, terminator = (operation.operation for operation in operations)
    is_plain = list(terminator.operands) == list(body.results) and (
        set(body.operands) == set(block.arguments)
    )
    known = _OF_TRUTHS if is_truth else _COMBINE if is_real else _ROUNDED
    return body.name if is_plain and body.name in known else None


def _identity(name: str, operand: ir.Value) -> ir.Value:
    """Returns the neutral element, of rank 0."""
    element = hlo.element_type_of(operand)
    return hlo.full(_identity_number(name, numpy_dtype(element)), (), element)


def _identity_number(name: str, dtype: Dtype) -> float:
    if name in ("stablehlo.add", "stablehlo.multiply"):
        return 0 if name == "stablehlo.add" else 1
    is_maximum = name == "stablehlo.maximum"
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if is_maximum else np.iinfo(dtype).max
    return -np.inf if is_maximum else np.inf
