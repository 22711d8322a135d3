"""The programs, in files by group; each is written once, against the API.

A program is a function of the library (`jax` is axir or JAX) and of sizes. It returns a function
of that library, and the arguments as NumPy arrays: nothing that is measured is a constant.
Elsewhere: how they are run (`benchmarks/harness`).
"""

from __future__ import annotations

from benchmarks.harness.program import Program, merged
from benchmarks.programs import (
    algorithms,
    decoding,
    elementwise,
    evaluator,
    indexing,
    large_loops,
    linear_algebra,
    loops,
    models,
    networks,
    overhead,
    products,
    recurrent,
    reductions,
    sciences,
    solvers,
    sorting,
)
from benchmarks.programs.groups import GROUPS

__all__ = [
    "PROGRAMS",
    "algorithms",
    "decoding",
    "elementwise",
    "evaluator",
    "indexing",
    "large_loops",
    "linear_algebra",
    "loops",
    "models",
    "networks",
    "overhead",
    "products",
    "recurrent",
    "reductions",
    "sciences",
    "solvers",
    "sorting",
]

PROGRAMS: dict[str, Program] = merged(GROUPS)
