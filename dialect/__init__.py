"""The `jaxpr` dialect: types, arrays, tracers, the table of operations, and MLIR read and written.

An operation is one `Primitive` in `ops/` with all its rules: how its type follows from its
operands', how NumPy evaluates it, how it is differentiated, transposed, batched, and lowered to
StableHLO (`builders/stablehlo/` builds that). A function under construction is a `Trace`; a
finished one is a `Function`, the same thing as MLIR.

Elsewhere: transformations of whole functions and modules (`axir.passes`), compiling and running
(`axir.runtime`), and the functions for users (`axir`). This package imports none of those; where an
operation needs them, they register themselves (`dialect/program/derived_functions.py`,
`dialect/ops/calls/jit_call.py`).
"""
