"""Running reductions in a kernel, such as cumulative sums: element by element along an axis.

Elsewhere: windows of other kinds (`windows.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.builders.kernels import scan_in_blocks
from axir.dialect.builders.scalars import Scalar
from axir.passes.legalize.windows.running_reductions import running_axis

from .elementwise import combine
from .emitter import Emitter, Rule
from .values import Index, Indices, Value, plus, times


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


RULES: dict[str, Rule] = {"stablehlo.reduce_window": _reduce_window}
