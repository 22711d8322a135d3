"""Slices at static and at dynamic places: cases beyond the table's samples."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.errors import (
    AxirError,
    AxisError,
    DTypeError,
    OutOfBoundsError,
    ParameterError,
    ShapeError,
    TracerIntegerConversionError,
)
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.indexing import dynamic_slicing as slicing
from axir.dialect.ops.indexing.start_indices import NegativeStartError
from axir.dialect.program.tracer import Trace

ROW = as_array(np.arange(6, dtype=np.int32))
MATRIX = as_array(np.arange(12, dtype=np.float32).reshape(3, 4))
INDEX = as_array(np.int32(1))


def zeros(*shape: int) -> Any:
    return as_array(np.zeros(shape, np.float32))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: slicing.slice(MATRIX, (0,), (1,)),
            ParameterError,
            "must have one entry for each of the 2 dimensions of float32[3,4]",
        ),
        (
            lambda: slicing.slice(MATRIX, (0, 0), (4, 4)),
            ShapeError,
            "bounds 0 to 4 along dimension 0 of float32[3,4] do not satisfy "
            "0 <= start <= limit <= 3.",
        ),
        (
            lambda: slicing.slice(MATRIX, (0, 3), (3, 2)),
            ShapeError,
            "bounds 3 to 2 along dimension 1",
        ),
        (
            lambda: slicing.slice(MATRIX, (0, 0), (3, 4), (1, -1)),
            ShapeError,
            "stride -1 along dimension 1 is not positive.",
        ),
        (
            lambda: slicing.slice_in_dim(MATRIX, 0, 1, axis=2),
            AxisError,
            "slice_in_dim: axis 2 is out of bounds for an array of dimension 2.",
        ),
        (
            lambda: slicing.index_in_dim(MATRIX, 3),
            OutOfBoundsError,
            "index 3 is out of bounds for axis 0 of extent 3.",
        ),
        (
            lambda: slicing.dynamic_slice(MATRIX, (0,), (1, 1)),
            ParameterError,
            "1 start indices were given for the 2 dimensions of float32[3,4].",
        ),
        (
            lambda: slicing.dynamic_slice(MATRIX, 0, (1, 1)),
            ParameterError,
            "start_indices 0 is neither a sequence of scalars nor an array of rank 1.",
        ),
        (
            lambda: slicing.dynamic_slice(MATRIX, (0, 0), (1,)),
            ShapeError,
            "slice_sizes (1,) must have one entry for each of the 2 dimensions",
        ),
        (
            lambda: slicing.dynamic_slice(MATRIX, (0, 0), (4, 1)),
            ShapeError,
            "slice_sizes (4, 1) does not fit into float32[3,4].",
        ),
        (
            lambda: slicing.dynamic_slice(MATRIX, (0.5, 0), (1, 1)),
            DTypeError,
            "start indices must be integers of one dtype, but got ~float32[], ~float32[].",
        ),
        (
            lambda: slicing.dynamic_slice(MATRIX, (np.int8(1), np.int32(0)), (1, 1)),
            DTypeError,
            "start indices must be integers of one dtype, but got int8[], int32[].",
        ),
        (
            lambda: slicing.dynamic_update_slice(MATRIX, zeros(1, 1), (np.uint32(1), np.int8(0))),
            DTypeError,
            "start indices must be integers of one dtype, but got uint32[], int8[].",
        ),
        (
            lambda: slicing.dynamic_slice(MATRIX, (np.array([0]), 0), (1, 1)),
            ShapeError,
            "start indices must be scalars, but got int32[1], ~int32[].",
        ),
        (
            lambda: slicing.dynamic_update_slice(MATRIX, zeros(4, 1), (0, 0)),
            ShapeError,
            "the update of shape (4, 1) does not fit into float32[3,4].",
        ),
        (
            lambda: slicing.dynamic_update_slice(MATRIX, zeros(4), (0, 0)),
            ShapeError,
            "the update of shape (4,) must have one entry for each of the 2 dimensions",
        ),
        (
            lambda: slicing.dynamic_update_slice(ROW, zeros(1), (0,)),
            DTypeError,
            "the update float32[1] must have the dtype of the operand int32[6].",
        ),
    ],
)
def test_error_says_what_is_wrong(
    call: Callable[[], Any], error: type[AxirError], text: str
) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()


def test_slice_sizes_cannot_be_traced() -> None:
    with Trace("f") as trace:
        size = trace.add_input(ShapedArray((), np.int32))
        with pytest.raises(TracerIntegerConversionError, match="as a Python integer"):
            slicing.dynamic_slice(ROW, (0,), (size,))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("bounds", [(None, None), (1, None), (-2, None), (0, -1), (-3, -1)])
@pytest.mark.parametrize("stride", [1, 2])
def test_slice_in_dim_is_a_python_slice(
    bounds: tuple[int | None, int | None], stride: int, axis: int
) -> None:
    index: list[Any] = [slice(None), slice(None)]
    index[axis] = slice(*bounds, stride)
    result = slicing.slice_in_dim(MATRIX, *bounds, stride, axis)
    np.testing.assert_array_equal(result, MATRIX.host()[tuple(index)])


@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("position", [0, 2, -1, -3])
def test_index_in_dim_static_and_dynamic_are_that_of_numpy(position: int, keepdims: bool) -> None:
    expected = np.take(MATRIX.host(), [position] if keepdims else position, axis=0)
    static = slicing.index_in_dim(MATRIX, position, 0, keepdims)
    dynamic = slicing.dynamic_index_in_dim(MATRIX, np.int32(position), 0, keepdims)
    np.testing.assert_array_equal(static, expected)
    np.testing.assert_array_equal(dynamic, expected)


@pytest.mark.parametrize(
    ("start", "first"), [(0, 0), (3, 3), (4, 4), (5, 4), (100, 4), (-1, 4), (-6, 0), (-100, 0)]
)
def test_dynamic_start_counts_from_the_end_and_is_clamped(start: int, first: int) -> None:
    for given in (start, np.int32(start), as_array(np.int32(start))):
        block = slicing.dynamic_slice(ROW, (given,), (2,))
        assert block.tolist() == [first, first + 1]


def test_negative_start_is_clamped_where_it_may_not_count_from_the_end() -> None:
    before = np.int32(-1)
    block = slicing.dynamic_slice(ROW, (before,), (2,), allow_negative_indices=False)
    assert block.tolist() == [0, 1]
    corner = slicing.dynamic_slice(
        MATRIX, (before, before), (1, 1), allow_negative_indices=(True, False)
    )
    assert corner.tolist() == [[8.0]]


def test_negative_number_is_refused_where_it_may_not_count_from_the_end() -> None:
    with pytest.raises(NegativeStartError, match="start index -1 of a dimension of extent 6 is"):
        slicing.dynamic_slice(ROW, (-1,), (2,), allow_negative_indices=False)
    with pytest.raises(ValueError, match="allow_negative_indices=True lets it count from the end"):
        slicing.dynamic_update_slice(ROW, ROW[:2], (-1,), allow_negative_indices=False)


def test_narrow_indices_reach_the_end_of_a_long_array() -> None:
    long = as_array(np.arange(300, dtype=np.int32))
    assert slicing.dynamic_slice(long, (np.int8(-1),), (1,)).tolist() == [299]
    assert slicing.dynamic_slice(long, (np.uint8(255),), (1,)).tolist() == [255]


def test_large_unsigned_indices_are_not_negative() -> None:
    assert slicing.dynamic_slice(ROW, (np.uint32(2**32 - 1),), (1,)).tolist() == [5]


def test_start_indices_may_be_an_array_and_python_integers_among_others() -> None:
    expected = [[MATRIX.host()[1, 2]]]
    together = (np.array([1, 2]), as_array(np.array([1, 2])))
    for starts in (*together, (INDEX, 2), (np.int8(1), 2), (1, np.uint32(2))):
        assert slicing.dynamic_slice(MATRIX, starts, (1, 1)).tolist() == expected


def test_traced_start_is_wrapped_by_ops_unless_told_otherwise() -> None:
    def names(**options: Any) -> list[str]:
        with Trace("f") as trace:
            start = trace.add_input(ShapedArray((), np.int32))
            result = slicing.dynamic_slice_in_dim(ROW, start, 2, **options)
            return [e.primitive.name for e in trace.finish([result]).equations]

    assert names() == ["lt", "add", "select_n", "dynamic_slice"]
    assert names(allow_negative_indices=False) == ["dynamic_slice"]


def test_traced_array_of_starts_is_split() -> None:
    with Trace("f") as trace:
        starts = trace.add_input(ShapedArray((2,), np.int32))
        result = slicing.dynamic_slice(MATRIX, starts, (2, 2))
        function = trace.finish([result])
    (block,) = function.evaluate(as_array(np.array([-1, 1])))
    np.testing.assert_array_equal(block, MATRIX.host()[1:, 1:3])


def test_update_leaves_its_operand_alone() -> None:
    updated = slicing.dynamic_update_slice(ROW, as_array(np.array([8, 9])), (5,))
    assert updated.tolist() == [0, 1, 2, 3, 8, 9]
    assert ROW.tolist() == [0, 1, 2, 3, 4, 5]


def test_update_in_dim_takes_an_entry_with_or_without_its_axis() -> None:
    expected = MATRIX.host().copy()
    expected[:, 2] = 7
    for entry in (np.full((3,), 7, np.float32), np.full((3, 1), 7, np.float32)):
        for axis in (1, -1):
            updated = slicing.dynamic_update_index_in_dim(MATRIX, entry, 2, axis)
            np.testing.assert_array_equal(updated, expected)
    block = np.full((3, 2), 7, np.float32)
    expected[:, 1] = 7
    updated = slicing.dynamic_update_slice_in_dim(MATRIX, block, 1, axis=1)
    np.testing.assert_array_equal(updated, expected)


def test_weak_type_is_that_of_the_array_not_of_the_indices() -> None:
    weak = ConcreteArray(ShapedArray((3,), np.float32, True), np.zeros(3, np.float32))
    assert slicing.dynamic_slice(weak, (INDEX,), (1,)).weak_type
    assert not slicing.dynamic_slice(zeros(3), (1,), (1,)).weak_type
    assert not slicing.dynamic_update_slice(weak, zeros(1), (1,)).weak_type
