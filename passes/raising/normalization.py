"""Batch normalization of StableHLO, as arithmetic.

`x` is normalized over all its dimensions but `feature_index`: Ioffe & Szegedy (2015), Batch
Normalization.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core.array import from_numpy
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, sub
from axir.dialect.ops.elementwise.transcendental import rsqrt
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.program.rules import Value

from .attributes import integer
from .table import RaisingContext, raises


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
