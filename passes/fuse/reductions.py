"""Reductions in a kernel: sums over axes in vectors, others element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir

from axir.dialect.builders.kernels import loop
from axir.dialect.builders.scalars import Scalar, broadcast, constant, operation

from .elementwise import combine, formula_of, reducer_of
from .emitter import Emitter, Rule, pieces, lanes_for
from .regions import operations_of
from .values import Index, Indices, Number, Value

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
    name = reducer_of(created.regions[0])
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


def accumulate(
    extents: Sequence[tuple[int, int, int]],
    start: Scalar,
    step: Callable[[Indices, Scalar], Scalar],
) -> Scalar:
    """Runs `step(position, total) -> total` over ranges `(from, to, stride)`, one in the other."""

    def level(rest: Sequence[tuple[int, int, int]], place: Indices, total: Scalar) -> Scalar:
        if not rest:
            return step(place, total)
        lower, upper, stride = rest[0]
        if upper - lower <= stride:
            return level(rest[1:], (*place, lower), total)
        result: Scalar = loop(
            lower, upper, total, lambda i, sum_: level(rest[1:], (*place, i), sum_), stride=stride
        )
        return result

    return level(list(extents), (), start)


def _merged(rank: int, dims: Sequence[int], reduced: Indices, kept: Indices) -> Indices:
    of_reduced, of_kept = iter(reduced), iter(kept)
    places: list[Index] = [next(of_reduced if d in dims else of_kept) for d in range(rank)]
    return tuple(places)


def _by_vectors(
    emitter: Emitter, x: Value, dims: list[int], start: Scalar, formula: Combine, kind: str
) -> Value:
    rank = len(x.shape)
    kept = [extent for d, extent in enumerate(x.shape) if d not in dims]
    extents = [(0, x.shape[d], 1) for d in sorted(dims)]

    def columns(position: Indices, lanes: int | None) -> Scalar:
        def step(place: Indices, total: Scalar) -> Scalar:
            return formula(total, x.at(_merged(rank, dims, place, position), lanes))

        return accumulate(extents, broadcast(start, lanes), step)

    def rows(position: Indices) -> Scalar:
        total = start
        for lower, upper, lanes in pieces(x.shape[-1], lanes_for(x.element)):
            width = None if lanes == 1 else lanes

            def step(place: Indices, sum_: Scalar, width: int | None = width) -> Scalar:
                return formula(sum_, x.at(_merged(rank, dims, place, position), width))

            ranges = [*extents[:-1], (lower, upper, lanes)]
            if width is None:
                total = accumulate(ranges, total, step)
            else:
                neutral = broadcast(_neutral(kind, x.element), width)
                total = formula(total, _across(accumulate(ranges, neutral, step), kind))
        return total

    is_over_rows = rank - 1 in dims
    if not kept or all(extent == 1 for extent in kept):
        position = (0,) * len(kept)
        return Number(kept, rows(position) if is_over_rows else columns(position, None))
    result = emitter.allocate(kept, x.element)

    def write(position: Indices, lanes: int | None) -> None:
        if lanes is None:
            result.memory[position] = columns(position, None)
        else:
            result.memory.write(position, columns(position, lanes))

    if is_over_rows:
        emitter.nest(kept, lambda place: result.memory.__setitem__(place, rows(place)))
    else:
        emitter.each(kept, write, x.element)
    return result


def _across(x: Scalar, kind: str) -> Scalar:
    attribute = ir.Attribute.parse(f"#vector.kind<{kind}>")
    return operation("vector.reduction", (x,), x.element, {"kind": attribute})


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
    region = created.regions[0]
    starts = tuple(init.at((), None) for init in inits)

    def totals(position: Indices) -> tuple[Scalar, ...]:
        def level(rest: Sequence[int], place: Indices, sums: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
            if not rest:
                whole = _merged(rank, dims, place, position)
                xs = [x.at(whole, None) for x in inputs]
                return tuple(combine(region, [*sums, *xs]))
            result: tuple[Scalar, ...] = loop(
                0, shape[rest[0]], sums, lambda i, *inner: level(rest[1:], (*place, i), inner)
            )
            return result

        return level(sorted(dims), (), starts)

    if all(extent == 1 for extent in kept):
        return [Number(kept, x) for x in totals((0,) * len(kept))]
    results = [emitter.allocate(kept, x.element) for x in inputs]

    def write(position: Indices) -> None:
        for result, total in zip(results, totals(position), strict=True):
            result.memory[position] = total

    emitter.nest(kept, write)
    return results


RULES: dict[str, Rule] = {"stablehlo.reduce": _reduce}
