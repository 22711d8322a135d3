"""Modules of JAX that only name parts of axir: a row for each, and the modules that rows become.

They are not public in JAX, or are of other years; libraries import them. A row of `MODULES` has the
sources of the names, and `ALIASES` has those that are modules of axir's under another name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType

from axir._made_modules import LazyModule
from axir._primitive_names import primitive_named
from axir.dialect.builders.stablehlo.dialect_attributes import ATTRIBUTES
from axir.dialect.builders.stablehlo.operation_classes import class_names, operation_named
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import Array, ConcreteArray
from axir.dialect.core.dialect_modules import bindings_of
from axir.dialect.program.tracer import Tracer

HERE = "axir._as_jax"
_NUMBERS, _PROGRAMS = f"{HERE}.numbers", f"{HERE}.programs"
_CONTAINERS, _OF_2020 = f"{HERE}.containers", f"{HERE}.names_of_2020"
_VERSION = {HERE: "__version__ __version_info__"}
_TYPES = "axir.dialect.core.array"

# By module below `axir._as_jax`: from where it has which names. `name=other` renames another one,
# `*` is all of the source. The names of the source `primitives` are those of primitives.
MODULES: Mapping[str, Mapping[str, str]] = {
    "version": {HERE: "JAX_VERSION __version__ __version_info__"},
    "jaxlib": _VERSION,
    # Classes for libraries' annotations.
    "jaxlib._jax": {
        "axir": "Device",
        "axir._transforms.jit_function": "PjitFunction=JitFunction",
        _TYPES: "ArrayImpl=ConcreteArray ConcreteArray",
    },
    "jaxlib.xla_client": {"axir": "Device", "axir.interpreters": "ops=_xla_ops"},
    "jaxlib.xla_extension": {
        "axir": "Device",
        "axir._transforms.jit_function": "PjitFunction=JitFunction",
    },
    # The bindings of IREE's compiler: they build the operations of axir's lowering rules, so rules
    # of users' primitives may use them.
    "jaxlib.mlir": {"axir.dialect.core.context": "ir"},
    "jaxlib.mlir.dialects": {
        f"{HERE}.jaxlib.mlir.dialects": "hlo=stablehlo mhlo=stablehlo",
    },
    "jaxlib.mlir.dialects.chlo": {},
    "jaxlib.mlir.dialects.stablehlo": {},
    # Documents of 2020 use these. `ops` has the builders of operations for translation rules.
    "lib": _VERSION,
    "lib.xla_bridge": {
        "axir": "default_backend device_count devices host_id local_device_count local_devices "
        "process_count process_index",
    },
    "lib.xla_client": {
        "axir": "Device",
        "axir.errors": "XlaRuntimeError=JaxRuntimeError",
        "axir.interpreters": "ops=_xla_ops",
    },
    "older": {},
    "older.abstract_arrays": {"axir.core": "ShapedArray", _OF_2020: "raise_to_shaped"},
    "older.config": {"axir": "config"},
    "src": {},
    "src.ad_checkpoint": {"axir.ad_checkpoint": "*", "primitives": "remat_p"},
    # Sums of tangents are sums.
    "src.ad_util": {
        "axir.interpreters.ad": "Zero add_jaxvals instantiate=instantiate_zeros zeros_like_aval",
        "primitives": "add_any_p=add_p add_jaxvals_p=add_p stop_gradient_p",
    },
    "src.api_util": {"axir.api_util": "*", _PROGRAMS: "infer_argnums_and_argnames"},
    "src.array": {
        "axir": "Shard make_array_from_callback make_array_from_process_local_data "
        "make_array_from_single_device_arrays",
        _TYPES: "ArrayImpl=ConcreteArray",
    },
    "src.checkify": {
        "axir.experimental.checkify": "*",
        "axir.experimental.checkify._errors": "BatchedError DivisionByZeroError FailedCheckError "
        "JaxException=CheckFailure NaNError OOBError",
    },
    # Libraries replace it to forbid compilation.
    "src.compiler": {"axir.runtime.compiler": "backend_compile_and_load=compile_module"},
    "src.config": {
        "axir.dialect.core.config": "Config config make_user_context",
        _PROGRAMS: "State config_with_absl parse_flags_with_absl",
    },
    "src.core": {
        "axir._arguments.arguments": "get_aval=type_of",
        "axir.core": "AbstractValue ClosedJaxpr Jaxpr JaxprEqn Literal Primitive ShapedArray Trace "
        "Tracer Var eval_jaxpr jaxpr_as_fun pytype_aval_mappings",
        _TYPES: "Array",
        # Code that runs in no trace is an evaluation context.
        "axir.extend.core": "DropVar Effect TraceTag concrete_or_error "
        "eval_context=take_current_trace find_top_trace get_opaque_trace_state mapped_aval "
        "no_effects set_current_trace take_current_trace unmapped_aval valid_jaxtype",
        "axir.extend.core._tracing": "trace_state_clean",
        _PROGRAMS: "full_lower get_referent physical_aval",
        "axir.api_util": "safe_map",
        _CONTAINERS: "safe_zip",
        "primitives": "call_p",
    },
    "src.dispatch": {
        "axir._transforms.callbacks": "wait_for_tokens=effects_barrier",
        "axir.interpreters.xla": "apply_primitive",
    },
    "src.distributed": {
        "axir.distributed": "global_state=state initialize is_initialized shutdown"
    },
    "src.dtypes": {
        "numpy": "DType=dtype",
        "axir.dialect.core.extended_dtypes": "ExtendedDType=KeyDtype",
        "axir.dtypes": "TypePromotionError bfloat16 canonicalize_dtype extended finfo float0 iinfo "
        "issubdtype prng_key result_type scalar_type_of",
        _NUMBERS: "default_float_dtype default_int_dtype dtype itemsize_bits supports_inf "
        "to_complex_dtype to_inexact_dtype to_numeric_dtype",
    },
    "src.earray": {"axir.experimental": "EArray"},
    "src.effects": {
        "axir.extend.core": "Effect Effects no_effects",
        _PROGRAMS: "EffectTypeSet control_flow_allowed_effects custom_derivatives_allowed_effects "
        "lowerable_effects ordered_effects partial_eval_kept_effects remat_allowed_effects "
        "shardable_ordered_effects",
    },
    "src.flatten_util": {"axir.flatten_util": "ravel_pytree"},
    "src.interpreters": {},
    # A rule that closes over a value that is differentiated raises it.
    "src.interpreters.ad": {
        "axir.interpreters.ad": "*",
        "axir.dialect.core.errors": "CustomVJPException=UnexpectedTracerError",
    },
    "src.interpreters.batching": {
        "axir.interpreters.batching": "*",
        "axir._transforms.mapped_containers": "is_vmappable",
    },
    "src.lax": {"axir.lax": "*"},
    "src.literals": {
        _NUMBERS: "LiteralArray=TypedNdArray TypedComplex TypedFloat TypedInt TypedNdArray"
    },
    "src.numpy": {"axir.numpy": "*"},
    "src.numpy.util": {
        _NUMBERS: "check_arraylike ensure_arraylike promote_dtypes promote_dtypes_complex "
        "promote_dtypes_inexact promote_shapes",
        "axir.numpy._arguments.promotion": "promote_args=promote_arguments "
        "promote_args_inexact=promote_inexact promote_args_numeric=promote_numeric",
    },
    "src.pallas": {"axir.experimental.pallas": "*"},
    "src.pjit": {
        "axir.experimental.pjit": "*",
        "axir.sharding": "auto_axes explicit_axes reshard",
        _PROGRAMS: "UNSPECIFIED UnspecifiedValue",
        "primitives": "jit_p pjit_p=jit_p",
    },
    "src.pretty_printer": {_PROGRAMS: "Doc concat nil text"},
    "src.public_test_util": {"axir.test_util": "*", _CONTAINERS: "check_close"},
    "src.sharding_impls": {
        "axir.sharding": "*",
        _PROGRAMS: "UNSPECIFIED UnspecifiedValue canonicalize_sharding",
    },
    "src.state": {"axir.ref": "AbstractRef"},
    "src.state.indexing": {"axir.numpy._indexing.dynamic_slices": "Slice ds=dslice dslice"},
    "src.state.types": {"axir.ref": "AbstractRef"},
    "src.traceback_util": {
        "axir.dialect.core.context": "_exclude_paths=hidden_paths",
        _PROGRAMS: "api_boundary include_frame register_exclusion",
    },
    "src.tree_util": {
        "axir.tree_util": "* flatten_one_level",
        _CONTAINERS: "BuiltInKeyEntry RegistryEntry _registry prefix_errors",
    },
    "src.util": {
        "axir.api_util": "safe_map",
        _CONTAINERS: "HashablePartial partition_list safe_zip split_list unzip2 unzip3 wraps",
    },
    # There are no backends of XLA's here.
    "src.xla_bridge": {
        "axir": "default_backend device_count devices local_devices process_count process_index",
        "axir.extend.backend": "backends get_backend",
        _PROGRAMS: "_backends",
    },
}

# Modules of `jax._src` that are modules of axir's.
ALIASES = {
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
    **{f"lib{inside}": f"{HERE}.lib{inside}" for inside in ("", ".xla_bridge", ".xla_client")},
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
    **{
        f"interpreters.{name}": f"axir.interpreters.{name}"
        for name in ("mlir", "partial_eval", "pxla", "xla")
    },
    "linear_util": "axir.extend.linear_util",
    "monitoring": "axir.monitoring",
}

# Modules of the module `jax` of 2020, and names that it had.
MODULES_OF_2020 = {
    "jax.abstract_arrays": f"{HERE}.older.abstract_arrays",
    "jax.ad": "axir.interpreters.ad",
    "jax.ad_util": f"{HERE}.src.ad_util",
    "jax.api": "axir",
    "jax.batching": "axir.interpreters.batching",
    "jax.config": f"{HERE}.older.config",
    "jax.util": f"{HERE}.src.util",
    "jax.xla": "axir.interpreters.xla",
}
NAMES_OF_2020 = frozenset(
    "DeviceArray custom_transforms defjvp defjvp_all defvjp defvjp_all host_count host_ids "
    "xla_computation".split()
)


def _stablehlo(name: str) -> UserObject:
    """Returns an attribute or an operation: `hlo.AddOp(x, y).result`, `hlo.add(x, y)`.

    The functions of `axir.interpreters.mlir.hlo` infer the types of results.
    """
    found = ATTRIBUTES.get(name)
    return (
        operation_named("stablehlo", name, "jaxlib.mlir.dialects.stablehlo")
        if found is None
        else found
    )


def _chlo(name: str) -> UserObject:
    return operation_named("chlo", name, "jaxlib.mlir.dialects.chlo")


def _option(name: str) -> UserObject:
    return importlib.import_module(_PROGRAMS).option_named(name)


# Modules that also have names which no table lists, and the function that finds these.
_FINDERS: Mapping[str, Callable[[str], UserObject]] = {
    "jaxlib.mlir.dialects": bindings_of,
    "jaxlib.mlir.dialects.chlo": _chlo,
    "jaxlib.mlir.dialects.stablehlo": _stablehlo,
    "src.config": _option,
}
_LISTED: Mapping[str, Callable[[], list[str]]] = {
    "jaxlib.mlir.dialects.chlo": lambda: sorted(class_names("chlo")),
    "jaxlib.mlir.dialects.stablehlo": lambda: sorted([*ATTRIBUTES, *class_names("stablehlo")]),
}


class NamesModule(LazyModule):
    """The module of a row.

    Args:
        row: The row's key.
    """

    def __init__(self, row: str):
        is_package = any(other.startswith(f"{row}.") for other in (*MODULES, *_ALIASED))
        doc = f"A module of names for `import jax`; a row of `{__name__}`."
        listed = _LISTED.get(row, tuple)
        super().__init__(f"{HERE}.{row}", doc, MODULES[row], self._elsewhere, listed, is_package)
        self._row = row

    def _elsewhere(self, name: str) -> UserObject:
        inside = f"{self._row}.{name}"
        if inside in _ALIASED:
            return importlib.import_module(_ALIASED[inside])
        return _FINDERS[self._row](name) if self._row in _FINDERS else None

    def value(self, source: str, name: str) -> UserObject:
        """Returns the value of a name in a source, under JAX's name of its module."""
        if source == "primitives":
            return primitive_named(name)
        value = super().value(source, name)
        if not isinstance(value, ModuleType):
            rename(value)
        return value


