"""The samples hold the values at which ops often go wrong, or a reason for their absence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.op_cases import Case, cases_of, sampled_ops

from axir.dialect.core import dtypes
from axir.dialect.ops import OPS

# The edges of each kind of operand.
_FLOAT = {"nan", "inf", "-inf", "-0.0"}
_COMPLEX = {"nan part", "infinite part", "-0.0 part"}
_INTEGER = {"greatest integer", "least integer"}
_SHAPES = {"empty", "rank 0", "rank 6"}

# Calls and loops only pass values on, to the functions that they hold, or to none.
_CALLS = {
    "jit", "checkpoint", "custom_jvp_call", "custom_vjp_call",
    "custom_vmap_call", "dce_sink", "linear_call", "custom_linear_solve", "shard_map",
    "name", "scatter_apply",
}  # fmt: skip
# For combined infinities, results depend on the order of LAPACK's and pocketfft's operations.
_MATRICES = {
    "triangular_solve", "cholesky", "eigh", "lu", "eig", "lu_solve", "qr", "geqrf",
    "householder_product", "schur", "hessenberg", "tridiagonal", "svd", "tridiagonal_solve", "fft",
}  # fmt: skip
# Ops along an axis, which a scalar does not have.
_ALONG_AXIS = {
    "argmax", "argmin", "iota", "concatenate", "split", "unstack", "sort", "top_k", "cumsum",
    "cumprod", "cummax", "cummin", "cumlogsumexp", "linear_recurrence", "conv_general_dilated",
    "lu_pivots_to_permutation",
}  # fmt: skip
# Functions of complex numbers without a standard for their edges, or products of such.
_FORMULAS = {"pow", "atan2", "integer_pow", "dot_general", "conv_general_dilated"}
_REASONS: list[tuple[set[str], set[str]]] = [
    (_CALLS, _FLOAT | _COMPLEX | _INTEGER | _SHAPES),
    (_MATRICES, (_FLOAT - {"nan"}) | _COMPLEX | _INTEGER | {"rank 0"}),
    (_ALONG_AXIS, {"rank 0"}),
    (_FORMULAS, _COMPLEX),
    ({"conv_general_dilated"}, {"-0.0"}),
    ({"fft"}, {"nan"}),  # of complex numbers it is there
    ({"hessenberg", "tridiagonal"}, {"empty"}),  # which they refuse
    ({"random_wrap"}, {"rank 0"}),  # words have an axis
    ({"rng_bit_generator"}, _SHAPES),  # as have states, of one shape
    ({"iota"}, _FLOAT | _COMPLEX | _INTEGER),
    ({"dim_as_value"}, _INTEGER | {"empty", "rank 6"}),  # one number, how large something is
    # Pivots are rows of the matrix.
    ({"lu_pivots_to_permutation"}, _INTEGER | {"rank 6"}),
    # Functions of the user's; the samples have the logarithm of a sum and similar ones.
    ({"reduce", "reduce_window", "select_and_scatter"}, _FLOAT | _INTEGER),
]


def _values(case: Case) -> list[np.ndarray]:
    """Operands, and arrays among the parameters; for ops with neither, the results."""
    arrays = [*case.args, *(v for v in case.params.values() if isinstance(v, np.ndarray))]
    return arrays or [np.asarray(case.primitive.evaluate(**case.params))]


def _found(x: np.ndarray) -> Iterator[str]:
    shapes = {"empty": x.size == 0, "rank 0": x.ndim == 0, "rank 6": x.ndim >= 6}
    kind = dtypes.kind(x.dtype)
    facts: dict[str, bool] = {}
    if kind == "f":
        wide = x.astype(np.float64)
        is_negative_zero = (wide == 0) & np.signbit(wide)
        facts = {"nan": np.isnan(wide).any(), "inf": np.isposinf(wide).any()}
        facts |= {"-inf": np.isneginf(wide).any(), "-0.0": is_negative_zero.any()}
    elif kind == "c":
        parts = np.stack([x.real, x.imag])
        facts = {"nan part": np.isnan(parts).any(), "infinite part": np.isinf(parts).any()}
        facts["-0.0 part"] = ((parts == 0) & np.signbit(parts)).any()
    elif kind in "iu":
        limits = np.iinfo(x.dtype)
        facts = {"greatest integer": (x == limits.max).any()}
        facts["least integer"] = (x == limits.min).any()
    return (name for name, holds in {**shapes, **facts}.items() if holds)


@pytest.mark.parametrize("name", sampled_ops())
def test_samples_hold_the_edges(name: str) -> None:
    arrays = [x for case in cases_of(name) for x in _values(case)]
    kinds = {dtypes.kind(x.dtype) for x in arrays}
    wanted = set(_SHAPES)
    for members, edges in (("f", _FLOAT), ("c", _COMPLEX), ("iu", _INTEGER)):
        if kinds & set(members):
            wanted |= edges
    excused = {edge for names, edges in _REASONS if name in names for edge in edges}
    found = {fact for x in arrays for fact in _found(x)}
    assert wanted - found <= excused, sorted(wanted - found - excused)


def test_excuses_are_needed() -> None:
    assert {name for names, _ in _REASONS for name in names} <= set(OPS)
