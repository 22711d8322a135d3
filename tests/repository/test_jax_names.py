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


# Names that axir does not have, by module.
LEFT_OUT: dict[str, dict[str, str]] = {
    "jax.custom_derivatives": {"remat_opt_p": _MADE_OF_OTHERS},
    "jax.errors": {
        "InconclusiveDimensionOperation": _SYMBOLIC,
        "KeyReuseError": "keys are not followed",
    },
    "jax.example_libraries.optimizers": _each(
        "Array InitFn Params ParamsFn Step UpdateFn Updates map zip", _INSIDE
    ),
    "jax.experimental.jet": _each(
        "JetTrace JetTracer ZeroSeries ZeroTerm call_param_updaters def_comp def_deriv deflinear "
        "defzero deriv_prop jet_fun jet_rules jet_subtrace linear_prop traceable zero_prop "
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
    "jax.extend.random": {"threefry_2x32": _INSIDE},
    "jax.interpreters.batching": _each("register_vmappable unregister_vmappable", _INSIDE),
    "jax.interpreters.partial_eval": _each(
        "dce_jaxpr_call_rule dce_jaxpr_closed_call_rule", _INSIDE
    ),
    "jax.lax": {
        **_each(
            "after_all_p approx_top_k_p create_token_p eq_to_p le_to_p lt_to_p "
            "ragged_all_to_all_p rng_uniform_p scatter_sub_p stage_p",
            _MADE_OF_OTHERS,
        ),
        **_each("precv psend", _GPU),
        "device_put_p": "arrays are moved before a program runs, not inside of it",
    },
    "jax.lax.linalg": _each("cholesky_update_p ormqr_p symmetric_product_p", _MADE_OF_OTHERS),
    "jax.random": {"random_gamma_p": _MADE_OF_OTHERS},
    "jax.tree_util": {"default_registry": "the registry is that of optree"},
}
# Modules that are still to come, or not complete. Whoever makes one drops its line here, and says
# above what it leaves out.
TO_COME = (
    "jax.ad_checkpoint", "jax.core", "jax.debug", "jax.dlpack", "jax.experimental",
    "jax.experimental.buffer_callback", "jax.experimental.compute_on",
    "jax.experimental.control_deps", "jax.experimental.custom_partitioning",
    "jax.experimental.fused", "jax.experimental.hijax", "jax.experimental.profiler",
    "jax.experimental.random", "jax.experimental.rnn", "jax.experimental.scheduling_groups",
    "jax.experimental.shard_alike", "jax.experimental.sparse", "jax.experimental.sparse.ad",
    "jax.experimental.sparse.api", "jax.experimental.sparse.bcoo", "jax.experimental.sparse.bcsr",
    "jax.experimental.sparse.coo", "jax.experimental.sparse.csr", "jax.experimental.sparse.linalg",
    "jax.experimental.sparse.random", "jax.experimental.sparse.transform",
    "jax.experimental.sparse.util", "jax.experimental.xla_metadata", "jax.export", "jax.extend",
    "jax.extend.backend", "jax.extend.core", "jax.extend.core.primitives", "jax.extend.lowering",
    "jax.extend.sharding", "jax.extend.xla", "jax.ffi", "jax.interpreters.ad",
    "jax.interpreters.mlir", "jax.interpreters.pxla", "jax.interpreters.xla", "jax.profiler",
)  # fmt: skip
GOAL = 0.97


PRESENT = [m for m in jax_names.modules() if m != "jax" and m not in TO_COME]


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


def test_modules_to_come_are_missed() -> None:
    """Finds lines of `TO_COME` that are no longer true."""
    assert [module for module in TO_COME if not jax_names.missing_names(module)] == []


def test_the_package_itself_misses_only_what_is_to_come() -> None:
    """Counts the names of `jax` that stand in no other module."""
    missing = jax_names.missing_names("jax")
    assert len(missing) < 0.4 * len(jax_names.public_names("jax"))


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
    assert "eq_to_p" in jax_names.missing_names("jax.lax")
