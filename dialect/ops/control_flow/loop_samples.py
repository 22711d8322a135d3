"""Samples of the ops of control flow."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import NestedNumbers, Options
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import abs as absolute
from axir.dialect.ops.elementwise.arithmetic import add, mul, neg, square
from axir.dialect.ops.elementwise.comparison import gt, lt, not_
from axir.dialect.ops.elementwise.samples import edge_array
from axir.dialect.ops.elementwise.transcendental import cos, exp, sin
from axir.dialect.ops.later_ops import later
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.ops.shape.constants import full_like
from axir.dialect.program.function import Function
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import FlatFunction, Operand, Value

from .closed_bodies import trace_body


def _traced(function: FlatFunction, *arrays: Any) -> Function:
    types = [ShapedArray(np.shape(x), np.asarray(x).dtype) for x in arrays]
    return trace_body(function, types, "body").function


def _slices(xs: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [np.zeros(x.shape[1:], x.dtype) for x in xs]


def _f32(*values: NestedNumbers) -> np.ndarray:
    return np.array(values[0] if len(values) == 1 else values, np.float32)


def _i32(*values: NestedNumbers) -> np.ndarray:
    return np.array(values[0] if len(values) == 1 else values, np.int32)


def _edges() -> list[np.ndarray]:
    """Values that loops and branches only pass on: of rank 6, empty, and at the edges."""
    return [
        edge_array((2, 1, 2, 1, 2, 1), dtypes.float32),
        edge_array((2, 3), dtypes.complex64),
        edge_array((2,), dtypes.int32),
        edge_array((2, 0), dtypes.float64),
    ]


# while -----------------------------------------------------------------------------------------


def _while(
    holds: Callable[..., object],
    advance: FlatFunction,
    init: Sequence[np.ndarray],
    cond_consts: Sequence[np.ndarray] = (),
    body_consts: Sequence[np.ndarray] = (),
    **options: Options,
) -> Sample:
    params = {
        "body_jaxpr": _traced(advance, *body_consts, *init),
        "body_nconsts": len(body_consts),
        "cond_jaxpr": _traced(lambda *xs: [holds(*xs)], *cond_consts, *init),
        "cond_nconsts": len(cond_consts),
    }
    return Sample((*cond_consts, *body_consts, *init), params, **options)


def _halve(x: Value, count: object) -> list[Value]:
    return [mul(x, 0.5), add(count, 1)]


def _nested_while() -> Sample:
    def advance(i: Value, x: Value) -> list[Value]:
        return [add(i, 1), *later.fori_values(0, i, lambda j, y: [mul(y, 0.5)], [x])]

    return _while(lambda i, x: lt(i, 3), advance, [_i32(0), _f32(8.0, -3.0)])


def while_samples() -> list[Sample]:
    """Samples of `while`: counted, ended by a value and by a flag, nested, without passes."""
    counter, vector = _i32(0), _f32(0.5, -1.25)
    counted = (
        lambda n, i, x: lt(i, n),
        lambda a, i, x: [add(i, 1), mul(sin(x), a)],
        [counter, vector],
    )
    return [
        _while(*counted, cond_consts=[_i32(3)], body_consts=[_f32(2.0, 1.5)]),
        _while(*counted, cond_consts=[_i32(-1)], body_consts=[_f32(2.0, 1.5)]),
        _while(
            lambda x, count: gt(absolute(x), 1.0), _halve, [np.array(12.5), np.array(7, np.uint8)]
        ),
        _while(
            lambda going, x: going,
            lambda going, x: [lt(x, 10), add(x, 3)],
            [np.array(True), _i32(2)],
        ),
        _while(
            lambda i, x: lt(i, 2),
            lambda i, x: [add(i, 1), mul(x, x)],
            [counter, np.array([1 + 2j, -0.5j], np.complex64)],
        ),
        _nested_while(),
        _while(
            lambda i, *xs: lt(i, 3),
            lambda i, *xs: [add(i, 1), *map(neg, xs)],
            [counter, *_edges()],
            is_smooth=False,
        ),
    ]


# cond ------------------------------------------------------------------------------------------


def _cond(index: int, branches: Sequence[Callable[..., Any]], *operands: np.ndarray) -> Sample:
    traced = tuple(_traced(branch, *operands) for branch in branches)
    return Sample((_i32(index), *operands), {"branches": traced})


def cond_samples() -> list[Sample]:
    """Samples of `cond`: two, one and three branches, indices out of range, nested."""
    vector, factor = _f32(0.5, -1.25, 2.0), _f32(1.5)
    pair = (
        lambda x, a: [mul(sin(x), a), a],
        lambda x, a: [sin(mul(cos(x), square(x))), full_like(a, 0)],
    )
    three = (
        lambda x, n: [exp(x), n],
        lambda x, n: [square(add(x, 1.0)), add(n, 1)],
        lambda x, n: [mul(x, 0.0), neg(n)],
    )

    def nested(x: Value) -> list[Value]:
        return later.cond_values(
            gt(reduce_sum(x, (0,)), 0.0), lambda y: [square(y)], lambda y: [sin(y)], [x]
        )

    truth = np.array([True, False])
    passed = _cond(1, [lambda *xs: xs, lambda *xs: [neg(x) for x in xs]], *_edges())
    return [
        dataclasses.replace(passed, is_smooth=False),
        _cond(0, pair, vector, factor),
        _cond(1, pair, vector, factor),
        *(_cond(index, three, np.array(0.75), _i32([3, 4])) for index in (-2, 1, 7)),
        _cond(0, [lambda x: [square(x)]], np.array([1 + 1j, 2.0], np.complex64)),
        _cond(1, [lambda x: [mul(x, 3.0)], nested], vector),
        _cond(1, [lambda x, p: [x, p], lambda x, p: [neg(x), p]], _i32(5), truth),
    ]


# scan ------------------------------------------------------------------------------------------


def _scan(
    advance: FlatFunction,
    length: int,
    consts: Sequence[np.ndarray] = (),
    carry: Sequence[np.ndarray] = (),
    xs: Sequence[np.ndarray] = (),
    reverse: bool = False,
    unroll: int = 1,
) -> Sample:
    operands = (*consts, *carry, *xs)
    params = {
        "jaxpr": _traced(advance, *consts, *carry, *_slices(xs)),
        "length": length,
        "reverse": reverse,
        "unroll": unroll,
        "num_consts": len(consts),
        "num_carry": len(carry),
        "linear": (False,) * len(operands),
    }
    return Sample(operands, params)


def _nested_scan() -> Sample:
    def advance(x: Value, i: Value) -> list[Value]:
        [x] = later.cond_values(gt(i, 1), lambda y: [square(y)], lambda y: [sin(y)], [x])
        inner = trace_body(lambda c: [mul(c, 0.5), add(c, x)], [x.type], "inner")
        carry, ys = later.bind_scan(inner, [], [x], [], length=2)
        return [*carry, *ys]

    return _scan(advance, 3, carry=[_f32(1.5, -0.5)], xs=[_i32(0, 1, 2)])


def scan_samples() -> list[Sample]:
    """Samples of `scan`: directions, unrolling, lengths, without carry, without xs, nested."""

    def recurrence(a: Operand, h: Any, n: Operand, x: Operand) -> list[Value]:
        h = sin(add(mul(h, cos(a)), x))
        return [h, add(n, 1), square(h), n]

    consts, carry = [_f32(0.9, 1.1)], [_f32(0.5, -0.25), _i32(0)]
    xs = _f32([[0.1, 0.2], [-0.3, 0.4], [0.5, 0.6], [0.7, -0.8], [0.9, 1.0]])
    flags = np.array([True, False, True])
    # The empty array is not a slice, but carried.
    *edges, empty = _edges()
    passed = _scan(lambda e, *xs: [e, *map(neg, xs)], 2, (), [empty], edges)
    return [
        dataclasses.replace(passed, is_smooth=False),
        _scan(recurrence, 5, consts, carry, [xs]),
        _scan(recurrence, 5, consts, carry, [xs], reverse=True, unroll=2),
        _scan(recurrence, 5, consts, carry, [xs], unroll=8),
        _scan(recurrence, 0, consts, carry, [xs[:0]]),
        _scan(recurrence, 1, consts, carry, [xs[:1]], reverse=True),
        _scan(lambda a, x: [mul(a, sin(x))], 3, [np.array(0.5)], (), [np.array([0.1, 0.2, 0.3])]),
        _scan(lambda x: [mul(x, 0.5)], 4, (), [np.array([1 + 1j, 2.0], np.complex64)]),
        _scan(
            lambda going, n, flag: [not_(going), add(n, 2), going, gt(n, 3)],
            3,
            (),
            [np.array(True), np.array([1, 2], np.int64)],
            [flags],
            reverse=True,
        ),
        _scan(lambda x, y: [mul(x, y)], 3, (), [np.uint8(2)], [np.array([1, 2, 3], np.uint8)]),
        _nested_scan(),
    ]
