"""Transformations of programs of the dialect: derivatives, vectorization, simplification, lowering.

Elsewhere: rewrites of StableHLO (`axir.passes.legalize`, `axir.passes.tune`).
"""

# Importing these registers the transformations by which rules derive functions
# (`dialect/program/derived_functions.py`).
from . import jvp, linearize, rematerialize, simplify, tangent_walk, transpose, vmap

__all__ = ["jvp", "linearize", "rematerialize", "simplify", "tangent_walk", "transpose", "vmap"]
