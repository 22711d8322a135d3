"""Builders of MLIR: StableHLO, kernels of loops over scalars, formulas.

`expressions.py` is the notation of arithmetic that scalars (`scalars.py`) and arrays (`formula.py`)
share.

Elsewhere: the choice of the operations to build, in rules and passes.
"""
