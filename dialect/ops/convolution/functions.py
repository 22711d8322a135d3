"""Functions made of `conv_general_dilated`: simpler signatures, and transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from axir.dialect.core.annotations import DTypeLike, PaddingLike, PrecisionLike, UserObject
from axir.dialect.core.errors import ShapeError
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.shape.rearranging import rev, transpose
from axir.dialect.program.rules import Operand, Value

from .conv_general_dilated import conv_general_dilated
from .types import (
    ConvDimensionNumbers,
    ConvolutionShapeError,
    canonical_geometry,
    conv_dimension_numbers,
    dilate,
    padding_pairs,
    result_shape,
)

# Convolutions ----------------------------------------------------------------------------------


def conv(
    lhs: Operand,
    rhs: Operand,
    window_strides: Sequence[int],
    padding: object,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Value:
    """Convolves an array (batch, feature, *spatial) with a kernel (output, input, *spatial).

    Args:
        lhs: Array.
        rhs: The kernel, of the same dtype; it is not flipped.
        window_strides: Steps between its positions.
        padding: 'VALID', 'SAME', 'SAME_LOWER', or a pair (low, high) for each spatial dimension.
        precision: As in `conv_general_dilated`.
        preferred_element_type: dtype to accumulate in, and of the result.

    Raises:
        ShapeError, DTypeError, ParameterError: as `conv_general_dilated` does.

    >>> import numpy as np
    >>> conv(np.ones((1, 2, 4), np.float32), np.ones((1, 2, 2), np.float32), (1,), "VALID")
    Array([[[4., 4., 4.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: Operand,
    rhs: Operand,
    window_strides: Sequence[int],
    padding: object,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Value:
    """Convolves as `conv` does, with dilations of both operands.

    >>> import numpy as np
    >>> x, kernel = np.ones((1, 1, 3), np.float32), np.ones((1, 1, 2), np.float32)
    >>> conv_with_general_padding(x, kernel, (1,), [(0, 1)], (2,), (2,))
    Array([[[2., 0., 2., 0.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


# Transposed convolutions -----------------------------------------------------------------------

_LAST = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv_transpose(
    lhs: Operand,
    rhs: Operand,
    strides: Sequence[int],
    padding: UserObject,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    use_consistent_padding: bool = False,
) -> Value:
    """Convolves an array after spreading its elements by the strides, which enlarges it.

    Args:
        lhs: Array with a batch, a feature and n spatial dimensions.
        rhs: The kernel, of the same dtype.
        strides: n factors by which the spatial dimensions grow.
        padding: 'SAME' for size * stride results; 'VALID' for all results that an element
            contributes to; or n pairs (low, high) of zeros around the spread array.
        rhs_dilation: n factors; the kernel gets factor - 1 zeros between neighbours.
        dimension_numbers: As in `conv_general_dilated`. By default the features come last:
            `("NHWC", "HWIO", "NHWC")` for two spatial dimensions.
        transpose_kernel: Whether to flip the kernel and exchange its features, which makes this
            the adjoint of the convolution with that kernel.
        precision: As in `conv_general_dilated`.
        preferred_element_type: dtype to accumulate in, and of the result.
        use_consistent_padding: Whether pairs mean the padding of the adjoint convolution, as the
            names do.

    Raises:
        ShapeError, DTypeError, ParameterError: as `conv_general_dilated` does; also without
            dimension numbers for more than three spatial dimensions.

    >>> import numpy as np
    >>> x = np.array([1, 2], np.float32).reshape(1, 2, 1)
    >>> conv_transpose(x, np.ones((2, 1, 1), np.float32), (2,), "SAME").ravel()
    Array([1., 1., 2., 2.], dtype=float32)
    """
    lhs, rhs = as_value(lhs), as_value(rhs)
    numbers = _transposed_numbers(lhs.shape, rhs.shape, dimension_numbers)
    padding = _transposed_padding(
        rhs.shape, strides, padding, rhs_dilation, numbers, use_consistent_padding
    )
    if transpose_kernel:
        out_feature, in_feature, *spatial = numbers.rhs_spec
        order = list(range(rhs.ndim))
        order[out_feature], order[in_feature] = in_feature, out_feature
        rhs = transpose(rev(rhs, spatial) if spatial else rhs, order)
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * len(strides),
        padding,
        strides,
        rhs_dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _transposed_numbers(
    lhs: tuple[int, ...], rhs: tuple[int, ...], dimension_numbers: object
) -> ConvDimensionNumbers:
    if dimension_numbers is None:
        if len(lhs) not in _LAST:
            raise ConvolutionShapeError(
                f"conv_transpose: there is no usual order of dimensions for operands of rank "
                f"{len(lhs)}.",
                "Pass dimension_numbers.",
            )
        dimension_numbers = _LAST[len(lhs)]
    return conv_dimension_numbers(lhs, rhs, dimension_numbers)


def _transposed_padding(
    rhs: tuple[int, ...],
    strides: Sequence[int],
    padding: PaddingLike,
    rhs_dilation: Sequence[int] | None,
    numbers: ConvDimensionNumbers,
    is_of_adjoint: bool,
) -> PaddingLike:
    """Returns the padding of the spread array; other names stay."""
    name = padding.upper() if isinstance(padding, str) else None
    sizes = [rhs[axis] for axis in numbers.rhs_spec[2:]]
    dilations = [1] * len(sizes) if rhs_dilation is None else list(rhs_dilation)
    if len(strides) != len(sizes) or len(dilations) != len(sizes):
        raise ConvolutionShapeError(
            f"conv_transpose: strides {tuple(strides)} and rhs_dilation {rhs_dilation} must have "
            f"one entry for each of the {len(sizes)} spatial dimensions."
        )
    windows = [dilate(size, index(d)) for size, d in zip(sizes, dilations, strict=True)]
    if name in ("SAME", "VALID"):
        return [
            _pads_by_name(name, window, index(stride))
            for window, stride in zip(windows, strides, strict=True)
        ]
    if name is None and is_of_adjoint:
        pairs = padding_pairs("conv_transpose", padding, len(windows))
        return [
            (window - 1 - low, window - 1 - high)
            for window, (low, high) in zip(windows, pairs, strict=True)
        ]
    return padding


def _pads_by_name(name: str, window: int, stride: int) -> tuple[int, int]:
    if name == "VALID":
        return window - 1, stride - 1 + max(window - stride, 0)
    total = window + stride - 2
    low = window - 1 if stride > window - 1 else -(-total // 2)
    return low, total - low


# Shapes ----------------------------------------------------------------------------------------


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: object,
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """Returns the shape of the result of `conv`.

    >>> conv_shape_tuple((1, 2, 8), (3, 2, 3), (1,), [(0, 0)])
    (1, 3, 6)
    """
    return _shape(lhs_shape, rhs_shape, strides, pads, None, None, batch_group_count)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: object,
    dimension_numbers: object,
) -> tuple[int, ...]:
    """Returns the shape of the result of `conv_general_dilated` without dilations and groups.

    >>> conv_general_shape_tuple((1, 8, 2), (3, 2, 4), (1,), "SAME", ("NHC", "HIO", "NHC"))
    (1, 8, 4)
    """
    return _shape(lhs_shape, rhs_shape, window_strides, padding, None, dimension_numbers)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: UserObject,
    dimension_numbers: object,
) -> tuple[int, ...]:
    """Returns the shape of the result of `conv_transpose`.

    >>> conv_transpose_shape_tuple((1, 8, 2), (3, 2, 4), (2,), "SAME", ("NHC", "HIO", "NHC"))
    (1, 16, 4)
    """
    numbers = _transposed_numbers(tuple(lhs_shape), tuple(rhs_shape), dimension_numbers)
    pads = _transposed_padding(tuple(rhs_shape), window_strides, padding, None, numbers, False)
    ones = (1,) * len(window_strides)
    return _shape(lhs_shape, rhs_shape, ones, pads, window_strides, numbers)


def _shape(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Any, padding: UserObject,
    lhs_dilation: Sequence[int] | None, dimension_numbers: object, batch_group_count: int = 1,
) -> tuple[int, ...]:  # fmt: skip
    lhs, rhs = tuple(map(index, lhs_shape)), tuple(map(index, rhs_shape))
    if len(lhs) < 2:
        raise ShapeError(f"An operand of shape {lhs} has no batch and feature dimensions.")
    geometry = canonical_geometry(lhs, rhs, strides, padding, lhs_dilation, None, dimension_numbers)
    return result_shape(
        lhs, rhs, **geometry, feature_group_count=1, batch_group_count=batch_group_count
    )
