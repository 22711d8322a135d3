"""axir: NumPy programs as MLIR that you can read, transform and ship.

The names are JAX's: this module has the names of `jax`, and `axir.numpy` has the names of
`jax.numpy`. Packages that a program may not need are loaded when they are first named.

>>> import axir, axir.numpy as jnp
>>> axir.grad(lambda x: jnp.sin(x) ** 2)(0.0)
Array(0., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from axir._importing import paused_collection

with paused_collection():
    from axir import dtypes, errors, numpy, tree
    from axir._devices.placement import (
        Device,
        block_until_ready,
        copy_to_host_async,
        default_backend,
        device_count,
        device_get,
        device_put,
        devices,
        host_count,
        host_id,
        host_ids,
        live_arrays,
        local_device_count,
        local_devices,
        print_environment_info,
        process_count,
        process_index,
        process_indices,
    )
    from axir._devices.shape_dtype_struct import ShapeDtypeStruct
    from axir._made_modules import LazyModule as _LazyModule
    from axir._transforms.autodiff import fwd_and_bwd, grad, jvp, linearize, value_and_grad, vjp
    from axir._transforms.callbacks import effects_barrier, pure_callback
    from axir._transforms.checkpointing import checkpoint_policies, remat
    from axir._transforms.jacobian import hessian, jacfwd, jacrev
    from axir._transforms.jit import clear_caches, jit
    from axir._transforms.parallel import pmap
    from axir._transforms.staging import (
        ensure_compile_time_eval,
        eval_shape,
        make_jaxpr,
        named_call,
        named_scope,
        typeof,
    )
    from axir._transforms.vectorize import vmap
    from axir.custom_derivatives import (
        closure_convert,
        custom_gradient,
        custom_jvp,
        custom_vjp,
        linear_transpose,
    )
    from axir.dialect.core.annotations import UserObject
    from axir.dialect.core.array import Array
    from axir.dialect.core.config import (
        allow_f16_reductions,
        array_garbage_collection_guard,
        auto_pcast,
        check_tracer_leaks,
        checking_leaks,
        config,
        debug_infs,
        debug_key_reuse,
        debug_nans,
        default_device,
        default_matmul_precision,
        default_prng_impl,
        disable_jit,
        enable_checks,
        enable_custom_prng,
        enable_x64,
        explain_cache_misses,
        legacy_prng_key,
        log_compiles,
        make_user_context,
        no_execution,
        no_tracing,
        numpy_dtype_promotion,
        numpy_rank_promotion,
        remove_size_one_mesh_axis_from_type,
        softmax_custom_jvp,
        thread_guard,
        threefry_partitionable,
        transfer_guard,
        transfer_guard_device_to_device,
        transfer_guard_device_to_host,
        transfer_guard_host_to_device,
    )

if TYPE_CHECKING:  # loaded on first access; `checkpoint` is a module and a function
    from axir import (
        ad,
        ad_checkpoint,
        api_util,
        core,
        custom_batching,
        debug,
        distributed,
        dlpack,
        example_libraries,
        experimental,
        export,
        extend,
        ffi,
        flatten_util,
        image,
        interpreters,
        lax,
        monitoring,
        nn,
        ops,
        profiler,
        random,
        ref,
        scipy,  # noqa: F401 -- as in JAX, not by a star import
        sharding,
        stages,
        test_util,
        tree_util,
        typing,
    )
    from axir._devices.meshes import make_mesh
    from axir._devices.placed_arrays import (
        make_array_from_callback,
        make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )
    from axir._devices.placement import memory
    from axir._devices.sharding import Shard
    from axir._shard_mapping import shard_map, smap
    from axir._transforms.checkpointing import checkpoint
    from axir._transforms.static_arguments import CompilerEffortLevel, Inline
    from axir.extend import linear_util
    from axir.numpy._indexing.dynamic_slices import dslice as ds
    from axir.ref import Ref, empty_ref, free_ref, freeze, new_ref
    from axir.sharding import (
        NamedSharding,
        get_abstract_mesh,
        get_mesh,
        reshard,
        set_mesh,
        use_abstract_mesh,
    )
    from axir.sharding import PartitionSpec as P

__version__ = "0.1.0"

_LazyModule(f"{__name__}.linear_util", "An older name.", {"axir.extend.linear_util": "*"})
jacobian = jacrev
float0 = dtypes.float0

_LOADED_WHEN_NAMED = frozenset(
    (
        "ad",
        "ad_checkpoint",
        "api_util",
        "checkpoint",  # the function as well
        "core",
        "custom_batching",
        "debug",
        "dlpack",
        "example_libraries",
        "distributed",
        "experimental",
        "export",
        "extend",
        "flatten_util",
        "image",
        "ffi",
        "interpreters",
        "lax",
        "linear_util",
        "monitoring",
        "nn",
        "ops",
        "profiler",
        "random",
        "ref",
        "scipy",
        "sharding",
        "stages",
        "test_util",
        "tree_util",
        "typing",
    )
)

# By their names, where names are that load when they are asked for.
_PLACES = {
    "Ref": "axir.ref",
    "Shard": "axir._devices.sharding",
    "ds": "axir.numpy._indexing.dynamic_slices",
    "empty_ref": "axir.ref",
    "free_ref": "axir.ref",
    "freeze": "axir.ref",
    "new_ref": "axir.ref",
    "NamedSharding": "axir.sharding",
    "P": "axir.sharding",
    "make_array_from_callback": "axir._devices.placed_arrays",
    "make_array_from_process_local_data": "axir._devices.placed_arrays",
    "make_array_from_single_device_arrays": "axir._devices.placed_arrays",
    "CompilerEffortLevel": "axir._transforms.static_arguments",
    "Inline": "axir._transforms.static_arguments",
    "get_abstract_mesh": "axir.sharding",
    "get_mesh": "axir.sharding",
    "make_mesh": "axir._devices.meshes",
    "memory": "axir._devices.placement",
    "reshard": "axir.sharding",
    "set_mesh": "axir.sharding",
    "shard_map": "axir._shard_mapping",
    "smap": "axir._shard_mapping",
    "use_abstract_mesh": "axir.sharding",
}
_OTHER_NAMES = {"P": "PartitionSpec", "ds": "dslice"}

__all__ = [
    "Array", "CompilerEffortLevel", "Device", "Inline", "NamedSharding", "P", "Ref",
    "ShapeDtypeStruct", "Shard", "ad", "ad_checkpoint", "allow_f16_reductions", "api_util",
    "array_garbage_collection_guard", "auto_pcast", "block_until_ready", "check_tracer_leaks",
    "checking_leaks", "checkpoint", "checkpoint_policies", "clear_caches", "closure_convert",
    "config", "copy_to_host_async", "core", "custom_batching", "custom_derivatives",
    "custom_gradient", "custom_jvp", "custom_vjp", "debug", "debug_infs", "debug_key_reuse",
    "debug_nans", "default_backend", "default_device", "default_matmul_precision",
    "default_prng_impl", "device_count", "device_get", "device_put", "devices", "disable_jit",
    "distributed", "dlpack", "ds", "dtypes", "effects_barrier", "empty_ref", "enable_checks",
    "enable_custom_prng", "enable_x64", "ensure_compile_time_eval", "errors", "eval_shape",
    "example_libraries", "experimental", "explain_cache_misses", "export", "extend", "ffi",
    "flatten_util", "float0", "free_ref", "freeze", "fwd_and_bwd", "get_abstract_mesh", "get_mesh",
    "grad", "hessian", "host_count", "host_id", "host_ids", "image", "interpreters", "jacfwd",
    "jacobian", "jacrev", "jit", "jvp", "lax", "legacy_prng_key", "linear_transpose", "linear_util",
    "linearize", "live_arrays", "local_device_count", "local_devices", "log_compiles",
    "make_array_from_callback", "make_array_from_process_local_data",
    "make_array_from_single_device_arrays", "make_jaxpr", "make_mesh", "make_user_context",
    "memory", "monitoring", "named_call", "named_scope", "new_ref", "nn", "no_execution",
    "no_tracing", "numpy", "numpy_dtype_promotion", "numpy_rank_promotion", "ops", "pmap",
    "print_environment_info", "process_count", "process_index", "process_indices", "profiler",
    "pure_callback", "random", "ref", "remat", "remove_size_one_mesh_axis_from_type", "reshard",
    "set_mesh", "shard_map", "sharding", "smap", "softmax_custom_jvp", "stages", "test_util",
    "thread_guard", "threefry_partitionable", "transfer_guard", "transfer_guard_device_to_device",
    "transfer_guard_device_to_host", "transfer_guard_host_to_device", "tree", "tree_util", "typeof",
    "typing", "use_abstract_mesh", "value_and_grad", "vjp", "vmap",
]  # fmt: skip


def __getattr__(name: str) -> UserObject:
    if name in _LOADED_WHEN_NAMED:
        return importlib.import_module(f"axir.{name}")
    if name in _PLACES:
        found = getattr(importlib.import_module(_PLACES[name]), _OTHER_NAMES.get(name, name))
        globals()[name] = found
        return found
    raise AttributeError(f"module 'axir' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
