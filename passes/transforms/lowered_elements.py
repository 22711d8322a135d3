"""Ops on elements that compiled code holds in another form: words of keys, widened floats.

For an op that only moves elements, a random key is one element, and its words are a batch of
elements that move together. So the op on words is its batched form, with the words along the last
axis as the batch axis. For elements of few bits (float8, int4 ...) compiled code widens, computes,
and rounds.

Elsewhere: which ops widen, and the dtypes of their results (`dialect/program/narrow_elements.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core import dtypes
from axir.dialect.core.dtypes import is_key
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.shape.rearranging import moveaxis
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.module_writer import embed_captures
from axir.dialect.program.narrow_elements import widened_params
from axir.dialect.program.primitive import primitive_of
from axir.dialect.program.rules import Value


def moves_keys(equation: Equation) -> bool:
    """Tells whether an op moves elements that are random keys."""
    return equation.primitive.moves_elements and any(is_key(v.type.dtype) for v in equation.results)


def on_words(equation: Equation) -> Function:
    """Returns an op that moves random keys as a function of the keys' words."""
    primitive = equation.primitive
    types = [v.type for v in equation.operands]
    axes = [t.ndim if is_key(t.dtype) else None for t in types]
    assert primitive.batch is not None

    def move(*words: Value) -> Sequence[Value]:
        results, found = primitive.batch(words, axes, **equation.params)  # type: ignore[misc]
        if not primitive.multiple_results:
            results, found = [results], [found]
        return [moveaxis(x, axis, x.ndim - 1) for x, axis in zip(results, found, strict=True)]

    words: list[ShapedArray] = [t.words for t in types]
    return embed_captures(trace_function(move, words, name=primitive.name))


def computes_wide(equation: Equation) -> bool:
    """Tells whether an op widens operands, or rounds results."""
    primitive = primitive_of(equation)
    types = tuple([v.type for v in equation.operands])
    return primitive.widens(types, [v.type for v in equation.results], equation.params)


def on_wide_elements(equation: Equation) -> Function:
    """Returns an op as a function in which all arithmetic is on wide elements."""
    primitive = equation.primitive
    types = [v.type for v in equation.operands]
    narrow = [v.type.dtype for v in equation.results]

    def compute(*values: Value) -> Sequence[Value]:
        operands = [convert_element_type(x, dtypes.wide(x.dtype), x.weak_type) for x in values]
        results = primitive.bind(*operands, **widened_params(equation.params))
        listed = results if primitive.multiple_results else [results]
        return [
            convert_element_type(x, dtype) if dtypes.is_narrow(dtype) else x
            for x, dtype in zip(listed, narrow, strict=True)
        ]

    return embed_captures(trace_function(compute, types, name=primitive.name))
