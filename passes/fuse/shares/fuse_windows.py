"""Windows and convolutions as kernels that divide the rows of a result among workgroups.

Here: `fuse-windows` for reductions of sliding windows, `fuse-convolutions` for convolutions without
tiles.
Elsewhere: the code of an element (`passes/fuse/windows.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, rows_of, when
from axir.dialect.builders.scalars import Scalar
from axir.passes.framework.base import Pass
from axir.passes.fuse.elementwise import Code
from axir.passes.fuse.emitter import Emitter, lanes_for
from axir.passes.fuse.region_kernel import code_and_fitness, region_kernel
from axir.passes.fuse.sums import SIDE_BY_SIDE
from axir.passes.fuse.values import Indices, Stored, Value, plus, times
from axir.passes.fuse.windows import Products, Windows, work
from axir.passes.legalize.regions import is_run_by_itself
from axir.passes.legalize.rewriting import find_operations, replace
from axir.passes.legalize.windows.position_select_and_scatter import entries
from axir.passes.legalize.windows.running_reductions import running_axis

from .producers import MOST_WORKGROUPS, WORK_OF_WORKGROUP
from .shared_sums import nest

Write = Callable[[Sequence[Indices], int | None], None]


def padded_before(
    x: ir.Value, filling: ir.Value, padding: list[list[int]], between: list[int]
) -> ir.Value:
    """Returns an array with padding around its elements and between them."""
    low, high = [pair[0] for pair in padding], [pair[1] for pair in padding]
    return hlo.pad(x, filling, low, high, between) if any((*low, *high, *between)) else x


def fuse_each(
    module: ir.Module,
    name: str,
    is_known: Callable[[ir.Operation], bool],
    kernel_of: Callable[[ir.Operation, Code], list[ir.Value]],
) -> None:
    """Replaces each operation of a name that is outside of kernels and that a kernel can hold.

    Args:
        module: The module.
        name: The operations' name.
        is_known: Whether the kernel computes such an operation.
        kernel_of: Builds the kernel at the insertion point, and returns its results.
    """
    code, fitness = code_and_fitness(module)
    for created in find_operations(module.operation, (name,)):
        is_whole = is_run_by_itself(created) and is_known(created)
        if is_whole and fitness.of_operations([created]) is None:
            with ir.InsertionPoint(created), created.location:
                made = kernel_of(created, code)
            replace(created, made)


def share_rows(
    created: ir.Operation,
    code: Code,
    outside: list[ir.Value],
    kernel: Callable[[Mapping[ir.Value, Value], Mapping[int, Memory]], Write],
    element: ir.Type,
) -> list[ir.Value]:
    """Replaces an operation by a kernel that divides the rows of the result among workgroups."""
    *rows, last = created.results[0].type.shape
    wanted = min(MOST_WORKGROUPS, work(created) // WORK_OF_WORKGROUP)
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


class FuseWindows(Pass):
    """Makes a kernel of each reduction of sliding windows.

    The fact: IREE compiles such loops for 30 to 200 ms, and sums in another order. The sums of a
    kernel are the same numbers with IREE and without it (`fuse-islands`).

    1. Take reductions of windows with an elementwise region that are not running sums.
    2. Pad their operands, and put zeros between the elements, before.
    3. Write a kernel that divides the first long axis of the result among workgroups. Their number
       depends only on the size, so results do not depend on how many run at a time.

    Before::

        %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = [1, 2, 2, 1] …}> …

    After::

        %0 = flow.dispatch @windows_0::@windows_0(%x) : …

    Measured: sums of 5 x 5 of 1000 x 1000 numbers take 1.1 ms, with IREE's loops 20 to 140 ms.
    Maxima of 2 x 2 take as long as with IREE's loops.
    """

    name: ClassVar[str] = "fuse-windows"

    def run(self, module: ir.Module) -> None:
        """Rewrites the functions of the module."""
        fuse_each(module, "stablehlo.reduce_window", _has_elements, _reduce)


def _has_elements(created: ir.Operation) -> bool:
    [first, *_] = created.results
    is_empty = any(0 in x.type.shape for x in (*created.operands, *created.results))
    return not is_empty and first.type.rank > 0 and running_axis(created) is None


def _reduce(created: ir.Operation, code: Code) -> list[ir.Value]:
    windows = Windows(created)
    count = len(created.results)
    between = [n - 1 for n in entries(created, "base_dilations", [1] * windows.rank)]
    operands = list(created.operands)
    inits = operands[count:]
    inputs = [
        padded_before(x, init, windows.padding, between)
        for x, init in zip(operands[:count], inits, strict=True)
    ]

    def kernel(values: Mapping[ir.Value, Value], results: Mapping[int, Memory]) -> Write:
        starts = [values[x].at((), None) for x in inits]
        memories = [results[number] for number in range(count)]
        arrays = [values[x] for x in inputs]
        return lambda places, lanes: windows.write(memories, arrays, starts, places, lanes)

    return share_rows(created, code, [*inputs, *inits], kernel, windows.widest)


class FuseConvolutions(Pass):
    """Makes a kernel of each remaining convolution of floats.

    The fact: IREE compiles such loops for 30 to 200 ms, and sums in another order. The sums of a
    kernel are the same numbers with IREE and without it (`fuse-islands`).

    1. Take convolutions of floats.
    2. Pad the input, and put zeros between its elements, before.
    3. Write a kernel that divides the first long axis of the result among workgroups. Their number
       depends only on the size, so results do not depend on how many run at a time.

    Before::

        %0 = stablehlo.convolution(%x, %k) …, feature_group_count = 32 : …

    After::

        %0 = flow.dispatch @windows_0::@windows_0(%x, %k) : …

    Measured: a convolution of 28 x 28 x 32 in 4 groups takes 0.8 ms, with IREE's loops 17 to 110
    ms. A depthwise convolution takes 1.1 times as long as with IREE's loops. Precondition: the
    passes that make faster kernels have run.
    """

    name: ClassVar[str] = "fuse-convolutions"

    def run(self, module: ir.Module) -> None:
        """Rewrites the functions of the module."""
        fuse_each(module, "stablehlo.convolution", _is_of_floats, _convolve)


def _is_of_floats(created: ir.Operation) -> bool:
    arrays = (*created.operands, *created.results)
    return all(hlo.is_float(x) and 0 not in x.type.shape for x in arrays)


def _convolve(created: ir.Operation, code: Code) -> list[ir.Value]:
    lhs, rhs = created.operands
    products = Products(created, [lhs.type.shape, rhs.type.shape])
    zero = hlo.full(0, (), lhs.type.element_type)
    lhs = padded_before(lhs, zero, products.padding, [n - 1 for n in products.dilations])

    def kernel(values: Mapping[ir.Value, Value], results: Mapping[int, Memory]) -> Write:
        return lambda places, lanes: products.write(
            results[0], values[lhs], values[rhs], places, lanes
        )

    return share_rows(created, code, [lhs, rhs], kernel, products.wide)
