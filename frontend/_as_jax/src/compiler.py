"""Names of `jax._src.compiler`: the compile function; libraries replace it to forbid compiling."""

from __future__ import annotations

from axir.runtime.compiler import compile_module as backend_compile_and_load

__all__ = ["backend_compile_and_load"]
