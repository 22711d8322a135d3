"""Names of `jax._src.compiler`: what compiles, which libraries replace to forbid it."""

from __future__ import annotations

from axir.runtime.compiler import compile_module as backend_compile_and_load

__all__ = ["backend_compile_and_load"]
