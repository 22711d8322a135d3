"""`jax._src.compiler`: the function that compiles; libraries replace it to forbid compilation."""

from __future__ import annotations

from axir.runtime.compiler import compile_module as backend_compile_and_load

__all__ = ["backend_compile_and_load"]
