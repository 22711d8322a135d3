"""What JAX offers as `jax.experimental`, under the same names.

Modules load when they are named.
"""

from __future__ import annotations

import importlib
from typing import NoReturn

from axir._made_modules import LazyModule
from axir._transforms.callbacks import io_callback
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import Array
from axir.dialect.core.config import enable_x64
from axir.dialect.core.errors import DTypeError

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


class EArray(Array):
    """An array with a dtype added by a library. No array is an instance.

    Arrays of keys have the class of all arrays, although their dtype is not numeric.

    Raises:
        DTypeError: when one is made.

    >>> import axir
    >>> isinstance(axir.random.key(0), axir.experimental.EArray)
    False
    """

    def __new__(cls, aval: object, data: object) -> NoReturn:
        """Raises."""
        raise DTypeError(
            f"EArray: {aval} is no type of arrays here: dtypes are those of numbers and of keys.",
            "Keep the numbers in a container of your own, registered as a tree.",
        )


# Modules of names that are elsewhere.
for _module, _sources in {
    "optimizers": {"axir.example_libraries.optimizers": "*"},
    "overlap": {f"{__name__}._decorators": "program_order"},
    "pjit": {
        "axir._transforms.jit": "pjit=jit",
        "axir._transforms.sharded": "with_sharding_constraint",
        "axir.sharding": "PartitionSpec",
    },
    "stax": {"axir.example_libraries.stax": "*"},
    "vectorize": {f"{__name__}._decorators": "vectorize"},
}.items():
    _path = f"{__name__}.{_module}"
    LazyModule(_path, f"Names of `{_path.replace('axir', 'jax', 1)}`.", _sources)


def __getattr__(name: str) -> UserObject:
    if name in _LOADED_WHEN_NAMED:
        return importlib.import_module(f"axir.experimental.{name}")
    raise AttributeError(f"module 'axir.experimental' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
