"""Modules of this room that earlier ones name: what a program can tell of itself needs all others.

`function.py` stands at the beginning of the room; its properties `jaxpr` and `effects` are views
that stand at the end. A trace records one op that nobody handed to it, a broadcast, which it finds
in the op table.
"""

from __future__ import annotations

from axir.dialect.core.late_modules import late_module

effects = late_module("axir.dialect.program.effects")
jaxpr = late_module("axir.dialect.program.jaxprs.jaxpr")
op_table = late_module("axir.dialect.program.op_table")

__all__ = ["effects", "jaxpr", "op_table"]
