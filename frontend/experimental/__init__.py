"""What JAX offers as `jax.experimental`, under the same names.

Modules load when they are named.
"""

from __future__ import annotations

import importlib

from axir._transforms.callbacks import io_callback
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.config import enable_x64

_LOADED_WHEN_NAMED = frozenset((
    "checkify", "compilation_cache", "hijax", "host_callback", "jet", "kernels", "layout", "loops",
    "mesh_utils", "multihost_utils", "ode", "optimizers", "optix", "overlap", "pallas", "pjit",
    "random", "rnn", "serialize_executable", "shard_map", "stax", "vectorize", "xla_metadata",
))  # fmt: skip

__all__ = ["EArray", "disable_x64", "enable_x64", "io_callback", *sorted(_LOADED_WHEN_NAMED)]


def disable_x64() -> UserObject:
    """Makes 64-bit types 32-bit ones while a `with` block runs.

    >>> import axir.numpy as jnp
    >>> with disable_x64():
    ...     jnp.ones(1).dtype
    dtype('float32')
    """
    return enable_x64(False)


def __getattr__(name: str) -> UserObject:
    if name == "EArray":
        from ._extended_arrays import EArray  # late: few name it

        return EArray
    if name in _LOADED_WHEN_NAMED:
        return importlib.import_module(f"axir.experimental.{name}")
    raise AttributeError(f"module 'axir.experimental' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
