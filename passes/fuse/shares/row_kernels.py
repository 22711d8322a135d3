"""Kernels that divide the rows of a result among workgroups: windows and convolutions.

Elsewhere: the code of an element (`windows.py`), and which operations become such kernels
(`fuse_windows.py`, `fuse_convolutions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, rows_of, when
from axir.dialect.builders.scalars import Scalar
from axir.passes.fuse.code import Code
from axir.passes.fuse.emitter import Emitter, lanes_for
from axir.passes.fuse.region_kernel import code_and_fitness, region_kernel
from axir.passes.fuse.sums import SIDE_BY_SIDE
from axir.passes.fuse.values import Indices, Stored, Value, plus, times
from axir.passes.fuse.windows import work
from axir.passes.legalize.regions import is_run_by_itself
from axir.passes.legalize.rewriting import find_operations, replace

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
