"""The module `jax.lib.xla_client` where axir stands in for JAX, also `jaxlib`'s.

It has `ops`, for translation rules, and the class of devices, for annotations.
"""

from __future__ import annotations

from axir import Device
from axir.errors import JaxRuntimeError as XlaRuntimeError
from axir.interpreters import _xla_ops as ops

__all__ = ["Device", "XlaRuntimeError", "ops"]
