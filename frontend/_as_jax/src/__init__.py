"""Names of `jax._src` that libraries use: they are not public in JAX, and cost nothing here.

Modules with public names elsewhere are rows of `MODULES`. The others have only the names that
libraries in use need.
"""

from __future__ import annotations

import importlib
from types import ModuleType

# Modules of `jax._src`, and the public ones that have their names.
MODULES = {
    "api": "axir",
    "basearray": "axir",
    "callback": "axir.experimental",
    "custom_batching": "axir.custom_batching",
    "custom_derivatives": "axir.custom_derivatives",
    "debugging": "axir.debug",
    "dlpack": "axir.dlpack",
    "errors": "axir.errors",
    "export": "axir.export",
    "hijax": "axir.experimental.hijax",
    "image": "axir.image",
    "indexing": "axir.numpy._indexing.dynamic_slices",
    "lib": "axir._as_jax.lib",
    "lib.xla_bridge": "axir._as_jax.lib.xla_bridge",
    "lib.xla_client": "axir._as_jax.lib.xla_client",
    "mesh": "axir.sharding",
    "mesh_utils": "axir.experimental.mesh_utils",
    "named_sharding": "axir.sharding",
    "nn": "axir.nn",
    "nn.functions": "axir.nn",
    "ops": "axir.ops",
    "ops.scatter": "axir.ops",
    **{
        f"pallas.{name}": "axir.experimental.pallas"
        for name in "core helpers pallas_call primitives utils".split()
    },
    **{
        f"pallas.{place}": f"axir.experimental.pallas.{name}"
        for place, name in (
            ("mosaic", "tpu"),
            ("mosaic.core", "tpu"),
            ("mosaic.primitives", "tpu"),
            ("mosaic_gpu", "mosaic_gpu"),
            ("mosaic_gpu.core", "mosaic_gpu"),
            ("triton", "triton"),
            ("triton.primitives", "triton"),
        )
    },
    "partition_spec": "axir.sharding",
    "prng": "axir.extend.random",
    "profiler": "axir.profiler",
    "random": "axir.random",
    "scipy": "axir.scipy",
    "shard_map": "axir.experimental.shard_map",
    "sharding": "axir.sharding",
    "source_info_util": "axir.extend.source_info_util",
    "stages": "axir.stages",
    "state.discharge": "axir.experimental.pallas",
    "state.primitives": "axir.ref",
    "tree": "axir.tree",
    "typing": "axir.typing",
    **{
        f"lax.{name}": "axir.lax"
        for name in "ann control_flow convolution fft lax other slicing special utils "
        "windowed_reductions".split()
    },
    "lax.linalg": "axir.lax.linalg",
    "lax.parallel": "axir.lax.parallel",
    **{
        f"numpy.{name}": "axir.numpy"
        for name in "array_creation array_methods einsum indexing lax_numpy polynomial "
        "reductions setops sorting tensor_contractions ufuncs vectorize window_functions".split()
    },
    "numpy.fft": "axir.numpy.fft",
    "numpy.linalg": "axir.numpy.linalg",
}


def load(package: str, name: str) -> ModuleType:
    """Returns a module of a package of `jax._src`.

    Args:
        package: The package, by its name here.
        name: The module in it.

    Raises:
        AttributeError: if it does not exist.
    """
    path = f"{package}.{name}".removeprefix(f"{__name__}.")
    try:
        return importlib.import_module(MODULES.get(path) or f"{package}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {package!r} (jax._src) has no attribute {name!r}") from None


def __getattr__(name: str) -> ModuleType:
    # JAX imports all of these automatically.
    return load(__name__, name)
