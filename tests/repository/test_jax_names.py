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
# Names that axir does not have, by module.
LEFT_OUT: dict[str, dict[str, str]] = {
    "jax.custom_derivatives": {"remat_opt_p": _MADE_OF_OTHERS},
    "jax.errors": {
        "InconclusiveDimensionOperation": "shapes are numbers; there are no symbolic dimensions",
        "KeyReuseError": "keys are not followed",
    },
    "jax.lax": {
        "after_all_p": _MADE_OF_OTHERS,
        "approx_top_k_p": _MADE_OF_OTHERS,
        "create_token_p": _MADE_OF_OTHERS,
        "device_put_p": "arrays are moved before a program runs, not inside of it",
        "eq_to_p": _MADE_OF_OTHERS,
        "le_to_p": _MADE_OF_OTHERS,
        "lt_to_p": _MADE_OF_OTHERS,
        "precv": _GPU,
        "psend": _GPU,
        "ragged_all_to_all_p": _MADE_OF_OTHERS,
        "rng_uniform_p": _MADE_OF_OTHERS,
        "scatter_sub_p": _MADE_OF_OTHERS,
        "sharding_constraint_p": "arrays lie on one device",
        "stage_p": _MADE_OF_OTHERS,
    },
    "jax.lax.linalg": {
        "cholesky_update_p": _MADE_OF_OTHERS,
        "ormqr_p": _MADE_OF_OTHERS,
        "symmetric_product_p": _MADE_OF_OTHERS,
    },
    "jax.random": {"random_gamma_p": _MADE_OF_OTHERS},
    "jax.tree_util": {"default_registry": "the registry is that of optree"},
}
# Modules, with what is inside, that are still to come. Whoever makes one drops its line here, and
# says above what it leaves out.
TO_COME = (
    "jax.ad_checkpoint", "jax.api_util", "jax.core", "jax.debug", "jax.distributed", "jax.dlpack",
    "jax.example_libraries", "jax.experimental", "jax.export", "jax.extend", "jax.ffi",
    "jax.image", "jax.interpreters", "jax.lib", "jax.monitoring", "jax.profiler", "jax.ref",
    "jax.scipy", "jax.sharding",
)  # fmt: skip
GOAL = 0.97


def is_to_come(module: str) -> bool:
    return any(module == name or module.startswith(name + ".") for name in TO_COME)


PRESENT = [m for m in jax_names.modules() if m != "jax" and not is_to_come(m)]


@pytest.mark.parametrize("module", PRESENT)
def test_what_is_missing_is_left_out_on_purpose(module: str) -> None:
    missing = jax_names.missing_names(module)
    assert missing == sorted(LEFT_OUT.get(module, {}))


def test_most_names_are_there() -> None:
    names = sum(len(jax_names.public_names(module)) for module in PRESENT)
    missing = sum(len(jax_names.missing_names(module)) for module in PRESENT)
    assert names > 1000
    assert 1 - missing / names >= GOAL


def test_modules_to_come_are_missed() -> None:
    """Finds lines of `TO_COME` that are no longer true."""
    offered = {module: jax_names.missing_names(module) for module in jax_names.modules()}
    for name in TO_COME:
        inside = [m for m in offered if m == name or m.startswith(name + ".")]
        names = sum(len(jax_names.public_names(module)) for module in inside)
        assert not names or any(offered[module] for module in inside), f"{name} is there"


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
