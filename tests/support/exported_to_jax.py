"""Programs that axir writes as StableHLO with open dimensions, as functions of `jax.export`."""

from __future__ import annotations

import jax
import numpy as np
from jax import export
from jax._src.interpreters import mlir
from jax._src.lib import _jax
from jax._src.lib.mlir.dialects import hlo

from axir.export import Exported


def to_jax(exported: Exported) -> export.Exported:
    """Returns a function that JAX calls, of the StableHLO of an exported function.

    Its arguments are flat, and its results a tuple.
    """
    constraints = exported.open.constraints if exported.open else ()
    scope = export.SymbolicScope(constraints)

    def aval(kind: jax.ShapeDtypeStruct) -> jax.core.ShapedArray:
        shape = export.symbolic_shape(", ".join(map(str, kind.shape)), scope=scope)
        return jax.core.ShapedArray(shape, np.dtype(kind.dtype))

    inputs, outputs = (tuple(map(aval, kinds)) for kinds in (exported.in_avals, exported.out_avals))
    text = exported.stablehlo()
    return export.Exported(
        fun_name=exported.fun_name,
        in_tree=jax.tree.structure(
            (inputs, {}), is_leaf=lambda x: isinstance(x, jax.core.ShapedArray)
        ),
        in_avals=inputs,
        out_tree=jax.tree.structure((0,) * len(outputs)),
        out_avals=outputs,
        _has_named_shardings=False,
        _in_named_shardings=(None,) * len(inputs),
        _out_named_shardings=(None,) * len(outputs),
        in_shardings_hlo=(None,) * len(inputs),
        out_shardings_hlo=(None,) * len(outputs),
        nr_devices=1,
        platforms=("cpu",),
        ordered_effects=(),
        unordered_effects=(),
        disabled_safety_checks=(),
        mlir_module_serialized=_serialized(text),
        calling_convention_version=export.maximum_supported_calling_convention_version,
        module_kept_var_idx=tuple(range(len(inputs))),
        uses_global_constants=True,
        _get_vjp=None,
    )


def _serialized(text: str) -> bytes:
    """Returns text as JAX saves it, which operations of `chlo` may be in."""
    with mlir.make_ir_context():
        module = mlir.ir.Module.parse(text)  # MLIR verifies it
        saved: bytes = _jax.mlir.serialize_portable_artifact(
            mlir.module_to_bytecode(module), hlo.get_current_version(), False
        )
    return saved
