"""The groups, with the largest ratio to JAX that each means to allow; the evaluator's to NumPy."""

from __future__ import annotations

from benchmarks.harness.program import Group

kernels = Group("kernels", goal=1.2)
loops = Group("loops", goal=1.2)
models = Group("models", goal=0.8)
overhead = Group("overhead", goal=0.6)
evaluator = Group("evaluator", goal=20)

GROUPS = (kernels, loops, models, overhead, evaluator)
