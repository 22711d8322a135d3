"""Parameters and types of convolutions: dimension numbers, padding, and the shape of the result.

Elsewhere: the primitive and its rules (`conv_general_dilated.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from operator import index
from typing import NamedTuple

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import PaddingLike, Params, PrecisionLike, UserObject
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.symbolic_dims import as_extent
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.contraction.types import computation_dtype

Padding = tuple[tuple[int, int], ...]

_NAME = "conv_general_dilated"


class ConvDimensionNumbers(NamedTuple):
    """The places of a convolution's dimensions in its operands and its result.

    Attributes:
        lhs_spec: Axes of lhs: (batch, feature, *spatial).
        rhs_spec: Axes of rhs: (output feature, input feature, *spatial).
        out_spec: Axes of the result: (batch, feature, *spatial).
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None


class ConvolutionShapeError(ShapeError, ValueError):
    """Shapes, strides, dilations or groups of a convolution do not fit together."""


# Dimension numbers -----------------------------------------------------------------------------


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: object
) -> ConvDimensionNumbers:
    """Returns dimension numbers as axes.

    Args:
        lhs_shape: Shape of the operand.
        rhs_shape: Shape of the kernel.
        dimension_numbers: Three strings that name the dimensions of lhs, rhs and the result, such
            as `("NHWC", "HWIO", "NHWC")`: N batch, C feature, O output feature, I input feature,
            and any other characters for the spatial dimensions. None is batch, feature, spatial
            throughout; `ConvDimensionNumbers` stay as they are.

    Raises:
        ShapeError: for strings that do not name every dimension once.

    >>> conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NCHW"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 1, 2, 3))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return ConvDimensionNumbers(*(tuple(map(index, spec)) for spec in dimension_numbers))
    if len(lhs_shape) != len(rhs_shape):
        raise _ranks_differ(len(lhs_shape), len(rhs_shape))
    ndim = len(lhs_shape)
    if dimension_numbers is None:
        axes = tuple(range(ndim))
        return ConvDimensionNumbers(axes, axes, axes)
    if not isinstance(dimension_numbers, (tuple, list)) or len(dimension_numbers) != 3:
        raise ShapeError(
            f"{_NAME}: dimension_numbers must be three strings, ConvDimensionNumbers or None, but "
            f"it is {dimension_numbers!r}.",
            'Name the dimensions of lhs, rhs and the result: ("NHWC", "HWIO", "NHWC").',
        )
    for spec, operand in zip(dimension_numbers, ("lhs", "rhs", "the result"), strict=True):
        if not isinstance(spec, str) or len(spec) != ndim:
            raise ShapeError(
                f"{_NAME}: dimension_numbers names the dimensions of {operand} by {spec!r}, but "
                f"the operands have {ndim} dimensions.",
                "Use one character for each dimension.",
            )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def conv_general_permutations(
    dimension_numbers: Sequence[str],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Returns the axes of lhs, rhs and the result that three strings name.

    Each permutation begins with the batch and feature (of rhs: output and input feature)
    dimensions. The spatial dimensions follow in the order of rhs.

    Raises:
        ShapeError: for strings that do not name every dimension once.

    >>> conv_general_permutations(("NHWC", "HWIO", "NCHW"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 1, 2, 3))
    """
    for spec, first, second in zip(dimension_numbers, "NON", "CIC", strict=True):
        if spec.count(first) != 1 or spec.count(second) != 1:
            raise ShapeError(
                f"{_NAME}: {spec!r} in dimension_numbers must contain {first!r} and {second!r} "
                "once each.",
                'Name the dimensions of lhs, rhs and the result: ("NHWC", "HWIO", "NHWC").',
            )
    lhs, rhs, out = dimension_numbers
    spatial = [letter for letter in rhs if letter not in "OI"]
    for spec, others in ((lhs, "NC"), (rhs, "OI"), (out, "NC")):
        named = [letter for letter in spec if letter not in others]
        if sorted(named) != sorted(set(spatial)):
            raise ShapeError(
                f"{_NAME}: the strings {tuple(dimension_numbers)} in dimension_numbers must have "
                "the same spatial dimensions, each of them once.",
                "Use the same characters for them in all three.",
            )
    return tuple(  # type: ignore[return-value]
        (spec.index(first), spec.index(second), *map(spec.index, spatial))
        for spec, first, second in zip(dimension_numbers, "NON", "CIC", strict=True)
    )


