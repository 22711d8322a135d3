"""Operations that the rules of earlier families need: the only imports that point back.

Families stand in the order elementwise, shape, reductions, indexing, and then all others. Their
rules are written with operations of any family: the transpose of a broadcast is a sum, the
transpose of a gather is a scatter, and a broadcast stretches an operand of extent 1. The rules that
need a later family, or a later file of the same family, take it from here. They run when all
operations exist, so each module is imported at its first use.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Protocol

from iree.compiler import ir

from axir.dialect.core.annotations import DTypeLike, Returning
from axir.dialect.core.late_modules import LateNames
from axir.dialect.program.op_table import Traceable
from axir.dialect.program.rules import Operand, Value


class _Convert(Protocol):
    def __call__(
        self, operand: Operand, new_dtype: DTypeLike, weak_type: bool = False, /
    ) -> Value: ...


class _Slice(Protocol):
    def __call__(
        self,
        operand: Value,
        start_index: int,
        limit_index: int | None,
        stride: int = 1,
        axis: int = 0,
        /,
    ) -> Value: ...


class _Loop(Protocol):
    def write(self, carry: Sequence[ir.Value]) -> list[ir.Value]: ...


class LaterOps(LateNames):
    """Operations by name; each is imported at the first use by a rule."""

    add: Traceable
    real: Traceable
    imag: Traceable
    complex_: Traceable
    convert_element_type: _Convert
    broadcast_in_dim: Callable[[Operand, Sequence[int], Sequence[int]], Value]
    move_batch_axis: Callable[[Value, int | None, int, int], Value]
    moveaxis: Callable[[Value, int, int], Value]
    reshape: Callable[[Value, Sequence[int]], Value]
    reduce_sum: Callable[[Value, Sequence[int]], Value]
    slice: Callable[[Value, Sequence[int], Sequence[int], Sequence[int] | None], Value]
    slice_in_dim: _Slice
    ScatterDimensionNumbers: Returning[tuple[object, ...]]
    scatter_add: Returning[Value]
    pvary: Callable[[Value, Iterable[Hashable]], Value]
    LoweredScan: Returning[_Loop]
    # From functions, types and values to a body, or to values.
    trace_body: Returning[object]
    bind_scan: Returning[tuple[list[Value], list[Value]]]
    cond_values: Returning[list[Value]]
    fori_values: Returning[list[Value]]


later = LaterOps(
    "axir.dialect.ops",
    {
        "elementwise.arithmetic": ["add"],
        "elementwise.conversion": ["complex_", "convert_element_type", "imag", "real"],
        "shape.broadcasting": ["broadcast_in_dim"],
        "shape.rearranging": ["move_batch_axis", "moveaxis", "reshape"],
        "reductions.reduce": ["reduce_sum"],
        "indexing.static_slicing": ["slice", "slice_in_dim"],
        "indexing.scatter": ["ScatterDimensionNumbers", "scatter_add"],
        "collectives.axis_reductions": ["pvary"],
        "control_flow.closed_bodies": ["trace_body"],
        "control_flow.scan": ["bind_scan"],
        "control_flow.flat_loops": ["cond_values", "fori_values"],
        "control_flow.lowered_scan": ["LoweredScan"],
    },
)
