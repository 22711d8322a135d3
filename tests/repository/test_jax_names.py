"""JAX's public names: axir has them, but for those that a table leaves out with the reason.

`tests/frontend/test_signatures.py` compares the parameters of functions. `python -m
support.jax_names`, run in `tests/`, prints what is missing, by module.
"""

from __future__ import annotations

import pytest
from support import jax_names

import axir

_MADE_OF_OTHERS = "no operation of its own: it is made of others when it is traced"
_GPU = "JAX has it for GPUs only"
_INSIDE = "what JAX's implementation is made of, in a module that is public"
_SYMBOLIC = "shapes are numbers; there are no symbolic dimensions"


def _each(names: str, reason: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


_XLA = "it is part of XLA"

# Names that axir does not have, by module.
LEFT_OUT: dict[str, dict[str, str]] = {
    "jax": {
        "ffi": _XLA,
        "jax2tf_associative_scan_reductions": "needs TensorFlow",
        "lib": "XLA's own modules; those of 2020 are there under axir.as_jax",
    },
    "jax.core": {
        **_each(
            "CallPrimitive JaxprPpContext JaxprPpSettings OutputType abstract_token "
            "aval_mapping_handlers call concretization_function_error custom_typechecks "
            "literalable_types no_axis_name trace_ctx",
            _INSIDE,
        ),
        "InconclusiveDimensionOperation": _SYMBOLIC,
    },
    "jax.custom_derivatives": {"remat_opt_p": _MADE_OF_OTHERS},
    "jax.errors": {"InconclusiveDimensionOperation": _SYMBOLIC},
    "jax.example_libraries.optimizers": _each("map zip", _INSIDE),
    "jax.experimental": {
        "EArray": _INSIDE,
        "cur_qdd": "values that are no arrays do not change here",
        "primal_tangent_dtype": "dtypes are those of arrays and keys; a library cannot add any",
    },
    "jax.experimental.jet": _each(
        "JetTrace JetTracer ZeroSeries ZeroTerm call_param_updaters "
        "deriv_prop jet_fun jet_subtrace linear_prop traceable zero_prop "
        "zero_term",
        _INSIDE,
    ),
    "jax.experimental.mesh_utils": _each("device_kind_handler_dict", _INSIDE),
    "jax.experimental.multihost_utils": {
        **_each(
            "global_array_to_host_local_array_impl global_array_to_host_local_array_p "
            "gtl_abstract_eval host_local_array_to_global_array_impl "
            "host_local_array_to_global_array_p ltg_abstract_eval ltg_batcher",
            _INSIDE,
        ),
        "ProcessFailureError": "there is one process",
    },
    "jax.experimental.ode": _each(
        "abs2 fit_4th_order_polynomial initial_step_size interp_fit_dopri map mean_error_ratio "
        "optimal_step_size ravel_first_arg ravel_first_arg_ runge_kutta_step zip",
        _INSIDE,
    ),
    "jax.experimental.rnn": _each(
        "PRNGKeyArray lstm_bwd lstm_fwd rnn_abstract_eval rnn_bwd_abstract_eval rnn_bwd_p "
        "rnn_fwd_p sigmoid tanh",
        _INSIDE,
    ),
    "jax.experimental.sparse": {"SparseTracer": _INSIDE},
    "jax.experimental.sparse.ad": _each("flatten_fun_for_sparse_ad is_sparse", _INSIDE),
    "jax.experimental.sparse.bcoo": _each(
        "BCOOProperties Buffer CUSPARSE_DATA_DTYPES CUSPARSE_INDEX_DTYPES", _INSIDE
    ),
    "jax.experimental.sparse.bcsr": {"BCSRProperties": _INSIDE},
    "jax.experimental.sparse.coo": {"Dtype": _INSIDE},
    "jax.experimental.sparse.transform": _each(
        "Array ArrayOrSparse SparseTrace SparseTracer SparsifyEnv SparsifyValue "
        "arrays_to_spvalues eval_sparse lax sparse sparse_rules_bcoo sparse_rules_bcsr "
        "sparsify_fun sparsify_raw sparsify_subtrace spvalues_to_arrays spvalues_to_avals",
        _INSIDE,
    ),
    "jax.experimental.sparse.util": _each("broadcasting_vmap nfold_vmap", _INSIDE),
    "jax.export": {
        **_each(
            "maximum_supported_calling_convention_version "
            "minimum_supported_calling_convention_version",
            _XLA,
        ),
    },
    "jax.extend": {
        **_each("lowering sharding xla", _XLA),
        "mlir": "MLIR's own Python bindings; axir's are those of iree.compiler",
        "pallas": "a kernel language for accelerators",
    },
    "jax.extend.backend": _each(
        "get_compile_options register_backend_cache register_backend_factory", _XLA
    ),
    "jax.extend.core": {
        **_each(
            "AbstractToken CallPrimitive Token TraceTag call_impl",
            _INSIDE,
        ),
        "InconclusiveDimensionOperation": _SYMBOLIC,
    },
    "jax.extend.core.primitives": {
        **_each(
            "empty2_p get_p swap_p",
            _MADE_OF_OTHERS,
        ),
    },
    "jax.extend.random": {"threefry_2x32": _INSIDE},
    "jax.interpreters.ad": {
        **_each("JVPTrace jvp linearize", _INSIDE),
    },
    "jax.interpreters.mlir": {
        **_each(
            "AxisContext ConstantHandler LoweringParameters LoweringResult MeshAxisName "
            "Mesh ModuleContext SPMDAxisContext ShapePolyLoweringState ShardingContext Token "
            "TokenSet core_call_lowering flatten_ir_types ir_tree_registry ir_type_handlers "
            "jaxpr_subcomp lower_jaxpr_to_fun lower_jaxpr_to_module lowerable_effects "
            "merge_mlir_modules register_constant_handler shape_tensor token_type "
            "unflatten_ir_values_like_types",
            _INSIDE,
        ),
        **_each("DEVICE_TO_DEVICE_TYPE RECV_FROM_HOST_TYPE SEND_TO_HOST_TYPE", _XLA),
    },
    "jax.interpreters.xla": {"Backend": _XLA},
    "jax.profiler": {"register_subprocess": "each process writes a trace of its own"},
    "jax.interpreters.partial_eval": _each(
        "dce_jaxpr_call_rule dce_jaxpr_closed_call_rule", _INSIDE
    ),
    "jax.lax": {
        "stage_p": _MADE_OF_OTHERS,
        **_each("precv psend", _GPU),
    },
}
GOAL = 0.97


PRESENT = list(jax_names.modules())


@pytest.mark.parametrize("module", PRESENT)
def test_what_is_missing_is_left_out_on_purpose(module: str) -> None:
    missing = jax_names.missing_names(module)
    assert missing == sorted(LEFT_OUT.get(module, {}))


def test_most_names_are_there() -> None:
    """Counts the names that programs use: not what JAX's implementation is made of."""
    inside = sum(list(names.values()).count(_INSIDE) for names in LEFT_OUT.values())
    names = sum(len(jax_names.public_names(module)) for module in PRESENT) - inside
    missing = sum(len(jax_names.missing_names(module)) for module in PRESENT) - inside
    assert names > 1500
    assert 1 - missing / names >= GOAL


@pytest.mark.parametrize(
    "name",
    [
        "numpy.NINF", "numpy.alltrue", "numpy.cumproduct", "numpy.in1d", "numpy.issubsctype",
        "numpy.msort", "numpy.product", "numpy.row_stack", "numpy.sometrue", "numpy.trapz",
        "random.shuffle", "nn.normalize", "ops.index", "ops.index_update", "ops.index_add",
        "ops.index_mul", "ops.index_min", "ops.index_max", "lax.tie_in", "tree_util.tree_multimap",
    ],
)  # fmt: skip
def test_names_of_older_documents_are_there(name: str) -> None:
    assert jax_names.function(axir, name) is not None


def test_the_counts_see_what_is_missing() -> None:
    assert "sin" in jax_names.public_names("jax.numpy")
    assert "np" not in jax_names.public_names("jax.numpy")
    assert "psend" in jax_names.missing_names("jax.lax")
