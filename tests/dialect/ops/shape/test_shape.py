"""Shape ops and constants: cases beyond the table's samples."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.errors import AxirError, AxisError, DTypeError, ParameterError, ShapeError
from axir.dialect.core.symbolic_zeros import UndefinedPrimal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.shape import constants
from axir.dialect.ops.shape import rearranging as shape
from axir.dialect.ops.shape.concatenation import concatenate

MATRIX = as_array(np.arange(6, dtype=np.float32).reshape(2, 3))
INTEGERS = as_array(np.arange(6, dtype=np.int32).reshape(2, 3))
SCALAR = as_array(np.float32(1))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: shape.broadcast_in_dim(MATRIX, (2, 4), (0, 1)),
            ShapeError,
            "float32[2,3] cannot be broadcast to shape (2, 4) along dimensions (0, 1): extent 3 is "
            "neither 1 nor 4.",
        ),
        (
            lambda: shape.broadcast_in_dim(MATRIX, (3, 2), (1, 0)),
            ShapeError,
            "(1, 0) must be strictly increasing",
        ),
        (
            lambda: shape.broadcast_in_dim(MATRIX, (2, 3), (0,)),
            ShapeError,
            "(0,) must name one result dimension for each of the 2 dimensions",
        ),
        (
            lambda: shape.broadcast_in_dim(MATRIX, (2, 3), (0, 5)),
            ShapeError,
            "(0, 5) lie outside the result shape (2, 3)",
        ),
        (
            lambda: shape.broadcast_in_dim(MATRIX, "ab", (0, 1)),
            ShapeError,
            "shape must be a sequence of integers, not 'ab'",
        ),
        (
            lambda: shape.broadcast_shapes((2,), (3,)),
            ParameterError,
            "Incompatible shapes for broadcasting: (2,), (3,).",
        ),
        (
            lambda: shape.expand_dims(MATRIX, (0, 0)),
            AxisError,
            "expand_dims: an axis occurs twice in (0, 0)",
        ),
        (
            lambda: shape.expand_dims(MATRIX, (3,)),
            AxisError,
            "expand_dims: axis 3 is out of bounds for an array of dimension 3.",
        ),
        (
            lambda: shape.reshape(MATRIX, (4,)),
            ShapeError,
            "cannot reshape float32[2,3] of 6 elements into shape (4,) of 4",
        ),
        (
            lambda: shape.reshape(MATRIX, (-1,)),
            ShapeError,
            "new_sizes (-1,) has a negative extent",
        ),
        (
            lambda: shape.reshape(MATRIX, (6,), (0, 0)),
            ShapeError,
            "dimensions (0, 0) is not a permutation of the 2 dimensions",
        ),
        (
            lambda: shape.collapse(MATRIX, 1, 0),
            ParameterError,
            "dimensions 1 to 0 are no range of the dimensions of float32[2,3]",
        ),
        (
            lambda: shape.transpose(MATRIX, (0, 0)),
            ShapeError,
            "permutation (0, 0) is not a permutation of the 2 dimensions of float32[2,3]",
        ),
        (
            lambda: shape.squeeze(MATRIX, (0,)),
            ParameterError,
            "dimension 0 of float32[2,3] has extent 2; only extent 1 can be squeezed out",
        ),
        (
            lambda: shape.squeeze(MATRIX, (2,)),
            AxisError,
            "squeeze: axis 2 is out of bounds for an array of dimension 2.",
        ),
        (
            lambda: concatenate([], 0),
            ParameterError,
            "concatenate needs at least one array, but got none.",
        ),
        (
            lambda: concatenate([SCALAR, SCALAR], 0),
            AxisError,
            "A scalar has no axes.",
        ),
        (
            lambda: concatenate([MATRIX, SCALAR], 0),
            ShapeError,
            "must be equal in shape apart from dimension 0, but got float32[2,3], float32[].",
        ),
        (
            lambda: concatenate([MATRIX, INTEGERS], 0),
            DTypeError,
            "operands of equal dtype, but got float32[2,3], int32[2,3].",
        ),
        (
            lambda: shape.rev(MATRIX, (2,)),
            AxisError,
            "rev: axis 2 is out of bounds for an array of dimension 2.",
        ),
        (
            lambda: shape.pad(MATRIX, 0.0, ((1, 1, 0),)),
            ParameterError,
            "must have one entry (low, high, interior) for each of the 2 dimensions",
        ),
        (
            lambda: shape.pad(MATRIX, 0.0, ((0, 0, -1), (0, 0, 0))),
            ParameterError,
            "interior padding -1 of dimension 0 is negative.",
        ),
        (
            lambda: shape.pad(MATRIX, 0.0, ((-3, 0, 0), (0, 0, 0))),
            ParameterError,
            "low -3 and high 0 cut more than there is of dimension 0 of float32[2,3].",
        ),
        (
            lambda: shape.pad(MATRIX, MATRIX, ((0, 0, 0), (0, 0, 0))),
            ParameterError,
            "the padding value must be a scalar, but it is float32[2,3].",
        ),
        (
            lambda: shape.pad(INTEGERS, SCALAR, ((0, 0, 0), (0, 0, 0))),
            DTypeError,
            "the padding value float32[] must have the dtype of the operand int32[2,3].",
        ),
        (
            lambda: constants.iota(np.bool_, 3),
            DTypeError,
            "iota does not count in bool",
        ),
        (
            lambda: constants.broadcasted_iota(np.int32, (2,), 1),
            AxisError,
            "iota: axis 1 is out of bounds for an array of dimension 1.",
        ),
        (
            lambda: constants.iota(np.int32, -1),
            ShapeError,
            "iota: shape (-1,) has a negative extent.",
        ),
        (
            lambda: constants.full((2,), MATRIX),
            ShapeError,
            "the fill value must be a scalar, but it is float32[2,3].",
        ),
    ],
)
def test_error_says_what_is_wrong(
    call: Callable[[], Any], error: type[AxirError], text: str
) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()


def test_expand_dims_is_a_broadcast_at_places_in_the_result() -> None:
    x = np.arange(6).reshape(2, 3)
    for dimensions in ((0,), (-1,), (1, -1), (0, 2), (-2,)):
        expanded = shape.expand_dims(as_array(x), dimensions)
        np.testing.assert_array_equal(expanded, np.expand_dims(x, dimensions))


def test_moveaxis_is_that_of_numpy() -> None:
    x = as_array(np.arange(24).reshape(2, 3, 4))
    for source in range(-3, 3):
        for destination in range(-3, 3):
            moved = shape.moveaxis(x, source, destination)
            np.testing.assert_array_equal(moved, np.moveaxis(x.host(), source, destination))


def test_what_changes_nothing_returns_its_operand() -> None:
    assert shape.reshape(MATRIX, (2, 3)) is MATRIX
    assert shape.reshape(MATRIX, (2, 3), (0, 1)) is MATRIX
    assert shape.transpose(MATRIX, (0, 1)) is MATRIX
    assert shape.moveaxis(MATRIX, -1, 1) is MATRIX
    assert shape.squeeze(MATRIX, ()) is MATRIX
    assert shape.expand_dims(MATRIX, ()) is MATRIX
    assert concatenate([MATRIX], 0) is MATRIX
    assert shape.broadcast(MATRIX, ()) is MATRIX


def test_numbers_of_numpy_serve_as_extents() -> None:
    sizes = np.array([3, 2])
    assert shape.reshape(MATRIX, sizes).shape == (3, 2)
    assert all(type(extent) is int for extent in shape.reshape(MATRIX, sizes).shape)


def test_reshape_permutes_before_it_reshapes() -> None:
    x = np.arange(6).reshape(2, 3)
    reshaped = shape.reshape(as_array(x), (3, 2), (1, 0))
    np.testing.assert_array_equal(reshaped, x.T)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [((0, 2), (6, 4)), ((1,), (2, 12)), ((-2,), (2, 12)), ((0, 0), (1, 2, 3, 4)), ((0, 9), (24,))],
)
def test_collapse_takes_the_bounds_of_a_slice(
    bounds: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert shape.collapse(as_array(np.zeros((2, 3, 4))), *bounds).shape == expected


def test_weak_types_stay_where_all_operands_are_weak() -> None:
    weak = shape.broadcast_in_dim(as_array(1.0), (2,), ())
    assert weak.weak_type
    assert shape.reshape(weak, (1, 2)).weak_type
    assert concatenate([weak, weak], 0).weak_type
    assert not concatenate([weak, as_array(np.ones(2, np.float32))], 0).weak_type
    assert not shape.pad(MATRIX, 0.0, ((0, 0, 0), (0, 0, 0))).weak_type


def test_pad_cuts_and_spreads_at_once() -> None:
    x = as_array(np.arange(1, 5))
    np.testing.assert_array_equal(shape.pad(x, 9, ((-1, 2, 1),)), [9, 2, 9, 3, 9, 4, 9, 9])
    np.testing.assert_array_equal(shape.pad(x, 9, ((1, -3, 1),)), [9, 1, 9, 2, 9])
    np.testing.assert_array_equal(shape.pad(x, 9, ((-5, 3, 0),)), [9, 9])


def test_interior_padding_of_nothing_adds_nothing() -> None:
    empty = as_array(np.zeros((0,)))
    assert shape.pad(empty, 1.0, ((1, 1, 5),)).tolist() == [1.0, 1.0]


def test_cotangent_of_the_padding_value_has_no_rounding_of_the_operands_part() -> None:
    # Summing everything and subtracting the operand's part would lose the one behind the large.
    from axir.dialect.ops.shape.padding import _pad

    large = np.float32(2**30)
    cotangent = as_array(np.array([1, large, large], np.float32))
    linear = [UndefinedPrimal(ShapedArray(s, np.float32)) for s in ((2,), ())]
    _, value = _pad.transpose(cotangent, *linear, padding_config=((1, 0, 0),))
    assert float(value) == 1.0


def test_iota_of_a_narrow_dtype_wraps_around() -> None:
    counted = constants.iota(np.int8, 300).host()
    assert counted[127:130].tolist() == [127, -128, -127]


def test_full_takes_the_memory_of_one_element() -> None:
    filled = constants.full((1000, 1000), 2.5, np.float32)
    assert filled.host().strides == (0, 0)
    assert filled.dtype == np.float32
    assert float(filled.host()[3, 4]) == 2.5


def test_full_is_weak_only_without_a_dtype() -> None:
    assert constants.full((2,), 1.0).weak_type
    assert not constants.full((2,), 1.0, np.float32).weak_type
    assert not constants.full((2,), np.float32(1)).weak_type
    assert constants.full_like(as_array(1.0), 2).weak_type
    assert not constants.full_like(as_array(1.0), 2, np.int32).weak_type


def test_full_converts_as_casts_do() -> None:
    assert constants.full((1,), -1, np.uint32).tolist() == [2**32 - 1]
    assert constants.full((1,), 2.5, np.int32).tolist() == [2]
    assert constants.full_like(np.int32(1), 2.5).tolist() == 2


def test_constant_follows_the_64_bit_switch() -> None:
    assert constants.constant(np.ones(2)).dtype == np.float32


def test_copy_has_memory_of_its_own() -> None:
    copied = constants.copy(MATRIX)
    assert type(copied) is ConcreteArray
    assert not np.shares_memory(copied.host(), MATRIX.host())
    np.testing.assert_array_equal(copied, MATRIX)
