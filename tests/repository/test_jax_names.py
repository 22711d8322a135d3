"""JAX's public names and keywords: axir has them, except those left out for a reason.

They come from the installed JAX, and from the newest one, recorded in `jax_newest.json`.
`tests/frontend/test_signatures.py` compares the order of parameters. `python -m support.jax_names`
and `python -m support.jax_parity`, run in `tests/`, print missing names.
"""

from __future__ import annotations

import pytest
from support import jax_names, jax_parity, jax_record

import axir

GOAL = 0.99
PRESENT = list(jax_names.modules())
NEWEST = jax_parity.compare()
REASONS = jax_parity.left_out()


@pytest.mark.parametrize("module", PRESENT)
def test_what_is_missing_of_the_installed_jax_is_left_out_on_purpose(module: str) -> None:
    missing = [jax_parity.Missing(f"{module}.{name}") for name in jax_names.missing_names(module)]
    assert [m for m in missing if jax_parity.reason_for(m, REASONS) is None] == []


def test_most_names_and_keywords_of_the_newest_jax_are_there() -> None:
    """Counts names for programs, not parts of JAX's implementation."""
    assert NEWEST.total > 7000
    assert NEWEST.share >= GOAL
    assert len(NEWEST.on_purpose) < 0.04 * NEWEST.total


def test_names_that_raise_errors_do_not_count_as_there() -> None:
    """They are Pallas's for accelerators: a name that is imported, and an error when it is used."""
    names = {str(missing) for missing in NEWEST.elsewhere}
    tpu = "jax.experimental.pallas.tpu"
    assert {f"{tpu}.prng_seed", f"{tpu}.get_tpu_info_for_chip(chip_version)"} <= names
    assert not {name for name in names if not name.startswith("jax.experimental.pallas.")}
    assert not names & {str(missing) for missing in (*NEWEST.missing, *NEWEST.on_purpose)}
    assert len(names) < 0.04 * NEWEST.total


def test_nothing_is_left_out_that_is_there() -> None:
    """A reason counts for a name, a keyword, or all of a class or module."""
    lacking = {str(m) for m in NEWEST.on_purpose}
    lacking |= {
        f"{module}.{name}" for module in PRESENT for name in jax_names.missing_names(module)
    }
    used = {jax_parity.reason_for_name(name, REASONS) for name in lacking}
    assert sorted(set(REASONS) - used) == []


def test_a_keyword_that_is_missing_is_found() -> None:
    lacking = list(jax_parity.lacking("jax.numpy", "sum", ["a", "axis=", ",no_such=", "**options"]))
    assert [str(m) for m in lacking] == ["jax.numpy.sum(no_such)"]
    assert [str(m) for m in jax_parity.lacking("jax.numpy", "no_such", None)] == [
        "jax.numpy.no_such"
    ]


def test_what_is_recorded_of_a_function_are_its_parameters() -> None:
    def function(a: int, /, b: int, *c: int, d: int, e: int = 0, **f: int) -> None:
        raise AssertionError("it only has the parameters")

    assert jax_record.parameters(function) == ["/a", "b", "*c", ",d", ",e=", "**f"]
    assert jax_parity.keywords(["/a", "b", "*c", ",d", ",e=", "**f"]) == ["b", "d", "e"]


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
