"""Late imports of this room: the views of a program need all other modules of the room.

`function.py` stands at the beginning of the room; its properties `jaxpr` and `effects` are views
from the end of the room. A trace records one op without a request by its caller, a broadcast, and
finds it in the op table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axir.dialect.core.late_modules import late_module

if TYPE_CHECKING:
    from . import effects, op_table
    from .jaxprs import jaxpr
else:
    effects = late_module("axir.dialect.program.effects")
    jaxpr = late_module("axir.dialect.program.jaxprs.jaxpr")
    op_table = late_module("axir.dialect.program.op_table")

__all__ = ["effects", "jaxpr", "op_table"]
