"""Values of a kernel as code: numbers at once, blocks when something needs their elements.

A block is a function of a place, which gives an element, or a vector of neighbours along the last
axis. Blocks read immutable memory only, so it does not matter when they are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import expressions
from axir.dialect.builders.kernels import (
    each,
    largest_lane,
    loop,
    smallest_lane,
    sum_of_lanes,
)
from axir.dialect.builders.scalars import (
    Scalar,
    broadcast,
    constant,
    convert_float,
    integer,
    operation,
    to_float,
)
from axir.dialect.core.annotations import AnyDtype
from axir.dialect.core.types import element_type

from .values import KernelValue

Place: TypeAlias = tuple[Scalar, ...]
_VECTOR_BYTES = 64
_MOST_LANES = 16


class Evaluation:
    """What is known of a place while a block is computed there; each part of it is once.

    Args:
        place: The indices.
        lanes: How many neighbours along the last axis; None for a single element.
    """

    def __init__(self, place: Place, lanes: int | None):
        self.place = place
        self.lanes = lanes
        self._made: dict[int, Scalar] = {}

    def of(self, block: Compiled) -> Scalar:
        """Returns a block's element, or vector, at the place."""
        if isinstance(block.value, Scalar):
            return broadcast(block.value, self.lanes)
        found = self._made.get(id(block))
        if found is None:
            found = self._made[id(block)] = block.value(self)
        return found


Code: TypeAlias = Scalar | Callable[[Evaluation], Scalar]


