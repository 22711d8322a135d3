"""Keywords that JAX once had: they work, with a warning."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import axir.numpy as jnp
from axir.scipy import linalg

VALUES = np.array([1.0, 2.0, 4.0, np.nan], np.float32)


@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_interpolation_is_the_method(name: str) -> None:
    function: Any = getattr(jnp, name)
    x, q = VALUES[: 4 if "nan" in name else 3], 30 if "percent" in name else 0.3
    with pytest.warns(DeprecationWarning, match=f"{name}: the argument 'interpolation' is now"):
        found = function(x, q, interpolation="higher")
    assert float(found) == float(function(x, q, method="higher")) == 2.0
    assert "interpolation" not in inspect.signature(function).parameters


@pytest.mark.parametrize(("sym_pos", "assume_a"), [(True, "pos"), (False, "gen")])
def test_sym_pos_is_what_is_assumed(sym_pos: bool, assume_a: str) -> None:
    # Another upper triangle than lower shows which of them is read.
    a, b = np.array([[4.0, 9.0], [1.0, 3.0]], np.float32), np.ones(2, np.float32)
    with pytest.warns(DeprecationWarning, match="solve: the argument 'sym_pos' is now 'assume_a'"):
        found = linalg.solve(a, b, sym_pos=sym_pos, lower=True)
    expected = linalg.solve(a, b, assume_a=assume_a, lower=True)
    np.testing.assert_array_equal(found, expected)
