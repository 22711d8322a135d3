"""The form of an op on a single row, by its rule `dimensions`: for all samples of all ops."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from axir._bundles.row_layouts import Parts, RefusedError, Rows, parts_of
from axir.dialect.core import dtypes
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.config import config
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.dimensions import Dimensions
from axir.dialect.program.equation import Equation, MadeEquation, Var
from axir.dialect.program.op_table import OPS
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive

NAMES = [name for name, primitive in OPS.items() if primitive.dimensions is not None]
SAMPLES_OF_EACH = 12


def _places(own: tuple[tuple[int, ...], ...], dimensions: Dimensions, factor: int) -> Rows | None:
    """Returns where an array has rows that are the places along a factor."""
    for place, factors in enumerate(own):
        if factor in factors:
            earlier = factors[: factors.index(factor)]
            return Rows(place, int(np.prod([dimensions.extents[f] for f in earlier], dtype=int)))
    return None


def _row(x: ConcreteArray, rows: Rows | None, count: int, number: int) -> ConcreteArray:
    if rows is None:
        return x
    shape, place, before = x.type.shape, rows.dimension, rows.before or 1
    behind = shape[place] // (before * count)
    split = x.host().reshape(*shape[:place], before, count, behind, *shape[place + 1 :])
    part = split.take(number, place + 1)
    part = part.reshape(*shape[:place], before * behind, *shape[place + 1 :])
    return ConcreteArray(x.type.update(shape=part.shape), np.ascontiguousarray(part))


def _cuts(
    equation: Equation, dimensions: Dimensions
) -> Iterator[tuple[int, list[Rows | None], Parts]]:
    """Yields numbers of rows, where operands have them, and the form of the op on one row."""
    for factor, count in dimensions.extents.items():
        rows = [_places(own, dimensions, factor) for own in dimensions.operands]
        if count < 2 or not any(rows):
            continue
        try:
            yield count, rows, parts_of(equation, dimensions, rows, count, [])
        except RefusedError:
            continue


def _applied(
    primitive: Primitive, values: list[ConcreteArray], params: dict
) -> list[ConcreteArray]:
    results = primitive.bind(*values, **params)
    return list(results) if primitive.multiple_results else [results]


def _compare(primitive: Primitive, sample: Sample) -> int:
    values = [as_array(x) for x in sample.args]
    wholes = _applied(primitive, values, sample.params)
    types: list[ShapedArray] = [x.type for x in wholes]
    dimensions = primitive.dimensions([x.type for x in values], types, **sample.params)
    if not isinstance(dimensions, Dimensions):
        return 0
    variables = [Var(x.type) for x in values], [Var(t) for t in types]
    equation = MadeEquation(*variables, primitive, sample.params)
    compared = 0
    for count, rows, parts in _cuts(equation, dimensions):
        for number in {0, count - 1}:
            given = [_row(x, own, count, number) for x, own in zip(values, rows, strict=True)]
            found = _applied(primitive, given, parts.params)
            for got, whole, own, shape in zip(found, wholes, parts.rows, parts.shapes, strict=True):
                assert got.type.shape == shape
                _agree(got, _row(whole, own, count, number), sample.tolerance)
                compared += 1
    return compared


def _agree(got: ConcreteArray, wanted: ConcreteArray, tolerance: float) -> None:
    one, other = got.host(), wanted.host()
    if not dtypes.is_inexact(got.type.dtype):
        np.testing.assert_array_equal(one, other)
        return
    eps = float(ml_dtypes.finfo(dtypes.real_dtype(got.type.dtype)).eps) * tolerance
    wide = np.complex128 if dtypes.is_complex(got.type.dtype) else np.float64
    one, other = one.astype(wide), other.astype(wide)
    finite = np.abs(other[np.isfinite(other)])
    scale = max(float(finite.max(initial=0.0)), 1e-30)
    np.testing.assert_allclose(one, other, rtol=eps, atol=eps * scale)


def _compared(name: str, count: int) -> int:
    """Compares the first samples of an op, and returns how many results there were."""
    primitive = OPS[name]
    assert primitive.samples is not None
    with config(jax_enable_x64=True), np.errstate(all="ignore"):
        return sum(_compare(primitive, x) for x in itertools.islice(primitive.samples(), count))


@pytest.mark.parametrize("name", NAMES)
def test_an_op_does_to_a_row_what_it_does_to_all(name: str) -> None:
    # Without rows that are apart there is nothing to compare.
    assert _compared(name, SAMPLES_OF_EACH) >= 0


def test_ops_that_are_compared_are_many() -> None:
    names = ("add", "dot_general", "reshape", "gather", "sort", "conv_general_dilated", "lu_solve")
    assert all(_compared(name, 30) > 0 for name in names)
