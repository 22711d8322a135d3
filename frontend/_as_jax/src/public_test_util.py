"""`jax._src.public_test_util`: the comparisons in tests of libraries."""

from __future__ import annotations

import numpy as np

from axir._trees import tree
from axir.dialect.core.annotations import Tree
from axir.dialect.core.array import ArrayLike
from axir.test_util import *  # noqa: F403

# Relative and absolute tolerances, by the dtype of lower precision.
_TOLERANCES = {"float64": 1e-15, "complex128": 1e-15, "float32": 1e-6, "complex64": 1e-6}
_COARSE = 1e-2


def check_close(
    xs: Tree,
    ys: Tree,
    atol: float | None = None,
    rtol: float | None = None,
    err_msg: str = "",
) -> None:
    """Raises an `AssertionError` if the arrays of two trees differ.

    Args:
        xs, ys: The trees.
        atol, rtol: How far elements may differ, absolutely and relatively to the elements of `ys`;
            by default within the precision of their dtypes.
        err_msg: A text to add to the error.

    >>> check_close({"a": np.float32(1.0)}, {"a": np.float32(1.0000001)})
    """

    def check(x: ArrayLike, y: ArrayLike) -> None:
        found, expected = np.asarray(x), np.asarray(y)
        known = [_TOLERANCES.get(str(a.dtype), _COARSE) for a in (found, expected)]
        default = 0.0 if found.dtype.kind in "biu" and expected.dtype.kind in "biu" else max(known)
        np.testing.assert_allclose(
            found,
            expected,
            rtol=default if rtol is None else rtol,
            atol=default if atol is None else atol,
            err_msg=err_msg,
        )

    tree.map(check, xs, ys)
