"""Sliding windows: their parameters, their number, and folds over them.

Elsewhere: the ops that reduce windows (`reduce_window.py`, `reduce_window_by_function.py`) and
those that select one element of each (`select_and_scatter.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.annotations import DTypeLike, PaddingLike, Param, Params
from axir.dialect.core.array import from_numpy
from axir.dialect.core.errors import ShapeError
from axir.dialect.core.symbolic_dims import is_open, operation
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.convolution.types import dilate, padding_pairs, padtype_to_pads
from axir.dialect.ops.elementwise.family import full
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.shape.movement import integers
from axir.dialect.ops.shape.padding import pad
from axir.dialect.program.dimensions import Dimensions, Factors, by_position
from axir.dialect.program.op_table import OPS
from axir.dialect.program.rules import Value

_Elements = TypeVar("_Elements", np.ndarray, Value)


class Window(NamedTuple):
    """Windows that slide over an array: one entry per dimension of the array in each field.

    Attributes:
        window_dimensions: Number of elements of a window.
        window_strides: Distances between neighbouring windows.
        padding: Numbers of places added before and after; negative numbers cut places off.
        base_dilation: Distances between neighbouring elements, after spreading and before padding:
            2 leaves one hole between neighbours.
        window_dilation: Distances between the elements of a window.
    """

    window_dimensions: tuple[int, ...]
    window_strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    base_dilation: tuple[int, ...]
    window_dilation: tuple[int, ...]

    @property
    def padding_config(self) -> tuple[tuple[int, int, int], ...]:
        """The padding as the parameter of `pad`."""
        return tuple(
            (low, high, dilation - 1)
            for (low, high), dilation in zip(self.padding, self.base_dilation, strict=True)
        )

    @property
    def has_holes(self) -> bool:
        """Whether a window may contain places that hold no element."""
        return any(low > 0 or high > 0 for low, high in self.padding) or any(
            dilation > 1 for dilation in self.base_dilation
        )

    @property
    def is_padded(self) -> bool:
        """Whether the windows slide over a padded or dilated form of the operand."""
        rank = len(self.padding)
        return self.padding != ((0, 0),) * rank or self.base_dilation != (1,) * rank

    @property
    def is_dilated(self) -> bool:
        """Whether elements of the array or of the windows are spread out."""
        return any(d > 1 for d in (*self.base_dilation, *self.window_dilation))

    def batched(self) -> Window:
        """Returns the same windows with a new leading dimension, each within one entry of it."""
        return Window(
            (1, *self.window_dimensions),
            (1, *self.window_strides),
            ((0, 0), *self.padding),
            (1, *self.base_dilation),
            (1, *self.window_dilation),
        )


# The window parameters in declarations of ops.
WINDOW_PARAMETERS = get_type_hints(Window)
# Scatters do not support dilation.
UNDILATED_PARAMETERS = {
    name: kind for name, kind in WINDOW_PARAMETERS.items() if not name.endswith("dilation")
}


# Arguments -------------------------------------------------------------------------------------


def window_of(
    name: str,
    shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: PaddingLike = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Window:
    """Returns the windows that arguments describe.

    Args:
        name: The op, as named in messages.
        shape: Shape of the array.
        window_dimensions: As in `Window`.
        window_strides: As in `Window`; 1 by default, like the dilations.
        padding: As in `Window`, or "VALID", "SAME" or "SAME_LOWER".
        base_dilation: As in `Window`.
        window_dilation: As in `Window`.

    Raises:
        ShapeError: for a number of entries other than the rank, and entries that are not positive.
        PaddingError: for a padding that is neither known by name nor made of pairs.
    """
    arguments = (window_dimensions, window_strides, padding, base_dilation, window_dilation)
    try:
        return _remembered(name, tuple(shape), *arguments)
    except TypeError:  # lists are not hashable; or a real error
        return _window_of(name, tuple(shape), *arguments)


def _window_of(
    name: str,
    shape: tuple[int, ...],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: PaddingLike,
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> Window:
    rank = len(shape)
    ones = (1,) * rank
    sizes = integers(name, "window_dimensions", window_dimensions)
    strides, base, dilation = (
        ones if given is None else integers(name, what, given)
        for what, given in (
            ("window_strides", window_strides),
            ("base_dilation", base_dilation),
            ("window_dilation", window_dilation),
        )
    )
    unpadded = Window(sizes, strides, ((0, 0),) * rank, base, dilation)
    check_window(name, rank, unpadded)
    if isinstance(padding, str) or hasattr(padding, "name"):
        extents = [dilate(extent, by) for extent, by in zip(shape, base, strict=True)]
        spread = [dilate(size, by) for size, by in zip(sizes, dilation, strict=True)]
        pairs = tuple(padtype_to_pads(extents, spread, strides, padding))
    else:
        pairs = padding_pairs(name, padding, rank)
    return unpadded._replace(padding=pairs)


_remembered = functools.lru_cache(maxsize=1024)(_window_of)


def check_window(name: str, rank: int, window: Window) -> None:
    """Raises `ShapeError` unless the windows fit an array of that rank."""
    entries: Params = window._asdict()
    for what, values in entries.items():
        if len(values) != rank:
            raise ShapeError(
                f"{name}: {what}={values} must have one entry for each of the {rank} dimensions of "
                "the operand."
            )
        if what != "padding" and any(value < 1 for value in values):
            raise ShapeError(f"{name}: the entries of {what}={values} must be positive.")


@functools.lru_cache(maxsize=1024)
def result_shape(shape: tuple[int, ...], window: Window) -> tuple[int, ...]:
    """Returns the number of windows along each dimension."""
    counts = []
    for extent, size, stride, (low, high), base, dilation in zip(shape, *window, strict=True):
        padded = low + high + dilate(extent, base)
        span = dilate(size, dilation)
        counts.append(operation("max", (padded - span) // stride + 1, 0))
    return tuple(counts)


def cut_dimensions(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    **params: Param,
) -> Dimensions:
    """Returns the dimensions of ops with windows; they are whole if windows reach over edges.

    Adjacent windows, as in pooling, reach over no edge: their number is cut.
    """
    each = zip(window_dimensions, window_strides, padding, strict=True)
    moving = [d for d, (n, stride, edges) in enumerate(each) if (n, stride, *edges) != (1, 1, 0, 0)]
    found = by_position(operands, results, moving)
    factors = Factors(found.extents)
    own = [list(dimensions) for dimensions in (*found.operands, *found.results)]
    types = (*operands, *results)
    for d in moving:
        extents = {t.shape[d] for t in types if t.ndim}
        window, count = window_dimensions[d], min(extents)
        dilations = (params.get("base_dilation"), params.get("window_dilation"))
        if (
            window != window_strides[d]
            or padding[d] != (0, 0)
            or extents != {count, count * window}
        ):
            continue
        if any(dilation is not None and dilation[d] != 1 for dilation in dilations):
            continue
        factor = factors.new(count)
        for dimensions in own:
            if dimensions:
                dimensions[d] = factor
    made = tuple(map(tuple, own))
    return Dimensions(made[: len(operands)], made[len(operands) :], factors)


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Returns the shape of a reduction of windows; arguments as of `reduce_window`.

    >>> reduce_window_shape_tuple((5, 4), (2, 2), (1, 2), ((0, 1), (0, 0)))
    (5, 2)
    """
    name = "reduce_window_shape_tuple"
    shape = integers(name, "operand_shape", operand_shape)
    window = window_of(
        name, shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    return result_shape(shape, window)


# Folds -----------------------------------------------------------------------------------------


def fold_windows(
    combine: Callable[[list[_Elements], list[_Elements]], list[_Elements]],
    arrays: Sequence[_Elements],
    window: Window,
    counts: tuple[int, ...],
    cut: Callable[[_Elements, int, int, int, int], _Elements],
) -> list[_Elements]:
    """Combines the elements of each window, in row-major order.

    One dimension is folded after the other, the last one first. Along a dimension, windows of
    2, 4, 8 ... elements are made by doubling, and pieces of these sizes make up the window: a
    logarithm of steps, which overlapping windows share.

    Args:
        combine: Associative and elementwise: takes two lists of arrays, the earlier elements first,
            and returns such a list.
        arrays: Arrays of one shape, padded and dilated already.
        window: The windows; there must be at least one.
        counts: The number of windows along each dimension.
        cut: `(array, axis, start, limit, stride)` gives a slice along one axis.
    """
    values = list(arrays)
    for axis in reversed(range(len(counts))):
        size, stride = window.window_dimensions[axis], window.window_strides[axis]
        step, limit = window.window_dilation[axis], (counts[axis] - 1) * stride + 1
        is_direct = _direct_is_cheaper(size, stride)
        values = _fold_axis(
            combine, values, axis, size, step, limit, stride, cut, is_direct=is_direct
        )
    return values


def _direct_is_cheaper(size: int, stride: int) -> bool:
    """Tells whether taking each element of a window separately is cheaper than doubling."""
    return size - 1 <= stride * size.bit_length()


def _fold_axis(
    combine: Callable[[list[_Elements], list[_Elements]], list[_Elements]],
    values: list[_Elements],
    axis: int,
    size: int,
    step: int,
    limit: int,
    stride: int,
    cut: Callable[[_Elements, int, int, int, int], _Elements],
    *,
    is_direct: bool,
) -> list[_Elements]:
    def pieces(source: list[_Elements], first: int) -> list[_Elements]:
        start = first * step
        return [cut(x, axis, start, start + limit, stride) for x in source]

    def halves(first: int, end: int) -> list[_Elements]:
        """Combines the elements of a range by halves, so that long sums stay accurate."""
        if end - first == 1:
            return pieces(values, first)
        middle = (first + end) // 2
        return combine(halves(first, middle), halves(middle, end))

    if is_direct:
        return halves(0, size)
    covered, width = 0, 1
    found: list[Any] | None = None
    while True:
        if size & width:
            piece = pieces(values, covered)
            found = piece if found is None else combine(found, piece)
            covered += width
        if covered == size:
            assert found is not None
            return found
        extent = values[0].shape[axis] - width * step
        late = [cut(x, axis, width * step, extent + width * step, 1) for x in values]
        values = combine([cut(x, axis, 0, extent, 1) for x in values], late)
        width *= 2


def cut_numpy(x: np.ndarray, axis: int, start: int, limit: int, stride: int) -> np.ndarray:
    """Slices a NumPy array along an axis."""
    return x[(slice(None),) * axis + (slice(start, limit, stride),)]


def cut_value(x: Value, axis: int, start: int, limit: int, stride: int) -> Value:
    """Slices an array or tracer along an axis."""
    return slice_in_dim(x, start, limit, stride, axis)


def pad_numpy(x: np.ndarray, filling: object, window: Window) -> np.ndarray:
    """Pads and dilates a NumPy array for its windows."""
    if not window.is_padded:
        return x
    evaluate: Any = OPS["pad"].evaluate
    return evaluate(x, np.asarray(filling), padding_config=window.padding_config)


def pad_value(x: Value, filling: Any, window: Window) -> Value:
    """Pads and dilates an array or tracer for its windows."""
    if not window.is_padded:
        return x
    return pad(x, full((), filling, x.dtype), window.padding_config)


def occupied_places(shape: tuple[int, ...], window: Window) -> np.ndarray:
    """Tells which of the places that windows slide over hold an element."""
    return pad_numpy(np.ones(shape, np.bool_), False, window)


def positions(shape: tuple[int, ...], dtype: DTypeLike = np.int64) -> np.ndarray:
    """Returns the row-major number of each element."""
    return np.arange(math.prod(shape), dtype=dtype).reshape(shape)


def padded_positions(shape: tuple[int, ...], window: Window) -> Value:
    """Returns the number of the element at each place that windows slide over; -1 in holes."""
    is_large = not is_open(shape) and math.prod(shape) >= 2**31
    dtype = np.int64 if is_large else np.int32
    return from_numpy(np.ascontiguousarray(pad_numpy(positions(shape, dtype), -1, window)))


# Lowering --------------------------------------------------------------------------------------


def lower_windows(
    values: Sequence[ir.Value],
    inits: Sequence[ir.Value],
    window: Window,
    body: Callable[..., object],
) -> list[ir.Value]:
    """Builds `stablehlo.reduce_window`."""
    return hlo.reduce_window(
        values,
        inits,
        window.window_dimensions,
        body,
        window_strides=window.window_strides,
        base_dilations=window.base_dilation,
        window_dilations=window.window_dilation,
        padding=window.padding,
        shape=result_shape(hlo.shape_of(values[0]), window),
    )
