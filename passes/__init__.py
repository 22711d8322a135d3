"""Transformations of modules: derivatives, batching, lowering to StableHLO, and what IREE needs.

A pass is a dataclass whose fields are its options (`passes/framework/base.py`); it changes an MLIR
module in place. `passes/framework/registry.py` names all passes, `passes/framework/pipeline.py`
reads and runs lists such as `"jvp,simplify"`. The passes `jvp`, `linearize`, `transpose`, `vmap`
and `simplify` map the `jaxpr` dialect to itself, and `lower-to-stablehlo` leaves it; `legalize/`
rewrites StableHLO that IREE lacks or gets wrong, and `tune/` what it compiles into slow programs.

Elsewhere: the rules of single operations (`axir.dialect.ops`), which the passes apply, and the
calls of the compiler and of compiled programs (`axir.runtime`).
"""
