"""Loops and conditionals of flat values; rules and lowerings of other ops use them.

>>> from axir.dialect.core.array import as_array
>>> [total] = fori_values(0, 4, lambda i, total: [add(total, i)], [as_array(0)])
>>> int(total)
6
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from axir.dialect.core.array import from_numpy
from axir.dialect.ops.elementwise.arithmetic import add
from axir.dialect.ops.elementwise.comparison import lt
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.rules import Operand, Value

from .closed_bodies import trace_body
from .conditional import bind_cond
from .scan import bind_scan
from .while_loop import bind_while

_INDEX = np.dtype(np.int32)


def while_values(
    cond: Callable[..., Value], body: Callable[..., Sequence[Value]], init: Sequence[Value]
) -> list[Value]:
    """Repeats `body(*values) -> values` as long as `cond(*values)`, a bool scalar, holds."""
    values = [as_value(x) for x in init]
    types = [x.type.strip_weak_type() for x in values]
    condition = trace_body(lambda *carry: [cond(*carry)], types, "condition")
    return bind_while(condition, trace_body(body, types, "body"), values)


def fori_values(
    lower: Any,
    upper: Any,
    body: Callable[..., Sequence[Value]],
    init: Sequence[Value],
) -> list[Value]:
    """Computes `values = body(i, *values)` for the int32 indices i from lower to upper.

    Args:
        lower, upper: Python integers or integer scalars; only with the former can the loop be
            differentiated in reverse mode.
        body: Returns values of the types that it takes.
        init: The first values.
    """

    def advance(i: Value, *carry: Value) -> list[Value]:
        return [add(i, 1), *body(i, *carry)]

    if isinstance(lower, int) and isinstance(upper, int):
        values = [_index(lower), *map(as_value, init)]
        traced = trace_body(advance, [x.type.strip_weak_type() for x in values], "body")
        return bind_scan(traced, [], values, [], length=max(upper - lower, 0))[0][1:]
    end = _index(upper)
    return while_values(lambda i, *_: lt(i, end), advance, [_index(lower), *init])[1:]


def _index(value: Operand) -> Value:
    if isinstance(value, (int, np.integer)):
        return from_numpy(np.array(value, _INDEX))
    return convert_element_type(value, _INDEX)


def cond_values(
    pred: Value,
    on_true: Callable[..., Sequence[Value]],
    on_false: Callable[..., Sequence[Value]],
    operands: Sequence[Value],
) -> list[Value]:
    """Applies `on_true` or `on_false` to the operands, by a bool scalar."""
    values = [as_value(x) for x in operands]
    types = [x.type for x in values]
    branches = [
        trace_body(function, types, name, is_branch=True)
        for function, name in ((on_false, "false"), (on_true, "true"))
    ]
    return bind_cond(convert_element_type(pred, _INDEX), branches, values)
