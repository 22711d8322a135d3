"""`axir.stages`: the stages of a jitted function, under the names of `jax.stages`."""

from __future__ import annotations

from axir._transforms.stages import ArgInfo, Compiled, CompilerOptions, Lowered, Traced, Wrapped

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]
