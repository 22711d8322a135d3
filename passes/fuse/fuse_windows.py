"""`fuse-windows`: sliding windows and small convolutions as kernels of several workgroups."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, rows_of, when
from axir.dialect.builders.scalars import Scalar
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import find_operations, replace
from axir.passes.legalize.windows.position_select_and_scatter import entries
from axir.passes.legalize.windows.run_by_kernel import running_axis

from .code import Code, write_out_functions
from .emitter import Emitter, lanes_for
from .fitness import Fitness
from .producers import WORK_OF_WORKGROUP
from .region_kernel import RULES, region_kernel
from .sums import SIDE_BY_SIDE, nest
from .values import Indices, Stored, Value, plus, times
from .windows import Products, Windows, work

_WINDOW, _CONVOLUTION = "stablehlo.reduce_window", "stablehlo.convolution"
_MOST_WORKGROUPS = 8

Write = Callable[[Sequence[Indices], int | None], None]


@dataclasses.dataclass(frozen=True)
class FuseWindows(Pass):
    """Makes a kernel of each reduction of sliding windows, and of each convolution that is left.

    The fact: IREE compiles such loops for 30 to 200 ms, and adds up in an order of its own. What
    kernels add up is the same number wherever they run, with IREE or without it (`fuse-islands`).

    1. Take reductions of windows whose region is elementwise, and that are not running sums, and
       convolutions of floats.
    2. Pad their operands, and put zeros between the elements, before.
    3. Write a kernel whose workgroups share the first long axis of the result. How many there are
       depends on the size alone, so results do not depend on how many run at a time.

    Before::

        %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = [1, 2, 2, 1] …}> …

    After::

        %0 = flow.dispatch @windows_0::@windows_0(%x) : …

    Precondition: what makes faster kernels of convolutions has run.
    """

    name: ClassVar[str] = "fuse-windows"

    def run(self, module: ir.Module) -> None:
        """Rewrites the functions of the module."""
        write_out_functions(module)
        code = Code(module)
        fitness = Fitness(code, frozenset(RULES), has_windows=True)
        for created in find_operations(module.operation, (_WINDOW, _CONVOLUTION)):
            is_whole = created.parent.name == "func.func" and _is_known(created)
            if is_whole and fitness.of_operations([created]) is None:
                with ir.InsertionPoint(created), created.location:
                    make = _convolve if created.name == _CONVOLUTION else _reduce
                    made = make(created, code)
                replace(created, made)


def _is_known(created: ir.Operation) -> bool:
    if any(0 in x.type.shape for x in (*created.operands, *created.results)):
        return False
    if created.name == _CONVOLUTION:
        return all(map(hlo.is_float, (*created.operands, *created.results)))
    return running_axis(created) is None


def _reduce(created: ir.Operation, code: Code) -> list[ir.Value]:
    windows = Windows(created)
    count = len(created.results)
    between = [n - 1 for n in entries(created, "base_dilations", [1] * windows.rank)]
    operands = list(created.operands)
    inits = operands[count:]
    inputs = [
        _padded(x, init, windows.padding, between)
        for x, init in zip(operands[:count], inits, strict=True)
    ]

    def kernel(values: Mapping[ir.Value, Value], results: Mapping[int, Memory]) -> Write:
        starts = [values[x].at((), None) for x in inits]
        memories = [results[number] for number in range(count)]
        arrays = [values[x] for x in inputs]
        return lambda places, lanes: windows.write(memories, arrays, starts, places, lanes)

    return _share(created, code, [*inputs, *inits], kernel, windows.widest)


def _convolve(created: ir.Operation, code: Code) -> list[ir.Value]:
    lhs, rhs = created.operands
    products = Products(created, [lhs.type.shape, rhs.type.shape])
    zero = hlo.full(0, (), lhs.type.element_type)
    lhs = _padded(lhs, zero, products.padding, [n - 1 for n in products.dilations])

    def kernel(values: Mapping[ir.Value, Value], results: Mapping[int, Memory]) -> Write:
        return lambda places, lanes: products.write(
            results[0], values[lhs], values[rhs], places, lanes
        )

    return _share(created, code, [lhs, rhs], kernel, products.wide)


def _padded(
    x: ir.Value, filling: ir.Value, padding: list[list[int]], between: list[int]
) -> ir.Value:
    low, high = [pair[0] for pair in padding], [pair[1] for pair in padding]
    return hlo.pad(x, filling, low, high, between) if any((*low, *high, *between)) else x


def _share(
    created: ir.Operation,
    code: Code,
    outside: list[ir.Value],
    kernel: Callable[[Mapping[ir.Value, Value], Mapping[int, Memory]], Write],
    element: ir.Type,
) -> list[ir.Value]:
    """Puts a kernel in the place of an operation: its workgroups share the rows of the result."""
    *rows, last = created.results[0].type.shape
    wanted = min(_MOST_WORKGROUPS, work(created) // WORK_OF_WORKGROUP)
    workgroups = max(1, min(wanted, max(rows, default=1)))
    kinds = {number: x.type for number, x in enumerate(created.results)}

    def build(
        emitter: Emitter, places: Mapping[int, Memory], workgroup: Scalar
    ) -> dict[int, Value]:
        write = kernel(emitter.values, places)

        def along(place: Indices, count: int) -> None:
            def body(position: Indices, lanes: int | None) -> None:
                *leading, column = position
                places = [(*leading, column)]
                if count > 1:
                    *before, row = leading
                    places = [(*before, plus(row, n), column) for n in range(count)]
                write(places, lanes)

            emitter.along(last, place, body, lanes_for(element))

        _rows(rows, along, workgroup, workgroups)
        return {number: Stored(place, is_own=True) for number, place in places.items()}

    made = region_kernel("windows", code, outside, kinds, build, workgroups=workgroups)
    return [made[number] for number in kinds]


def _rows(
    rows: list[int],
    along: Callable[[Indices, int], None],
    workgroup: Scalar,
    workgroups: int,
) -> None:
    """Runs `along(position, count)` for the rows of one workgroup, several at a time."""
    if not rows:
        along((), 1)
        return
    *outer, inner = rows
    whole = inner // SIDE_BY_SIDE
    groups = [*outer, whole]
    axis = next((d for d, n in enumerate(groups) if n >= workgroups), None)
    axis = max(range(len(groups)), key=groups.__getitem__) if axis is None else axis
    share = rows_of(workgroup, groups[axis], workgroups)

    def group(place: Indices) -> None:
        *leading, number = place
        along((*leading, times(number, SIDE_BY_SIDE)), SIDE_BY_SIDE)

    if whole:
        nest(groups, axis, share, group)
    left = range(whole * SIDE_BY_SIDE, inner)

    def rest(place: Indices) -> None:
        for row in left:
            along((*place, row), 1)

    if left and axis < len(outer):
        nest(outer, axis, share, rest)
    elif left:
        when(workgroup == 0)(lambda: nest(outer, None, share, rest))
