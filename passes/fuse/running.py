"""Running reductions in a kernel, such as cumulative sums: element by element along an axis.

What does not live here: windows of other kinds, which stay with IREE.
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import loop
from axir.dialect.builders.scalars import Scalar
from axir.passes.legalize.windows.pad_windows import is_running
from axir.passes.legalize.windows.position_select_and_scatter import entries

from .elementwise import combine
from .emitter import Emitter, Rule
from .values import Index, Indices, Value, plus, times


def running_axis(created: ir.Operation) -> tuple[int, bool] | None:
    """Returns the axis along which windows run, and whether from its beginning; None if not."""
    shape = hlo.shape_of(created.operands[0])
    ones = [1] * len(shape)
    window = entries(created, "window_dimensions", ones)
    padding = entries(created, "padding", [[0, 0]] * len(shape))
    is_plain = all(
        entries(created, name, ones) == ones
        for name in ("window_strides", "base_dilations", "window_dilations")
    )
    if not is_plain or not is_running(shape, window, padding):
        return None
    (axis,) = (axis for axis, size in enumerate(window) if size > 1)
    return axis, padding[axis][0] > 0


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
        def step(number: Index, *totals: Scalar) -> tuple[Scalar, ...]:
            place = number if is_from_start else plus(times(number, -1), last)
            whole = (*others[:axis], place, *others[axis:])
            combined = combine(created, [*totals, *(x.at(whole, None) for x in inputs)])
            for result, total in zip(results, combined, strict=True):
                result.memory[whole] = total
            return tuple(combined)

        loop(0, last + 1, tuple(starts), step)

    emitter.nest([extent for d, extent in enumerate(shape) if d != axis], along)
    return results


RULES: dict[str, Rule] = {"stablehlo.reduce_window": _reduce_window}
