"""`fuse-windows`: reductions of sliding windows as kernels of several workgroups."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders.kernels import Memory
from axir.passes.framework.base import Pass
from axir.passes.fuse.code import Code
from axir.passes.fuse.values import Value
from axir.passes.fuse.windows import Windows
from axir.passes.legalize.windows.position_select_and_scatter import entries
from axir.passes.legalize.windows.running_reductions import running_axis

from .row_kernels import Write, fuse_each, padded_before, share_rows


@dataclasses.dataclass(frozen=True)
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
        fuse_each(module, "stablehlo.reduce_window", _is_known, _reduce)


def _is_known(created: ir.Operation) -> bool:
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
