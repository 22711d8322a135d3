"""Builders of MLIR: StableHLO, kernels of loops over scalars, formulas.

`expressions.py` is the notation of arithmetic that scalars (`scalars.py`) and arrays (`formula.py`)
share.

What does not live here: which operations to build; rules and passes decide that.
"""
