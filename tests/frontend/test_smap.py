"""`smap`: one axis of a mesh at a time, on a mesh without devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.errors import AxisError, ParameterError
from axir.sharding import AbstractMesh, use_abstract_mesh

TABLE = jnp.arange(16.0).reshape(4, 4)


@pytest.fixture(autouse=True)
def mesh() -> Iterator[None]:
    with use_abstract_mesh(AbstractMesh((2, 2), ("x", "y"))):
        yield


def sums(x: np.ndarray, axis: int) -> np.ndarray:
    """Returns cumulative sums of the two halves along an axis."""
    return np.concatenate([half.cumsum(axis) for half in np.split(x, 2, axis)], axis)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_parts_along_one_axis(axis: int) -> None:
    mapped = axir.smap(lambda x: x.cumsum(axis), in_axes=axis, out_axes=axis, axis_name="y")
    np.testing.assert_array_equal(axir.jit(mapped)(TABLE), sums(np.asarray(TABLE), axis))


def test_smap_within_smap_and_arguments_that_are_whole() -> None:
    @axir.smap(in_axes=({"part": 0, "whole": None},), out_axes=0, axis_name="x")
    def outer(given: dict[str, axir.Array]) -> axir.Array:
        inner = axir.smap(
            lambda q: q.cumsum(0) + lax.psum(q.sum(), "y"), in_axes=1, out_axes=1, axis_name="y"
        )
        return inner(given["part"]) + given["whole"].sum()

    found = axir.jit(outer)({"part": TABLE, "whole": TABLE})
    halves = [half.cumsum(0) + half.sum() for half in np.split(np.asarray(TABLE), 2)]
    np.testing.assert_array_equal(found, np.concatenate(halves) + np.asarray(TABLE).sum())
    total = axir.smap(lambda x: lax.psum(x, "x"), in_axes=0, out_axes=None, axis_name="x")
    np.testing.assert_array_equal(total(TABLE), TABLE[:2] + TABLE[2:])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"in_axes": 0.5}, ParameterError, "in_axes must be an integer, None, or made of them"),
        ({"in_axes": 5}, AxisError, "smap: axis 5 is out of bounds"),
        ({"axis_name": ("x", "y")}, ParameterError, "axis_name must be one name"),
    ],
)
def test_wrong_axes(options: dict[str, Any], error: type[Exception], message: str) -> None:
    def apply(f: Callable[..., Any]) -> Any:
        chosen: Any = {"in_axes": 0, "out_axes": 0, "axis_name": "x", **options}
        return axir.smap(f, **chosen)(TABLE)

    with pytest.raises(error, match=message):
        apply(lambda x: x)