def _ranks_differ(lhs: int, rhs: int) -> ShapeError:
    return ShapeError(
        f"{_NAME}: lhs and rhs must have the same number of dimensions, but they have {lhs} and "
        f"{rhs}.",
        "Add dimensions of size 1 to one of them.",
    )


# Padding ---------------------------------------------------------------------------------------


def dilate(size: int, dilation: int) -> int:
    """Returns the extent of a dimension with dilation - 1 holes between neighbours.

    >>> dilate(3, 2)
    5
    """
    return (size - 1) * dilation + 1 if size else 0


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: object,
) -> list[tuple[int, int]]:
    """Returns padding given by its name as (low, high) for each spatial dimension.

    Args:
        in_shape: Extents of the spatial dimensions.
        window_shape: Extents of the window.
        window_strides: Steps of the window.
        padding: 'VALID' for none; 'SAME' for ceil(size / stride) results, with the odd element
            behind; 'SAME_LOWER' with the odd element in front.

    Raises:
        ParameterError: for another name.

    >>> padtype_to_pads((10, 3), (3, 2), (2, 1), "SAME")
    [(0, 1), (0, 1)]
    """
    name = padding.upper() if isinstance(padding, str) else padding
    if name not in ("SAME", "SAME_LOWER", "VALID"):
        raise PaddingError(
            f"padding {padding!r} has no such name.",
            "Pass 'VALID', 'SAME', 'SAME_LOWER', or a pair (low, high) for each dimension.",
        )
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = max((-(-size // stride) - 1) * stride + window - size, 0)
        half = total // 2
        pads.append((half, total - half) if name == "SAME" else (total - half, half))
    return pads


class PaddingError(ParameterError, RuntimeError, TypeError):
    """Padding has an unknown name, or does not consist of pairs."""


def padding_pairs(name: str, padding: UserObject, count: int) -> Padding:
    """Returns explicit padding as pairs of integers.

    Raises:
        PaddingError: for anything but one pair for each of the `count` spatial dimensions.
    """
    try:
        pairs = tuple((as_extent(low), as_extent(high)) for low, high in padding)
    except (TypeError, ValueError):
        pairs = None
    if pairs is None or len(pairs) != count:
        raise PaddingError(
            f"{name}: padding {padding!r} must be a name or one pair (low, high) for each of the "
            f"{count} spatial dimensions.",
            "Pass 'VALID', 'SAME', 'SAME_LOWER', or pairs.",
        )
    return pairs


def canonical_geometry(
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    window_strides: Sequence[int],
    padding: PaddingLike,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    dimension_numbers: object,
) -> Params:
    """Returns the op's parameters that determine the positions of the kernel.

    Args:
        lhs: Shape of the operand.
        rhs: Shape of the kernel.
        window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers: The user's
            arguments; see `conv_general_dilated`.

    Raises:
        ShapeError, PaddingError: for arguments of another form than described there.
    """
    numbers = conv_dimension_numbers(lhs, rhs, dimension_numbers)
    count = len(numbers.lhs_spec) - 2
    lhs_dilation = (1,) * count if lhs_dilation is None else tuple(map(index, lhs_dilation))
    rhs_dilation = (1,) * count if rhs_dilation is None else tuple(map(index, rhs_dilation))
    window_strides = tuple(map(index, window_strides))
    for name, values in (
        ("window_strides", window_strides),
        ("lhs_dilation", lhs_dilation),
        ("rhs_dilation", rhs_dilation),
    ):
        _check_steps(name, values, count)
    if isinstance(padding, str):
        padding = _named_padding(
            lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, numbers
        )
    return {
        "window_strides": window_strides,
        "padding": padding_pairs(_NAME, padding, count),
        "lhs_dilation": lhs_dilation,
        "rhs_dilation": rhs_dilation,
        "dimension_numbers": numbers,
    }


def _check_steps(name: str, values: tuple[int, ...], count: int) -> None:
    if len(values) != count or any(value < 1 for value in values):
        raise ConvolutionShapeError(
            f"{_NAME}: {name} {values} must be {count} positive integers.",
            "Give one for each spatial dimension.",
        )


def _named_padding(
    lhs: tuple[int, ...], rhs: tuple[int, ...], strides: tuple[int, ...], padding: str,
    lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...], numbers: ConvDimensionNumbers,
) -> list[tuple[int, int]]:  # fmt: skip
    """Returns padding given by its name as pairs."""
    if any(dilation != 1 for dilation in lhs_dilation):
        raise PaddingError(
            f"{_NAME}: padding {padding!r} has no meaning with lhs_dilation {lhs_dilation}.",
            "Give pairs (low, high), or use conv_transpose.",
        )
    sizes = [lhs[axis] for axis in numbers.lhs_spec[2:]]
    windows = [
        dilate(rhs[axis], dilation)
        for axis, dilation in zip(numbers.rhs_spec[2:], rhs_dilation, strict=True)
    ]
    return padtype_to_pads(sizes, windows, strides, padding)


# Result ----------------------------------------------------------------------------------------


def result_dtype(lhs: np.dtype, rhs: np.dtype, preferred: np.dtype | None) -> np.dtype:
    """Returns the dtype of the result, or raises `DTypeError`."""
    if lhs != rhs:
        raise DTypeError(
            f"{_NAME} requires operands of equal dtype, but got {lhs} and {rhs}.",
            "Cast one of them with x.astype(dtype).",
        )
    kind = dtypes.kind(lhs)
    if preferred is None or preferred == lhs:
        return lhs
    allowed = {"b": "", "i": "if", "u": "uf", "f": "f", "c": "c"}[kind]
    is_narrower = preferred.itemsize < lhs.itemsize and dtypes.kind(preferred) == kind
    if dtypes.kind(preferred) not in allowed or is_narrower:
        raise DTypeError(
            f"{_NAME}: preferred_element_type {preferred} cannot hold sums of products of {lhs}.",
            "Leave it out, and cast the result.",
        )
    return preferred


def computed_dtype(operand: np.dtype, result: np.dtype) -> np.dtype:
    """Returns the dtype to multiply and accumulate in."""
    return computation_dtype(operand, result)


def infer(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    preferred_element_type: np.dtype | None,
    precision: PrecisionLike,
    **geometry: object,
) -> ShapedArray:
    """Infers the result type of `conv_general_dilated`."""
    shape = result_shape(lhs.shape, rhs.shape, **geometry)
    dtype = result_dtype(lhs.dtype, rhs.dtype, preferred_element_type)
    is_weak = lhs.weak_type and rhs.weak_type and preferred_element_type is None
    return ShapedArray(shape, dtype, is_weak)


@functools.lru_cache(maxsize=4096)
def result_shape(
    lhs: tuple[int, ...], rhs: tuple[int, ...], *, window_strides: tuple[int, ...],
    padding: Padding, lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...],
    dimension_numbers: ConvDimensionNumbers, feature_group_count: int, batch_group_count: int,
) -> tuple[int, ...]:  # fmt: skip
    """Returns the shape of a convolution's result, or raises `ConvolutionShapeError`."""
    if len(lhs) != len(rhs):
        raise _ranks_differ(len(lhs), len(rhs))
    if len(lhs) < 2:
        raise ConvolutionShapeError(
            f"{_NAME}: lhs of shape {lhs} must have a batch and a feature dimension.",
            "Add dimensions of size 1.",
        )
    _check_axes(dimension_numbers, len(lhs))
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    operand, kernel = [lhs[a] for a in lhs_spec], [rhs[a] for a in rhs_spec]
    _check_groups(operand, kernel, feature_group_count, batch_group_count)
    count = len(lhs) - 2
    for name, values in (
        ("window_strides", window_strides),
        ("lhs_dilation", lhs_dilation),
        ("rhs_dilation", rhs_dilation),
    ):
        _check_steps(name, values, count)
    padding_pairs(_NAME, padding, count)
    sizes = [operand[0] // batch_group_count, kernel[0]]
    for axis, pads in enumerate(padding):
        base = dilate(operand[axis + 2], lhs_dilation[axis]) + sum(pads)
        _check_window(axis, base, pads, kernel[axis + 2], operand[axis + 2])
        window = dilate(kernel[axis + 2], rhs_dilation[axis])
        sizes.append((base - window) // window_strides[axis] + 1 if base >= window else 0)
    result = [0] * len(lhs)
    for axis, size in zip(out_spec, sizes, strict=True):
        result[axis] = size
    return tuple(result)


def _check_axes(numbers: ConvDimensionNumbers, ndim: int) -> None:
    for name, spec in zip(numbers._fields, numbers, strict=True):
        if sorted(spec) != list(range(ndim)):
            raise ConvolutionShapeError(
                f"{_NAME}: {name} {spec} of dimension_numbers must name each of the {ndim} "
                "dimensions once.",
                f"Use a permutation of 0 to {ndim - 1}.",
            )


def _check_window(axis: int, base: int, pads: tuple[int, int], window: int, size: int) -> None:
    if base < 0:
        raise ConvolutionShapeError(
            f"{_NAME}: padding {pads} cuts more off spatial dimension {axis} of lhs than its "
            f"{size} elements.",
            "Use less negative padding.",
        )
    if window == 0:
        raise ConvolutionShapeError(
            f"{_NAME}: rhs has no elements along spatial dimension {axis}.",
            "A window holds at least one element.",
        )


def _check_groups(lhs: list[int], rhs: list[int], feature_groups: int, batch_groups: int) -> None:
    """Raises an error unless features and groups of operands fit.

    Args:
        lhs: Extents of lhs: (batch, feature, *spatial).
        rhs: Extents of rhs: (output feature, input feature, *spatial).
        feature_groups, batch_groups: Numbers of groups.
    """
    counts = (("feature_group_count", feature_groups), ("batch_group_count", batch_groups))
    for name, count in counts:
        if count < 1:
            raise ConvolutionShapeError(
                f"{_NAME}: {name} {count} must be positive.", "1 is a single group."
            )
        if rhs[0] % count:
            raise ConvolutionShapeError(
                f"{_NAME}: the {rhs[0]} output features of rhs must be a multiple of {name} "
                f"{count}.",
                "Each group makes as many of them as the others.",
            )
    if feature_groups > 1 and batch_groups > 1:
        raise ConvolutionShapeError(
            f"{_NAME}: feature_group_count {feature_groups} and batch_group_count {batch_groups} "
            "are both greater than 1.",
            "Group one of the two.",
        )
    if lhs[0] % batch_groups:
        raise ConvolutionShapeError(
            f"{_NAME}: the batch of {lhs[0]} in lhs must be a multiple of batch_group_count "
            f"{batch_groups}.",
            "Each group takes as many of it as the others.",
        )
    if lhs[1] % feature_groups or lhs[1] // feature_groups != rhs[1]:
        raise ConvolutionShapeError(
            f"{_NAME}: the {lhs[1]} features of lhs in feature_group_count {feature_groups} "
            f"group(s) must be {rhs[1]} each, the input features of rhs.",
            "dimension_numbers says which dimensions are features; rhs has those of one group.",
        )
