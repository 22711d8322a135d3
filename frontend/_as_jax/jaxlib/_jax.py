"""The module `jaxlib._jax` where axir stands in for JAX: classes for libraries' annotations."""

from __future__ import annotations

from axir import Device
from axir._transforms.jit import JitFunction as PjitFunction
from axir.dialect.core.array import ConcreteArray

__all__ = ["ArrayImpl", "ConcreteArray", "Device", "PjitFunction"]

ArrayImpl = ConcreteArray
