"""Kernels written in Python: loops over numbers in memory that IREE runs as one dispatch.

A StableHLO loop costs IREE at least one dispatch in each pass; a kernel with any loops is one
dispatch. It is a Python function of `Memory`, run once to build the code; assignments to elements
happen in the order in which Python executes them::

    def cumulative(x, sums):
        def step(i, total):
            total = total + x[i]
            sums[i] = total
            return total

        loop(0, n, x.constant(0.0), step)

    [sums] = dispatch(cumulative, [x], [x.type])

Numbers are `Scalar`s, or vectors of a power of two of them (`Memory.read`), which become vector
registers. Results are new arrays, or the memory of operands (`in_place`). Workgroups run in
parallel; their number is the first argument (`workgroups`). A mismatch in a kernel is a
`KernelError` while the kernel is built. `docs/kernels.md` is a course.

IREE gets a kernel as a separate executable, on memory instead of tensors, so it does not decide how
arrays are placed, copied or fused. Facts (IREE 3.13): the stack of a kernel is limited, see
`STACK_BYTES`, so large private memory is an unused result (`workspace`); truth values lie in memory
as bytes; vectors with an extent other than a power of two are 30 times slower; executables are
linked into one library, where each function needs a unique name.

Elsewhere: the arithmetic of numbers (`scalars.py`), errors (`errors.py`), and the kernels, which
stand with the ops that they compute (`dialect/ops/linalg/kernels.py`), or with the passes that
insert them.
"""

from __future__ import annotations

from .blocks import is_short, loop_in_blocks, loops_in_blocks, scan_in_blocks
from .control_flow import Carried, branch, each, loop, repeat_while, when
from .dispatching import dispatch, dispatch_outside, rows_of, workspace
from .functions import call, call_outside
from .integer_products import WORD, add_byte_products, add_pair_products, regrouped
from .lanes import (
    all_lanes,
    any_lane,
    combined_lanes,
    first_lanes,
    lane,
    lanes,
    largest_lane,
    shuffle,
    smallest_lane,
    sum_of_lanes,
    transposed,
    with_lane,
)
from .memory import STACK_BYTES, Memory, Number, Position, scratch

__all__ = [
    "STACK_BYTES",
    "WORD",
    "Carried",
    "Memory",
    "Number",
    "Position",
    "add_byte_products",
    "add_pair_products",
    "all_lanes",
    "any_lane",
    "branch",
    "call",
    "call_outside",
    "combined_lanes",
    "dispatch",
    "dispatch_outside",
    "each",
    "first_lanes",
    "is_short",
    "lane",
    "lanes",
    "largest_lane",
    "loop",
    "loop_in_blocks",
    "loops_in_blocks",
    "regrouped",
    "repeat_while",
    "rows_of",
    "scan_in_blocks",
    "scratch",
    "shuffle",
    "smallest_lane",
    "sum_of_lanes",
    "transposed",
    "when",
    "with_lane",
    "workspace",
]
