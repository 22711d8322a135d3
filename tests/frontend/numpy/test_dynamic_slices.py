"""`ds`: slices with a computed start, combined with every other index, read and updated."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jax_numpy
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.errors import ConcretizationTypeError, IndexTypeError
from axir.numpy._indexing.dynamic_slices import Slice, SliceSizeError, SliceStrideError

ROW, TABLE = np.arange(10), np.arange(12).reshape(3, 4)


def indices(ds: Any, i: Any, xp: Any) -> list[tuple[np.ndarray, Any]]:
    rows = xp.array([0, 2])
    return [
        (ROW, ds(i, 2)), (ROW, ds(i + 5, 2)), (ROW, ds(9, 2)), (ROW, ds(3)), (ROW, ds(i, 2, 2)),
        (ROW, ds(5, 3, 3)), (ROW, ds(i, 3, 0)),
        (ROW, ds(None)), (ROW, ds(i, 0)), (TABLE, (ds(i, 2), 1)), (TABLE, (1, ds(i, 2))),
        (TABLE, (ds(0, 2), ds(i, 2))), (TABLE, (rows, ds(1, 2))), (TABLE, (..., ds(i - 3, 2))),
        (TABLE, (None, ds(1, 2))), (TABLE, (slice(None), ds(i, 2), None)),
        (TABLE, (slice(None, None, -1), ds(i - 4, 2))), (TABLE, (i - 3, ds(1, 2))),
        (TABLE, (ds(i - 4, 2), rows)),
    ]  # fmt: skip


def results(package: Any, xp: Any, i: Any) -> list[Any]:
    """Returns what each index reads, and arrays that are updated there."""
    found = []
    for x, index in indices(package.ds, i, xp):
        at = xp.asarray(x).at[index]
        found += [
            xp.asarray(x)[index],
            at.set(100),
            at.add(100, mode="clip"),
            at.multiply(3),
            at.apply(lambda part: -part),
            at.get(mode="fill", fill_value=-5),
        ]
    return found


def test_slices_read_and_update_as_in_jax_eager_and_compiled() -> None:
    expected = jax.jit(lambda i: results(jax, jax_numpy, i))(4)
    for found in (
        results(axir, jnp, jnp.int32(4)),
        axir.jit(lambda i: results(axir, jnp, i))(4),
        axir.jit(lambda i: results(axir, jnp, i))(np.int8(4)),
    ):
        assert len(found) == len(expected)
        for n, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            np.testing.assert_array_equal(ours, theirs, err_msg=str(n))


def test_negative_starts_count_from_the_end_in_updates_too() -> None:
    for start in (-3, jnp.int32(-3)):
        np.testing.assert_array_equal(jnp.asarray(ROW)[axir.ds(start, 2)], [7, 8])
        updated = jnp.asarray(ROW).at[axir.ds(start, 2)].set(0)
        np.testing.assert_array_equal(updated[-4:], [6, 0, 0, 9])


def test_slices_have_derivatives_and_are_vectorized() -> None:
    x = jnp.arange(6.0)
    gradient = axir.grad(lambda x, i: (x[axir.ds(i, 3)] ** 2).sum())(x, 1)
    np.testing.assert_array_equal(gradient, [0, 2, 4, 6, 0, 0])
    windows = axir.vmap(lambda i: x[axir.ds(i, 2)])(jnp.arange(3))
    np.testing.assert_array_equal(windows, [[0, 1], [1, 2], [2, 3]])


def test_refs_take_slices() -> None:
    ref = axir.new_ref(jnp.zeros(5))
    ref[axir.ds(jnp.int32(1), 2)] = jnp.ones(2)
    np.testing.assert_array_equal(ref[...], [0, 1, 1, 0, 0])
    np.testing.assert_array_equal(ref[axir.ds(jnp.int32(2), 2)], [1, 0])


def test_a_slice_is_a_tree_of_what_is_computed() -> None:
    assert axir.tree.leaves(axir.ds(1, 2)) == []
    (start,) = axir.tree.leaves(axir.ds(jnp.int32(1), 2))
    assert start == 1
    x = jnp.arange(5)
    np.testing.assert_array_equal(axir.jit(lambda part: x[part])(axir.ds(jnp.int32(1), 2)), [1, 2])
    assert Slice.from_slice(slice(1, 9, 3), 8) == Slice(1, 3, 3)
    assert axir.ds(1, 2).is_dynamic_start is axir.ds(1, 2).is_dynamic_size is False


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: axir.ds(0, 2, -1), SliceStrideError, "cannot have the stride -1"),
        (lambda: axir.ds(0, 2, jnp.int32(2)), SliceStrideError, "stride of a slice must be an int"),
        (lambda: Slice.from_slice(slice(None, None, -1), 3), SliceStrideError, "has the step -1"),
        (lambda: jnp.ones(3)[axir.ds(0, 5)], SliceSizeError, "size 5 is longer than axis 0"),
        (lambda: jnp.ones(3)[axir.ds(0.5, 2)], IndexTypeError, "must be an integer scalar, not of"),
        (
            lambda: axir.jit(lambda n: jnp.ones(3)[axir.ds(0, n)])(2),
            ConcretizationTypeError,
            "size of a slice is not known",
        ),
    ],
)
def test_wrong_slices(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
