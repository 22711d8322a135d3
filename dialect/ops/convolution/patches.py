"""The windows of a convolution as an array, and convolutions with a kernel for each position."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, Params, PrecisionLike, UserObject
from axir.dialect.ops.contraction.dot_general import dot_general
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import as_value, full
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import expand_dims, reshape, transpose
from axir.dialect.program.rules import Operand, Value

from .types import canonical_geometry, conv_dimension_numbers, result_dtype, result_shape


def conv_general_dilated_patches(
    lhs: Operand,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: UserObject,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Value:
    """Returns the windows of an array over which a convolution sums.

    Args:
        lhs: Array with a batch, a feature and n spatial dimensions.
        filter_shape: n extents of the window.
        window_strides: n steps between the positions of the window.
        padding: As in `conv_general_dilated`.
        lhs_dilation: n factors; lhs gets factor - 1 zeros between neighbours. By default 1.
        rhs_dilation: n factors; the window gets factor - 1 holes between neighbours. By default 1.
        dimension_numbers: As in `conv_general_dilated`; the entry of rhs only gives the order of
            the spatial dimensions.
        precision: Without effect: the elements are copied.
        preferred_element_type: dtype of the result.

    Returns:
        An array with a batch, a feature and n spatial dimensions. Its features are the elements of
        the window for each feature of lhs.

    Raises:
        ShapeError, DTypeError, ParameterError: as `conv_general_dilated` does.

    >>> import numpy as np
    >>> conv_general_dilated_patches(np.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")
    Array([[[0., 1., 2.],
            [1., 2., 3.]]], dtype=float32)
    """
    lhs = as_value(lhs)
    numbers = conv_dimension_numbers(lhs.shape, lhs.shape, dimension_numbers)
    filter_shape = tuple(map(index, filter_shape))
    features = lhs.shape[numbers.lhs_spec[1]]
    kernel = (features * math.prod(filter_shape), 1, *filter_shape)
    rhs_shape = tuple(kernel[numbers.rhs_spec.index(axis)] for axis in range(len(kernel)))
    geometry = canonical_geometry(
        lhs.shape, rhs_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers
    )
    shape = result_shape(
        lhs.shape, rhs_shape, **geometry, feature_group_count=features, batch_group_count=1
    )
    if preferred_element_type is not None:
        preferred_element_type = dtypes.canonicalize_dtype(preferred_element_type)
    dtype = result_dtype(lhs.dtype, lhs.dtype, preferred_element_type)
    if 0 in shape:
        return full(shape, 0, dtype)
    positions = [shape[axis] for axis in numbers.out_spec[2:]]
    windows = _windows(transpose(lhs, numbers.lhs_spec), filter_shape, positions, geometry)
    merged = reshape(windows, tuple(shape[axis] for axis in numbers.out_spec))
    result = transpose(merged, tuple(numbers.out_spec.index(axis) for axis in range(len(shape))))
    return result if dtype == result.dtype else convert_element_type(result, dtype)


def _windows(
    x: Value, window: tuple[int, ...], positions: Sequence[int], geometry: Params
) -> Value:
    """Returns (batch, feature, *window, *positions) of an array (batch, feature, *spatial).

    It goes along one spatial dimension after the other: each element of the window is a slice, and
    the slices are stacked. The number of slices is the sum of the window's extents, not their
    product.
    """
    inner = [
        (low, high, dilation - 1)
        for (low, high), dilation in zip(geometry["padding"], geometry["lhs_dilation"], strict=True)
    ]
    if any(any(entry) for entry in inner):
        x = pad(x, full((), 0, x.dtype), ((0, 0, 0), (0, 0, 0), *inner))
    for number, (extent, count) in enumerate(zip(window, positions, strict=True)):
        stride, dilation = geometry["window_strides"][number], geometry["rhs_dilation"][number]
        axis = 2 + 2 * number  # behind the batch, the feature and `number` extents of the window
        slices = [
            slice_in_dim(
                x, place * dilation, place * dilation + (count - 1) * stride + 1, stride, axis
            )
            for place in range(extent)
        ]
        x = concatenate([expand_dims(part, (2 + number,)) for part in slices], 2 + number)
    return x


def conv_general_dilated_local(
    lhs: Operand,
    rhs: Operand,
    window_strides: Sequence[int],
    padding: object,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    precision: PrecisionLike = None,
) -> Value:
    """Convolves an array with another kernel at each position.

    Args:
        lhs: Array with a batch, a feature and n spatial dimensions.
        rhs: The kernels: an output feature; the input features times the elements of the window, in
            the order of `conv_general_dilated_patches`; and n positions.
        window_strides: n steps between the positions of the window.
        padding: As in `conv_general_dilated`.
        filter_shape: n extents of the window.
        lhs_dilation: n factors; lhs gets factor - 1 zeros between neighbours. By default 1.
        rhs_dilation: n factors; the window gets factor - 1 holes between neighbours. By default 1.
        dimension_numbers: As in `conv_general_dilated`.
        precision: As in `conv_general_dilated`.

    Returns:
        An array with a batch, a feature and n spatial dimensions.

    Raises:
        ShapeError, DTypeError, ParameterError: as `conv_general_dilated` does.

    >>> import numpy as np
    >>> x, kernels = np.ones((1, 1, 3), np.float32), np.arange(4.0, dtype=np.float32)
    >>> conv_general_dilated_local(x, kernels.reshape(1, 2, 2), (1,), "VALID", (2,))
    Array([[[2., 4.]]], dtype=float32)
    """
    lhs, rhs = as_value(lhs), as_value(rhs)
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers
    )
    out_spec, rhs_spec = numbers.out_spec, numbers.rhs_spec
    product = dot_general(
        rhs,
        patches,
        (((rhs_spec[1],), (out_spec[1],)), (rhs_spec[2:], out_spec[2:])),
        precision,
    )
    # Now (*positions, output feature, batch).
    count = len(out_spec) - 2
    axes = (count + 1, count, *range(count))
    return transpose(product, tuple(axes[out_spec.index(axis)] for axis in range(len(out_spec))))
