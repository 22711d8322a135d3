"""`pad`, in all of NumPy's modes."""

from __future__ import annotations

from collections.abc import Callable
from operator import index

import numpy as np

from axir._transforms.vectorize import vmap
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Options, UserFunction, UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.errors import AxirError, ParameterError
from axir.dialect.core.symbolic_dims import as_extent
from axir.dialect.ops.elementwise.arithmetic import add, floor, mul, round, sub
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.constants import iota
from axir.dialect.ops.shape.padding import pad as lax_pad
from axir.dialect.ops.shape.rearranging import reshape, rev
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.checks import is_sequence
from axir.numpy._arguments.promotion import array_argument, constant, inexact_dtype
from axir.numpy._reductions.moments import mean
from axir.numpy._reductions.quantiles import median
from axir.numpy._reductions.reductions import max as largest
from axir.numpy._reductions.reductions import min as smallest

from .joining import tile
from .manipulation import moveaxis

__all__ = ["pad"]

Pair = tuple[UserObject, UserObject]


class PaddingModeError(AxirError, NotImplementedError):
    """A padding mode that does not exist."""


def pad(array: object, pad_width: object, mode: UserObject = "constant", **kwargs: object) -> Value:
    """Adds elements before and after an array's elements.

    Args:
        array: Array.
        pad_width: How many: ((before, after), ...) per axis, (before, after) for all axes, or one
            number for all.
        mode: 'constant'; 'edge' repeats the outermost elements; 'reflect' and 'symmetric' mirror
            at them, without and with repeating them; 'wrap' goes on periodically; 'linear_ramp'
            goes to an end value; 'maximum', 'minimum', 'mean' and 'median' of the elements;
            'empty' (zeros); or a function `(row, (before, after), axis, kwargs) -> row` of each
            row along each axis.
        **kwargs: `constant_values` and `end_values`, of the form of `pad_width`, 0 by default;
            `stat_length`, the number of elements next to the edge to use for the maximum,
            ..., by default all; `reflect_type`, 'even' or 'odd', which mirrors at a point.

    Raises:
        ParameterError: for widths that do not fit, unknown keywords, and padding of empty axes.
        PaddingModeError: for an unknown mode.

    >>> import axir.numpy as jnp
    >>> jnp.pad(jnp.array([1, 2, 3]), (2, 1), mode="reflect")
    Array([3, 2, 1, 2, 3, 2], dtype=int32)
    """
    array = array_argument("pad", array)
    widths = [
        (_width(before), _width(after))
        for before, after in _pairs(pad_width, array.ndim, "pad_width")
    ]
    if callable(mode):
        return _pad_with_function(array, widths, mode, kwargs)
    _check_mode(mode, kwargs)
    return _MODES[mode](array, widths, **kwargs)


def _pad_constant(array: Value, widths: list[Pair], constant_values: object = 0) -> Value:
    given = _pairs(constant_values, array.ndim, "constant_values")
    converted = {id(x): _scalar(x, array) for pair in given for x in pair}
    values = [tuple([converted[id(x)] for x in pair]) for pair in given]
    if len({id(x) for pair in values for x in pair}) <= 1:
        value = values[0][0] if values else constant(0, array.dtype)
        if array.ndim == 0:
            return array
        return lax_pad(array, value, [(before, after, 0) for before, after in widths])
    for axis, (pair, (low, high)) in enumerate(zip(widths, values, strict=True)):
        parts = [_filled(low, array, axis, pair[0]), array, _filled(high, array, axis, pair[1])]
        array = concatenate(parts, axis)
    return array


def _scalar(value: UserObject, array: Value) -> Value:
    if type(value) in (bool, int, float, complex):
        if array.type.weak_type:
            return convert_element_type(value, array.dtype, weak_type=True)
        converted = convert_element_type(value, array.dtype)
        return constant(converted.host().item(), array.dtype)  # type: ignore[attr-defined]
    return convert_element_type(value, array.dtype, weak_type=array.type.weak_type)


def _filled(value: Value, array: Value, axis: int, count: int) -> Value:
    shape = tuple(count if d == axis else n for d, n in enumerate(array.shape))
    return broadcast_in_dim(value, shape, ())


def _pad_empty(array: Value, widths: list[Pair]) -> Value:
    return _pad_constant(array, widths)


def _along_each_axis(
    extend: Callable[[Value, int, int, int], Value], mode: str
) -> Callable[..., Value]:
    """Makes a mode of a function that extends an array along one axis."""

    def apply(array: Value, widths: list[Pair], **options: object) -> Value:
        for axis, (before, after) in enumerate(widths):
            if not before and not after:
                continue
            if not array.shape[axis]:
                raise ParameterError(
                    f"jnp.pad: cannot extend the empty axis {axis} of {array.aval} in mode "
                    f"{mode!r}.",
                    "Only the modes 'constant' and 'empty' can.",
                )
            array = extend(array, axis, before, after, **options)
        return array

    return apply


