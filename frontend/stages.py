"""`axir.stages`: what a jitted function passes through, under the names of `jax.stages`."""

from __future__ import annotations

from axir._transforms.stages import ArgInfo, Compiled, CompilerOptions, Lowered, Traced, Wrapped

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]
