"""Reductions in a kernel: sums over axes in vectors, others element by element, running ones.

Elsewhere: windows of other kinds (`windows.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import loops_in_blocks, scan_in_blocks
from axir.dialect.builders.scalars import Scalar, broadcast
from axir.passes.legalize.regions import operations_of
from axir.passes.legalize.windows.running_reductions import running_axis

from .elementwise import combine, formula_of, reducer_of
from .emitter import Emitter, Rule, lanes_for
from .sums import Sums, merged
from .values import Index, Indices, Number, Value, plus, times

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


def _reduce(emitter: Emitter, created: ir.Operation, operands: list[Value]) -> Sequence[Value]:
    count = len(operands) // 2
    inputs, inits = operands[:count], operands[count:]
    dims = list(ir.DenseI64ArrayAttr(created.attributes["dimensions"]))
    if not dims:  # the initial value does not count then, as in the evaluator and in IREE
        return inputs
    sums = sums_of(created, operands)
    if sums is not None:
        return [_by_vectors(emitter, sums)]
    return _by_elements(emitter, created, inputs, inits, dims)


def is_by_vectors(created: ir.Operation) -> bool:
    """Tells whether a reduction of one array has a region of a single operation."""
    return len(created.operands) == 2 and _vector_kind(created) is not None


def sums_of(created: ir.Operation, operands: Sequence[Value]) -> Sums | None:
    """Returns a reduction in vectors; None if its region is not a single operation."""
    kind = _vector_kind(created) if is_by_vectors(created) else None
    if kind is None:
        return None
    x, init = operands
    formula = formula_of(operations_of(created)[0][0])
    assert formula is not None
    dims = tuple(ir.DenseI64ArrayAttr(created.attributes["dimensions"]))
    return Sums(x, dims, init.at((), None), formula, kind)


def _vector_kind(created: ir.Operation) -> str | None:
    """Returns MLIR's name for the reduction of a vector, for regions of one operation."""
    name = reducer_of(created)
    element = created.results[0].type.element_type
    if name is None:
        return None
    short = name.removeprefix("stablehlo.")
    if isinstance(element, ir.FloatType):
        return _FLOAT_KINDS.get(short)
    if not isinstance(element, ir.IntegerType):
        return None  # complex numbers
    if element.width == 1:
        return {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}.get(
            short, _INTEGER_KINDS.get(short)
        )
    found = _INTEGER_KINDS.get(short)
    if found in ("maxsi", "minsi") and element.is_unsigned:
        return found.replace("si", "ui")
    return found


def _by_vectors(emitter: Emitter, sums: Sums) -> Value:
    kept = sums.kept
    if all(extent == 1 for extent in kept):
        position = (0,) * len(kept)
        total = sums.row(position) if sums.is_over_rows else sums.columns([position], None)[0]
        return Number(kept, total)
    result = emitter.allocate(kept, sums.x.element)

    def write(position: Indices, lanes: int | None) -> None:
        [total] = sums.columns([position], lanes)
        if lanes is None:
            result.memory[position] = total
        else:
            result.memory.write(position, total)

    def write_row(position: Indices) -> None:
        result.memory[position] = sums.row(position)

    if sums.is_over_rows:
        emitter.nest(kept, write_row)
    else:
        emitter.each(kept, write, lanes_for(sums.x.element), may_repeat=True)
    return result


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
            whole = merged(rank, dims, place, position)
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
        widest = max((x.element for x in inputs), key=hlo.element_bytes)
        emitter.each(kept, write, lanes_for(widest), may_repeat=True)
    return results


RULES: dict[str, Rule] = {"stablehlo.reduce": _reduce}


def _reduce_window(
    emitter: Emitter, created: ir.Operation, operands: list[Value]
) -> Sequence[Value]:
    found = running_axis(created)
    assert found is not None  # see `Fitness`
    axis, is_from_start = found
    count = len(operands) // 2
    inputs = operands[:count]
    starts = [init.at((), None) for init in operands[count:]]
    shape = inputs[0].shape
    results = [emitter.allocate(shape, x.element) for x in inputs]
    last = shape[axis] - 1

    def along(others: Indices) -> None:
        def place(number: Index) -> Indices:
            own = number if is_from_start else plus(times(number, -1), last)
            return (*others[:axis], own, *others[axis:])

        def step(number: Index, totals: Sequence[Scalar]) -> Sequence[Scalar]:
            return combine(created, [*totals, *(x.at(place(number), None) for x in inputs)])

        def write(number: Index, totals: Sequence[Scalar]) -> None:
            for result, total in zip(results, totals, strict=True):
                result.memory[place(number)] = total

        scan_in_blocks(last + 1, starts, step, write, lambda x, y: combine(created, [*x, *y]))

    emitter.nest([extent for d, extent in enumerate(shape) if d != axis], along)
    return results


RUNNING_RULES: dict[str, Rule] = {"stablehlo.reduce_window": _reduce_window}