_ALIASED = {f"src.{name}": place for name, place in ALIASES.items()}
for _row in MODULES:
    NamesModule(_row)


# The module names of classes and functions --------------------------------------------------------

# Libraries read `__module__` of an array's class to find its library, and look there for functions.

_OURS = "axir"
# JAX's modules for the classes of arrays. Libraries look only at the first word.
_ARRAYS = {
    Array: "jax",
    ConcreteArray: "jaxlib._jax",
    Tracer: "jax._src.core",
}


def rename_arrays() -> None:
    """Sets the `__module__` of array classes to JAX's modules."""
    for kind, module in _ARRAYS.items():
        kind.__module__ = module


def rename(value: object) -> None:
    """Sets the `__module__` of a class or function to JAX's module of the same name.

    For a module, it does so for all its classes and functions.
    """
    if isinstance(value, ModuleType):
        if value.__name__.startswith(f"{_OURS}."):
            rename_all(value)
        return
    if not isinstance(value, (type, FunctionType)):
        return
    own = value.__module__ or ""
    if own == _OURS or own.startswith(f"{_OURS}."):
        value.__module__ = "jax" + own.removeprefix(_OURS)


def rename_all(module: ModuleType) -> None:
    """Renames the public classes and functions of a module."""
    for name, value in list(vars(module).items()):
        if not name.startswith("_") and not isinstance(value, ModuleType):
            rename(value)
