"""Control flow: ops with functions among their parameters.

One file per op with all its rules: `cond`, `while`, `scan`. The derivatives of `scan` are in
separate files. The functions for users stand in the frontend; `flat_loops.py` has loops of flat
values for the rules of other ops.
"""

from __future__ import annotations

from . import conditional, reduction, scan, scan_derivatives, scan_transpose, while_loop

__all__ = [
    "conditional",
    "reduction",
    "scan",
    "scan_derivatives",
    "scan_transpose",
    "while_loop",
]