class Compiled(KernelValue[Code]):
    """A number, or a block.

    Args:
        value: The number, or what computes the block.
        dtype: Of the numbers.
        shape: Of the block.
        is_contiguous: Whether neighbours along the last axis can be had as vectors.
        ends: The least and the largest value that a number can have, if that is known.
    """

    __slots__ = ("ends", "is_contiguous")

    def __init__(
        self,
        value: Code,
        dtype: AnyDtype,
        shape: tuple[int, ...] = (),
        is_contiguous: bool = True,
        ends: tuple[int, int] | None = None,
    ):
        super().__init__(value, dtype, shape)
        self.is_contiguous = is_contiguous
        self.ends = ends

    @property
    def scalar(self) -> Scalar:
        """The number."""
        assert isinstance(self.value, Scalar)
        return self.value

    @property
    def lanes(self) -> int | None:
        """How many numbers of the last axis are computed at once; None for one."""
        if not self.is_contiguous:
            return None
        fits = min(_MOST_LANES, _VECTOR_BYTES // self.dtype.itemsize, self.shape[-1])
        return 1 << (fits.bit_length() - 1) if fits > 1 else None

    def number(self, number: complex, dtype: AnyDtype) -> Compiled:
        """Returns a constant."""
        return number_of(number, dtype)

    def build(
        self, name: str, operands: tuple[KernelValue[Code], ...], dtype: AnyDtype
    ) -> Compiled:
        """Returns an operation, or a block that stands for it."""
        blocks = [x for x in operands if isinstance(x, Compiled)]
        shape = next((x.shape for x in blocks if x.shape), ())
        if not shape:
            return Compiled(_operation(name, [x.scalar for x in blocks], dtype), dtype)
        return Compiled(
            lambda where: _operation(name, [where.of(x) for x in blocks], dtype),
            dtype,
            shape,
            all(x.is_contiguous for x in blocks),
        )

    def reduced(self, name: str) -> Compiled:
        """Returns a number that loops compute."""
        if not self.shape:
            return self
        start = number_of(_neutral(name, self.dtype), self.dtype).scalar
        lanes = self.lanes or 1
        extent = self.shape[-1]
        whole = extent // lanes * lanes

        def row(*place: Scalar) -> tuple[Scalar, Scalar]:
            *outer, vector, rest = place
            if self.lanes:
                vector = loop(
                    0, whole, vector, lambda j, total: _combined(
                        name, total, Evaluation((*outer, j), lanes).of(self)), stride=lanes,
                )  # fmt: skip
            first = whole if self.lanes else 0
            rest = loop(
                first, extent, rest,
                lambda j, total: _combined(name, total, Evaluation((*outer, j), None).of(self)),
            )  # fmt: skip
            return vector, rest

        def nest(extents: Sequence[int], outer: Place, state: Place) -> Place:
            if not extents:
                return row(*outer, *state)
            return loop(
                0, extents[0], state, lambda i, *state: nest(extents[1:], (*outer, i), state)
            )

        vector, rest = nest(self.shape[:-1], (), (broadcast(start, lanes), start))
        joined = {"sum": sum_of_lanes, "max": largest_lane, "min": smallest_lane}[name](vector)
        return Compiled(_combined(name, joined, rest), self.dtype)


def number_of(number: complex, dtype: AnyDtype) -> Compiled:
    """Returns a constant."""
    ends = (int(number.real),) * 2 if dtype.kind == "i" else None
    return Compiled(constant(number, element_type(dtype)), dtype, ends=ends)


def store_block(
    shape: tuple[int, ...], block: Compiled, lanes: int | None, put: Callable[[Place, Scalar], None]
) -> None:
    """Computes all elements of a block (or a number everywhere); `put` gets each, or vectors."""

    def nest(extents: tuple[int, ...], outer: Place) -> None:
        if len(extents) > 1:
            each(0, extents[0])(lambda i: nest(extents[1:], (*outer, i)))
            return
        whole = extents[0] // lanes * lanes if lanes else 0

        def piece(width: int | None) -> Callable[[Scalar], None]:
            return lambda j: put((*outer, j), Evaluation((*outer, j), width).of(block))

        if lanes:
            each(0, whole, lanes)(piece(lanes))
        if whole < extents[0]:
            each(whole, extents[0])(piece(None))

    nest(shape, ())


# Operations ------------------------------------------------------------------------------------

_OPERATORS: dict[str, Callable[..., Scalar]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y, "neg": lambda x: -x, "abs": abs,
    "and": lambda x, y: x & y, "or": lambda x, y: x | y, "not": lambda x: ~x,
    "EQ": lambda x, y: x == y, "NE": lambda x, y: x != y, "LT": lambda x, y: x < y,
    "LE": lambda x, y: x <= y, "GT": lambda x, y: x > y, "GE": lambda x, y: x >= y,
    "select": expressions.select, "power": expressions.power,
}  # fmt: skip


def _operation(name: str, operands: list[Scalar], dtype: AnyDtype) -> Scalar:
    if name == "convert":
        return _converted(operands[0], dtype)
    if name == "floordiv":
        return _floordiv(*operands)
    if name == "mod":
        x, y = operands
        return expressions.select(y == 0, x, x - y * _floordiv(x, y))
    if name in _OPERATORS:
        return _OPERATORS[name](*operands)
    return getattr(expressions, name)(*operands)


def _floordiv(x: Scalar, y: Scalar) -> Scalar:
    """Returns the quotient, 0 for a divisor of 0; what traps is not computed."""
    is_negation = y == -1
    safe = expressions.select(is_negation | (y == 0), 1, y)
    quotient = operation("arith.divsi", (x, safe))
    # Rounded to zero: one too many where the signs differ and something is left.
    left = x - quotient * safe
    is_below = (left != 0) & ((left < 0) != (safe < 0))
    floored = expressions.select(is_below, quotient - 1, quotient)
    return expressions.select(y == 0, 0, expressions.select(is_negation, 0 - x, floored))


def _converted(x: Scalar, dtype: AnyDtype) -> Scalar:
    element = element_type(dtype)
    if dtype == np.bool_:
        return x != 0
    if x.is_float and isinstance(element, ir.FloatType):
        return convert_float(x, element)
    if not x.is_float:
        is_truth = x.width == 1
        if isinstance(element, ir.FloatType):
            whole = operation("arith.extui", (x,), x.like(integer(32))) if is_truth else x
            return to_float(whole, element)
        if x.width > element.width:
            return operation("arith.trunci", (x,), x.like(element))
        return operation("arith.extui" if is_truth else "arith.extsi", (x,), x.like(element))
    return _saturated(x, element)


def _saturated(x: Scalar, element: ir.Type) -> Scalar:
    end = 2.0 ** (element.width - 1)
    # The ends of wide integers are beyond float16, where none of its numbers is but infinities.
    wide = convert_float(x, ir.F32Type.get()) if x.width == 16 else x
    is_inside = (wide >= -end) & (wide < end)
    safe = expressions.select(is_inside, wide, 0.0)
    found = operation("arith.fptosi", (safe,), wide.like(element))
    most = constant(int(end) - 1, wide.like(element))
    found = expressions.select(wide >= end, most, found)
    return expressions.select(wide < -end, constant(-int(end), wide.like(element)), found)


def _neutral(name: str, dtype: AnyDtype) -> complex:
    if name == "sum":
        return 0
    sign = -1 if name == "max" else 1
    if dtype.kind != "i":
        return sign * np.inf
    ends = np.iinfo(dtype)
    return int(ends.min if name == "max" else ends.max)


def _combined(name: str, x: Scalar, y: Scalar) -> Scalar:
    if name == "sum":
        return x + y
    if x.is_float and x.width == 16:
        # IREE widens maxima of halves, too, and forgets that there are many.
        wide = (convert_float(half, ir.F32Type.get()) for half in (x, y))
        return convert_float(_combined(name, *wide), x.element)
    kind = "imumf" if x.is_float else "si"
    return operation(f"arith.{name}{kind}", (x, y))
