"""Control flow with conditions and lengths that are decided when the program runs.

The functions here take and return trees of arrays; the ops that they leave in the program are
declared in `axir.dialect.ops.control_flow`.
"""

from __future__ import annotations

from ._associative import associative_scan
from ._conditionals import cond, switch
from ._loops import fori_loop, while_loop
from ._scans import map, scan

__all__ = ["associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop"]
