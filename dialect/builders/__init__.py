"""Builders of MLIR: StableHLO, kernels of loops over scalars, formulas.

`expressions.py` is the notation of arithmetic that scalars (`scalars.py`) and arrays (`formula.py`)
share.

Elsewhere: which operations to build; rules and passes decide that.
"""
