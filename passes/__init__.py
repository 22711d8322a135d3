"""Transformations of modules: derivatives, batching, lowering to StableHLO, legalizing for IREE.

A pass is a dataclass with its options as fields (`passes/framework/base.py`); it changes an MLIR
module in place. `passes/framework/registry.py` names all passes, `passes/framework/pipeline.py`
reads and runs lists such as `"jvp,simplify"`. The passes `jvp`, `linearize`, `transpose`, `vmap`
and `simplify` map the `jaxpr` dialect to itself, and `lower-to-stablehlo` leaves it; `legalize/`
rewrites StableHLO that IREE does not support or compiles wrongly, and `tune/` rewrites StableHLO
that it compiles to slow programs.

Elsewhere: the rules of single operations (`axir.dialect.ops`), which the passes apply, and the
calls of the compiler and of compiled programs (`axir.runtime`).
"""
