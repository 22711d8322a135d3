"""Operations that the rules of earlier families need: the only imports that point back.

Families stand in the order elementwise, shape, reductions, indexing, and then all others. Their
rules are written with operations of any family: the transpose of a broadcast is a sum, the
transpose of a gather is a scatter, and a broadcast stretches an operand of extent 1. The rules that
need a later family, or a later file of the same family, take it from here. They run when all
operations exist, so each module is imported at its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axir.dialect.core.late_modules import late_module

if TYPE_CHECKING:
    from .collectives import axis_reductions
    from .control_flow import closed_bodies, flat_loops, lowered_scan, scan
    from .elementwise import arithmetic, conversion
    from .indexing import scatter, static_slicing
    from .reductions import reduce
    from .shape import broadcasting, rearranging
else:
    axis_reductions = late_module("axir.dialect.ops.collectives.axis_reductions")
    arithmetic = late_module("axir.dialect.ops.elementwise.arithmetic")
    broadcasting = late_module("axir.dialect.ops.shape.broadcasting")
    closed_bodies = late_module("axir.dialect.ops.control_flow.closed_bodies")
    conversion = late_module("axir.dialect.ops.elementwise.conversion")
    flat_loops = late_module("axir.dialect.ops.control_flow.flat_loops")
    lowered_scan = late_module("axir.dialect.ops.control_flow.lowered_scan")
    rearranging = late_module("axir.dialect.ops.shape.rearranging")
    reduce = late_module("axir.dialect.ops.reductions.reduce")
    scan = late_module("axir.dialect.ops.control_flow.scan")
    scatter = late_module("axir.dialect.ops.indexing.scatter")
    static_slicing = late_module("axir.dialect.ops.indexing.static_slicing")

__all__ = [
    "arithmetic",
    "axis_reductions",
    "broadcasting",
    "closed_bodies",
    "conversion",
    "flat_loops",
    "lowered_scan",
    "rearranging",
    "reduce",
    "scan",
    "scatter",
    "static_slicing",
]