def _extend_edge(array: Value, axis: int, before: int, after: int) -> Value:
    extent = array.shape[axis]
    first = slice_in_dim(array, 0, 1, axis=axis)
    last = slice_in_dim(array, extent - 1, extent, axis=axis)
    return concatenate([_repeated(first, axis, before), array, _repeated(last, axis, after)], axis)


def _repeated(piece: Value, axis: int, count: int) -> Value:
    shape = tuple(count if d == axis else n for d, n in enumerate(piece.shape))
    return broadcast_in_dim(piece, shape, tuple(range(piece.ndim)))


def _extend_wrap(array: Value, axis: int, before: int, after: int) -> Value:
    extent = array.shape[axis]
    start, total = -before % extent, before + extent + after
    counts = [1] * array.ndim
    counts[axis] = -(-(start + total) // extent)
    return slice_in_dim(tile(array, counts), start, start + total, axis=axis)


def _mirror(is_edge_repeated: bool) -> Callable[..., Value]:
    """Mirrors the array at its edges, again and again as it grows."""

    def extend(
        array: Value, axis: int, before: int, after: int, reflect_type: str = "even"
    ) -> Value:
        if reflect_type not in ("even", "odd"):
            raise ParameterError(
                f"jnp.pad: reflect_type {reflect_type!r} is unknown.", "Pass 'even' or 'odd'."
            )
        if array.shape[axis] == 1 and not is_edge_repeated:
            return _extend_edge(array, axis, before, after)
        while before or after:
            available = array.shape[axis] - (not is_edge_repeated)
            low, high = min(before, available), min(after, available)
            parts = [
                _mirrored(array, axis, low, True, is_edge_repeated, reflect_type == "odd"),
                array,
                _mirrored(array, axis, high, False, is_edge_repeated, reflect_type == "odd"),
            ]
            array = concatenate(parts, axis)
            before, after = before - low, after - high
        return array

    return extend


def _mirrored(
    array: Value, axis: int, count: int, is_front: bool, is_edge_repeated: bool, is_odd: bool
) -> Value:
    extent = array.shape[axis]
    skipped = 0 if is_edge_repeated else 1
    if is_front:
        start = skipped
        edge = slice_in_dim(array, 0, 1, axis=axis)
    else:
        start = extent - skipped - count
        edge = slice_in_dim(array, extent - 1, extent, axis=axis)
    piece = rev(slice_in_dim(array, start, start + count, axis=axis), (axis,))
    if not is_odd:
        return piece
    return sub(mul(_repeated(edge, axis, count), 2), piece)


def _pad_linear_ramp(array: Value, widths: list[Pair], end_values: object = 0) -> Value:
    ends = _pairs(end_values, array.ndim, "end_values")
    for axis, ((before, after), (low, high)) in enumerate(zip(widths, ends, strict=True)):
        extent = array.shape[axis]
        first = slice_in_dim(array, 0, 1, axis=axis)
        last = slice_in_dim(array, extent - 1, extent, axis=axis)
        parts = [
            _ramp(low, first, axis, before),
            array,
            rev(_ramp(high, last, axis, after), (axis,)),
        ]
        array = concatenate(parts, axis)
    return array


def _ramp(end: object, edge: Value, axis: int, count: int) -> Value:
    """Returns `count` values from `end` on, in equal steps that would reach the edge."""
    dtype, is_weak = edge.dtype, edge.type.weak_type
    computed = inexact_dtype(dtype)
    shape = tuple(count if d == axis else n for d, n in enumerate(edge.shape))
    steps = broadcast_in_dim(iota(dtypes.real_dtype(computed), count), shape, (axis,))
    share = mul(convert_element_type(steps, computed), constant(1 / max(count, 1), computed))
    edge = _repeated(convert_element_type(edge, computed), axis, count)
    start = convert_element_type(array_argument("pad", end), computed)
    ramp = add(mul(sub(constant(1, computed), share), start), mul(share, edge))
    if computed != dtype:
        ramp = floor(ramp)
    return convert_element_type(ramp, dtype, weak_type=is_weak)


def _statistic(reduce: Callable[..., Value]) -> Callable[..., Value]:
    """Makes a mode that pads with a statistic of the elements next to each edge."""

    def apply(array: Value, widths: list[Pair], stat_length: object = None) -> Value:
        lengths = [(None, None)] * array.ndim
        if stat_length is not None:
            lengths = _pairs(stat_length, array.ndim, "stat_length")
        for axis, (pair, counts) in enumerate(zip(widths, lengths, strict=True)):
            extent = array.shape[axis]
            low, high = (extent if n is None else min(index(n), extent) for n in counts)
            if low < 1 or high < 1:
                raise ParameterError(
                    "jnp.pad: stat_length of 0 yields no value for padding.",
                    "Pass at least 1, or leave it out.",
                )
            front = slice_in_dim(array, 0, low, axis=axis)
            back = slice_in_dim(array, extent - high, extent, axis=axis)
            parts = [
                _repeated(_value(reduce, front, axis), axis, pair[0]),
                array,
                _repeated(_value(reduce, back, axis), axis, pair[1]),
            ]
            array = concatenate(parts, axis)
        return array

    return apply


def _value(reduce: Callable[..., Value], piece: Value, axis: int) -> Value:
    result = reduce(piece, axis=axis, keepdims=True)
    if dtypes.is_integer(piece.dtype) and dtypes.is_inexact(result.dtype):
        result = round(result, 1)
    return convert_element_type(result, piece.dtype, weak_type=piece.type.weak_type)


def _pad_with_function(
    array: Value, widths: list[Pair], function: UserFunction, kwargs: dict[str, Options]
) -> Value:
    array = _pad_constant(array, widths)
    for axis, pair in enumerate(widths):
        moved = moveaxis(array, axis, -1)
        rows = reshape(moved, (array.size // max(array.shape[axis], 1), array.shape[axis]))

        def pad_row(row: Value, pair: Pair = pair, axis: int = axis) -> Value:
            return function(row, pair, axis, kwargs)

        array = moveaxis(reshape(vmap(pad_row)(rows), moved.shape), -1, axis)
    return array


_MODES: dict[str, Callable[..., Value]] = {
    "constant": _pad_constant,
    "empty": _pad_empty,
    "edge": _along_each_axis(_extend_edge, "edge"),
    "wrap": _along_each_axis(_extend_wrap, "wrap"),
    "reflect": _along_each_axis(_mirror(is_edge_repeated=False), "reflect"),
    "symmetric": _along_each_axis(_mirror(is_edge_repeated=True), "symmetric"),
    "linear_ramp": _pad_linear_ramp,
    "maximum": _statistic(largest),
    "minimum": _statistic(smallest),
    "mean": _statistic(mean),
    "median": _statistic(median),
}
_KEYWORDS = {
    "constant": {"constant_values"},
    "linear_ramp": {"end_values"},
    **{mode: {"reflect_type"} for mode in ("reflect", "symmetric")},
    **{mode: {"stat_length"} for mode in ("maximum", "minimum", "mean", "median")},
}


def _check_mode(mode: object, kwargs: dict[str, object]) -> None:
    if mode not in _MODES:
        raise PaddingModeError(
            f"jnp.pad: mode {mode!r} is unknown.",
            f"Choose one of {', '.join(_MODES)}, or pass a function.",
        )
    unknown = set(kwargs) - _KEYWORDS.get(mode, set())
    if unknown:
        raise ParameterError(
            f"jnp.pad: mode {mode!r} does not take the keywords {sorted(unknown)}.",
            f"It takes {sorted(_KEYWORDS.get(mode, set()))}.",
        )


def _width(value: object) -> int:
    width = as_extent(value)
    if width < 0:
        raise ParameterError(
            f"jnp.pad: pad_width {width} is negative.", "Slice the array to make it smaller."
        )
    return width


def _pairs(values: UserObject, ndim: int, what: str) -> list[Pair]:
    """Spreads the short forms of a pair per axis: a number, a pair, a pair in brackets."""
    if isinstance(values, np.ndarray) or type(values) is ConcreteArray:
        if ndim == 0 and values.shape == (0, 2):
            return []
        values = np.asarray(values).tolist()
    if type(values) is Tracer and values.ndim:
        values = list(values)
    if not is_sequence(values):
        return [(values, values)] * ndim
    if not any(_is_sequence(x) for x in values):
        if len(values) in (1, 2):
            return [(values[0], values[-1])] * ndim
    elif all(_is_sequence(x) and len(x) == 2 for x in values) and len(values) in (1, ndim):
        pairs = [tuple(_entries(x)) for x in values]
        return pairs * ndim if len(values) == 1 else pairs
    raise ParameterError(
        f"jnp.pad: {what}={values!r} does not fit an array of {ndim} axes.",
        "Pass a number, a pair, or a pair for each axis.",
    )


def _is_sequence(x: ArrayLike) -> bool:
    if type(x) is Tracer:
        return x.ndim > 0
    return is_sequence(x) or np.ndim(x) > 0


def _entries(x: UserObject) -> list[UserObject]:
    return list(x) if is_sequence(x) or type(x) is Tracer else list(np.asarray(x).tolist())
