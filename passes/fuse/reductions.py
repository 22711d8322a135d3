"""Reductions in a kernel: sums over axes in vectors, others element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iree.compiler import ir

from axir.dialect.builders.kernels import combined_lanes, is_short, loops_in_blocks
from axir.dialect.builders.scalars import Scalar, broadcast, constant
from axir.passes.legalize.regions import operations_of

from .elementwise import combine, formula_of, reducer_of
from .emitter import Emitter, Rule, lanes_for, pieces
from .values import Index, Indices, Number, Value, bytes_of

_FLOAT_KINDS = {"add": "add", "multiply": "mul", "maximum": "maximumf", "minimum": "minimumf"}
_INTEGER_KINDS = {
    "add": "add",
    "multiply": "mul",
    "maximum": "maxsi",
    "minimum": "minsi",
    "and": "and",
    "or": "or",
    "xor": "xor",
}

Combine = Callable[[Scalar, Scalar], Scalar]


def _reduce(emitter: Emitter, created: ir.Operation, operands: list[Value]) -> Sequence[Value]:
    count = len(operands) // 2
    inputs, inits = operands[:count], operands[count:]
    dims = list(ir.DenseI64ArrayAttr(created.attributes["dimensions"]))
    if not dims:  # also for the evaluator and IREE, what a reduction begins with plays no part then
        return inputs
    kind = _vector_kind(created) if count == 1 else None
    if kind is not None:
        first = operations_of(created)[0][0]
        formula = formula_of(first)
        assert formula is not None
        start = inits[0].at((), None)
        return [_by_vectors(emitter, inputs[0], dims, start, formula, kind)]
    return _by_elements(emitter, created, inputs, inits, dims)


def _vector_kind(created: ir.Operation) -> str | None:
    """Returns what MLIR calls a reduction of a vector, for regions of one operation."""
    name = reducer_of(created)
    element = created.results[0].type.element_type
    if name is None:
        return None
    short = name.removeprefix("stablehlo.")
    if isinstance(element, ir.FloatType):
        return _FLOAT_KINDS.get(short)
    if element.width == 1:
        return {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}.get(
            short, _INTEGER_KINDS.get(short)
        )
    found = _INTEGER_KINDS.get(short)
    if found in ("maxsi", "minsi") and element.is_unsigned:
        return found.replace("si", "ui")
    return found


def _merged(rank: int, dims: Sequence[int], reduced: Indices, kept: Indices) -> Indices:
    of_reduced, of_kept = iter(reduced), iter(kept)
    places: list[Index] = [next(of_reduced if d in dims else of_kept) for d in range(rank)]
    return tuple(places)


def _by_vectors(
    emitter: Emitter, x: Value, dims: list[int], start: Scalar, formula: Combine, kind: str
) -> Value:
    sums = _Sums(x, tuple(dims), start, formula, kind)
    kept = [extent for d, extent in enumerate(x.shape) if d not in dims]
    is_over_rows = len(x.shape) - 1 in dims
    if all(extent == 1 for extent in kept):
        position = (0,) * len(kept)
        return Number(kept, sums.row(position) if is_over_rows else sums.columns(position, None))
    result = emitter.allocate(kept, x.element)

    def write(position: Indices, lanes: int | None) -> None:
        total = sums.columns(position, lanes)
        if lanes is None:
            result.memory[position] = total
        else:
            result.memory.write(position, total)

    def write_row(position: Indices) -> None:
        result.memory[position] = sums.row(position)

    if is_over_rows:
        emitter.nest(kept, write_row)
    else:
        emitter.each(kept, write, x.element)
    return result


@dataclass(frozen=True)
class _Sums:
    """A reduction by one operation, in vectors.

    Attributes:
        x: What is reduced.
        dims: Its dimensions that vanish.
        start: What the result begins with.
        formula: The operation.
        kind: What MLIR calls it.
    """

    x: Value
    dims: tuple[int, ...]
    start: Scalar
    formula: Combine
    kind: str

    def columns(self, position: Indices, lanes: int | None) -> Scalar:
        """Reduces neighbours along the last dimension, which stays, side by side."""
        ranges = [(0, self.x.shape[d], 1) for d in sorted(self.dims)]

        def step(place: Indices, totals: Sequence[Scalar]) -> Sequence[Scalar]:
            return [self.formula(totals[0], self._at(place, position, lanes))]

        start = broadcast(self.start, lanes)
        if is_short(ranges):
            return loops_in_blocks(ranges, [start], step, self._combine)[0]
        neutral = broadcast(_neutral(self.kind, self.x.element), lanes)
        return self.formula(start, loops_in_blocks(ranges, [neutral], step, self._combine)[0])

    def row(self, position: Indices) -> Scalar:
        """Reduces the last dimension, and others, to one number."""
        total = self.start
        outer = [(0, self.x.shape[d], 1) for d in sorted(self.dims)[:-1]]
        for lower, upper, lanes in pieces(self.x.shape[-1], lanes_for(self.x.element)):
            width = None if lanes == 1 else lanes

            def step(
                place: Indices, totals: Sequence[Scalar], width: int | None = width
            ) -> Sequence[Scalar]:
                return [self.formula(totals[0], self._at(place, position, width))]

            neutral = broadcast(_neutral(self.kind, self.x.element), width)
            places = [*outer, (lower, upper, lanes)]
            is_begun = width is None and is_short(places)
            start = total if is_begun else neutral
            [part] = loops_in_blocks(places, [start], step, self._combine)
            if width is not None:
                part = combined_lanes(self.kind, part)
            total = part if is_begun else self.formula(total, part)
        return total

    def _combine(self, x: Sequence[Scalar], y: Sequence[Scalar]) -> Sequence[Scalar]:
        return [self.formula(x[0], y[0])]

    def _at(self, reduced: Indices, kept: Indices, lanes: int | None) -> Scalar:
        return self.x.at(_merged(len(self.x.shape), self.dims, reduced, kept), lanes)


def _neutral(kind: str, element: ir.Type) -> Scalar:
    if isinstance(element, ir.FloatType):
        number = {"add": 0.0, "mul": 1.0, "maximumf": -float("inf"), "minimumf": float("inf")}
        return constant(number[kind], element)
    half = 1 << (element.width - 1)
    integers = {
        "mul": 1,
        "maxsi": -half,
        "minsi": half - 1,
        "minui": -1,
        "and": -1 if element.width > 1 else 1,
    }
    return constant(integers.get(kind, 0), element)


def _by_elements(
    emitter: Emitter,
    created: ir.Operation,
    inputs: list[Value],
    inits: list[Value],
    dims: list[int],
) -> Sequence[Value]:
    shape = inputs[0].shape
    rank = len(shape)
    kept = [extent for d, extent in enumerate(shape) if d not in dims]
    starts = [init.at((), None) for init in inits]

    def totals(position: Indices, lanes: int | None) -> tuple[Scalar, ...]:
        def step(place: Indices, sums: Sequence[Scalar]) -> Sequence[Scalar]:
            whole = _merged(rank, dims, place, position)
            return combine(created, [*sums, *(x.at(whole, lanes) for x in inputs)])

        def add(x: Sequence[Scalar], y: Sequence[Scalar]) -> Sequence[Scalar]:
            return combine(created, [*x, *y])

        ranges = [(0, shape[d], 1) for d in sorted(dims)]
        return loops_in_blocks(ranges, [broadcast(start, lanes) for start in starts], step, add)

    if all(extent == 1 for extent in kept):
        return [Number(kept, x) for x in totals((0,) * len(kept), None)]
    results = [emitter.allocate(kept, x.element) for x in inputs]

    def write(position: Indices, lanes: int | None) -> None:
        for result, total in zip(results, totals(position, lanes), strict=True):
            if lanes is None:
                result.memory[position] = total
            else:
                result.memory.write(position, total)

    if rank - 1 in dims:
        emitter.nest(kept, lambda position: write(position, None))
    else:
        widest = max((x.element for x in inputs), key=bytes_of)
        emitter.each(kept, write, widest)
    return results


RULES: dict[str, Rule] = {"stablehlo.reduce": _reduce}
