"""The package `jaxlib.mlir` where axir stands in for JAX: the bindings of IREE's compiler.

axir's lowering rules build operations of the same bindings, so rules of users' primitives may use
them. `dialects` has StableHLO and CHLO, too.
"""

from __future__ import annotations

from axir.dialect.core.context import ir

from . import dialects

__all__ = ["dialects", "ir"]
