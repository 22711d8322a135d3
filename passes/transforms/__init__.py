"""Transformations of programs of the dialect: derivatives, vectorization, simplification, lowering.

Elsewhere: rewrites of StableHLO (`axir.passes.legalize`, `axir.passes.tune`).
"""

# Importing these registers the transformations by which rules derive functions
# (`dialect/program/derived_functions.py`).
from . import effect_removal, jvp, linearize, rematerialize, simplify, transpose, vmap

__all__ = ["effect_removal", "jvp", "linearize", "rematerialize", "simplify", "transpose", "vmap"]
