"""axir: NumPy programs as MLIR that you can read, transform and ship.

The names are JAX's: what `import jax` and `import jax.numpy as jnp` offer stands here and in
`axir.numpy`. Packages that a program may not need are loaded when they are first named.

>>> import axir, axir.numpy as jnp
>>> axir.grad(lambda x: jnp.sin(x) ** 2)(0.0)
Array(0., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import importlib
from typing import Any

from axir import numpy, tree
from axir.autodiff import grad, jvp, linearize, value_and_grad, vjp
from axir.devices import (
    Device,
    block_until_ready,
    default_backend,
    device_count,
    device_get,
    device_put,
    devices,
    local_devices,
)
from axir.dialect import dtypes, errors
from axir.dialect.array import Array
from axir.dialect.config import (
    config,
    debug_infs,
    debug_nans,
    default_device,
    default_matmul_precision,
    disable_jit,
    enable_x64,
    log_compiles,
    numpy_dtype_promotion,
    numpy_rank_promotion,
    threefry_partitionable,
)
from axir.jacobian import hessian, jacfwd, jacrev
from axir.jit import jit
from axir.staging import ShapeDtypeStruct, eval_shape, make_jaxpr
from axir.vectorize import vmap

__version__ = "0.1.0"

jacobian = jacrev

_LOADED_WHEN_NAMED = frozenset(
    ("core", "export", "interpreters", "lax", "nn", "random", "scipy", "tree_util")
)

__all__ = [
    "Array",
    "Device",
    "ShapeDtypeStruct",
    "block_until_ready",
    "config",
    "core",
    "debug_infs",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "dtypes",
    "enable_x64",
    "errors",
    "eval_shape",
    "export",
    "grad",
    "hessian",
    "interpreters",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linearize",
    "local_devices",
    "log_compiles",
    "make_jaxpr",
    "nn",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "random",
    "threefry_partitionable",
    "tree",
    "tree_util",
    "value_and_grad",
    "vjp",
    "vmap",
]


def __getattr__(name: str) -> Any:
    if name in _LOADED_WHEN_NAMED:
        return importlib.import_module(f"axir.{name}")
    raise AttributeError(f"module 'axir' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
