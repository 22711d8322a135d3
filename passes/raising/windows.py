"""Operations of layers of networks: windows of reductions, pooling, batch normalization.

For batch normalization, `x` is normalized over all its dimensions but `feature_index`: Ioffe &
Szegedy (2015), Batch Normalization.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import from_numpy
from axir.dialect.core.state import outside_traces
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, sub
from axir.dialect.ops.elementwise.comparison import ge, le
from axir.dialect.ops.elementwise.transcendental import rsqrt
from axir.dialect.ops.reductions.computations import single_op
from axir.dialect.ops.reductions.cumulative import cummax, cummin, cumprod, cumsum
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.windows.reduce_window_by_function import reduce_window
from axir.dialect.ops.windows.select_and_scatter_by_function import select_and_scatter
from axir.dialect.ops.windows.sliding_windows import Window
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.op_table import Traceable
from axir.dialect.program.rules import Value
from axir.passes.raising.dimensions.attributes import integer, integers, pairs

from .reductions import (
    elementwise,
    is_identity,
    known,
    only_compares,
    scalar_dtype,
    scalar_function,
)
from .shapes import known as all_known
from .table import RaisingContext, raises, raises_calls_of

_RUNNING: dict[str, Traceable] = {
    "add": cumsum,
    "mul": cumprod,
    "max": cummax,
    "min": cummin,
}
_IDEMPOTENT = ("max", "min", "and", "or")


def _window(operation: ir.Operation) -> Window:
    dimensions = integers(operation, "window_dimensions")
    ones = (1,) * len(dimensions)
    strides, base, dilations = (
        integers(operation, name, ones)
        for name in ("window_strides", "base_dilations", "window_dilations")
    )
    return Window(dimensions, strides, pairs(operation, "padding", len(ones)), base, dilations)


@raises("stablehlo.reduce_window")
def _reduce_window(
    context: RaisingContext, operation: ir.Operation, *values: Value
) -> Sequence[Value]:
    count = len(values) // 2
    arrays: UserObject = list(values[:count])
    inits: UserObject = [known(context, v) for v in list(operation.operands)[count:]]
    window = _window(operation)
    monoid = single_op(scalar_function(context, operation)) if count == 1 else None
    is_plain = monoid is not None and is_identity(monoid, inits[0])
    if monoid is not None and is_plain:
        running = _running(monoid, arrays[0], window)
        if running is not None:
            return [running]
    if not is_plain and monoid not in _IDEMPOTENT and window.is_padded:
        # In StableHLO padding holds initial values, which are combined; in axir padding is ignored.
        arrays = [
            pad(x, init, window.padding_config) for x, init in zip(arrays, inits, strict=True)
        ]
        rank = len(window.padding)
        window = window._replace(padding=((0, 0),) * rank, base_dilation=(1,) * rank)
    body = context.body(operation)
    return reduce_window(arrays, inits, lambda lhs, rhs: body(*lhs, *rhs), *window)


@raises_calls_of("stablehlo.dynamic_reduce_window")
def _dynamic_reduce_window(
    context: RaisingContext, operation: ir.Operation, *values: Value
) -> Sequence[Value]:
    count = (len(values) - 5) // 2
    numbers = [all_known(context, operation, 2 * count + n) for n in range(5)]
    flat = [tuple(x.reshape(-1).tolist()) for x in numbers[:4]]
    padding = tuple([(low, high) for low, high in numbers[4].tolist()])
    window = Window(flat[0], flat[1], padding, flat[2], flat[3])
    (symbol,) = ir.ArrayAttr(operation.attributes["called_computations"])
    name = ir.FlatSymbolRefAttr(symbol).value

    def body(*scalars: Value) -> list[Value]:
        return context.call(name, scalars)

    arrays: UserObject = list(values[:count])
    inits: UserObject = [known(context, v) for v in list(operation.operands)[count : 2 * count]]
    types = [x.type for x in inits] * 2
    monoid = single_op(trace_function(body, types)) if count == 1 else None
    if monoid is not None and is_identity(monoid, inits[0]):
        running = _running(monoid, arrays[0], window)
        if running is not None:
            return [running]
    return reduce_window(arrays, inits, lambda lhs, rhs: body(*lhs, *rhs), *window)


def _running(monoid: str, x: Value, window: Window) -> Value | None:
    """Returns a running reduction if each window reaches from an element to one end; else None."""
    if monoid not in _RUNNING or x.dtype == dtypes.bool_ or window.is_dilated:
        return None
    if window.window_strides != (1,) * x.ndim:
        return None
    wide = [axis for axis, size in enumerate(window.window_dimensions) if size != 1]
    if len(wide) != 1:
        return None
    (axis,) = wide
    size = x.shape[axis]
    rest = [pair for place, pair in enumerate(window.padding) if place != axis]
    if window.window_dimensions[axis] != size or any(pair != (0, 0) for pair in rest):
        return None
    ends = {(size - 1, 0): False, (0, size - 1): True}
    is_reversed = ends.get(window.padding[axis])
    if is_reversed is None:
        return None
    return _RUNNING[monoid](x, axis=axis, reverse=is_reversed)


@raises("stablehlo.select_and_scatter")
def _select_and_scatter(
    context: RaisingContext, operation: ir.Operation, x: Value, source: Value, init: Value
) -> Value:
    window = _window(operation)
    select, scatter = context.body(operation, 0), context.body(operation, 1)
    preferring = _preferring(context, operation)
    return select_and_scatter(
        x,
        preferring or (lambda a, b: select(a, b)[0]),
        *window[:3],
        source,
        known(context, operation.operands[2]),
        lambda a, b: scatter(a, b)[0],
    )


def _preferring(context: RaisingContext, operation: ir.Operation) -> Traceable | None:
    """Returns `ge` or `le` if the selecting function compares like one of these.

    Among NaNs the op itself prefers the first one.
    """
    if not only_compares(operation, 0):
        return None
    dtype = scalar_dtype(operation.regions[0].blocks[0].arguments[0])
    cases = np.array([[1, 1, 2], [1, 2, 1]]).astype(dtype)
    with outside_traces():
        (found,) = elementwise(context, operation, [from_numpy(x) for x in cases])
    chosen = found.host().tolist()  # type: ignore[attr-defined]
    return {(True, False, True): ge, (True, True, False): le}.get(tuple(chosen))


class _Features:
    """An array, and the dimension along which it is not normalized."""

    def __init__(self, operation: ir.Operation, x: Value):
        self.shape, self.dtype = x.shape, x.dtype
        self.feature = integer(operation, "feature_index")
        self.axes = tuple(axis for axis in range(x.ndim) if axis != self.feature)
        self.epsilon = self.number(ir.FloatAttr(operation.attributes["epsilon"]).value)

    def number(self, value: float) -> Value:
        return from_numpy(np.asarray(value).astype(self.dtype))

    def spread(self, x: Value) -> Value:
        return broadcast_in_dim(x, self.shape, (self.feature,))

    def mean(self, x: Value) -> Value:
        count = int(np.prod([self.shape[axis] for axis in self.axes]))
        return div(reduce_sum(x, self.axes), self.number(count))

    def normal(self, x: Value, mean: Value, variance: Value) -> Value:
        scale = rsqrt(add(variance, self.epsilon))
        return mul(sub(x, self.spread(mean)), self.spread(scale))


@raises("stablehlo.batch_norm_inference")
def _inference(
    context: RaisingContext,
    operation: ir.Operation,
    x: Value,
    scale: Value,
    offset: Value,
    mean: Value,
    variance: Value,
) -> Value:
    features = _Features(operation, x)
    normal = features.normal(x, mean, variance)
    return add(mul(normal, features.spread(scale)), features.spread(offset))


@raises("stablehlo.batch_norm_training")
def _training(
    context: RaisingContext, operation: ir.Operation, x: Value, scale: Value, offset: Value
) -> Sequence[Value]:
    features = _Features(operation, x)
    mean = features.mean(x)
    centred = sub(x, features.spread(mean))
    variance = features.mean(mul(centred, centred))
    normal = features.normal(x, mean, variance)
    return [add(mul(normal, features.spread(scale)), features.spread(offset)), mean, variance]


@raises("stablehlo.batch_norm_grad")
def _gradient(
    context: RaisingContext,
    operation: ir.Operation,
    x: Value,
    scale: Value,
    mean: Value,
    variance: Value,
    cotangent: Value,
) -> Sequence[Value]:
    features = _Features(operation, x)
    normal = features.normal(x, mean, variance)
    offset_cotangent = reduce_sum(cotangent, features.axes)
    scale_cotangent = reduce_sum(mul(cotangent, normal), features.axes)
    centred = sub(cotangent, features.spread(features.mean(cotangent)))
    along = mul(normal, features.spread(features.mean(mul(cotangent, normal))))
    factor = mul(scale, rsqrt(add(variance, features.epsilon)))
    return [mul(sub(centred, along), features.spread(factor)), scale_cotangent, offset_cotangent]
