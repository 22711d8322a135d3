"""Ops on elements of few bits (float8, int4 ...): compiled code widens, computes, and rounds.

Elsewhere: which ops do so, and the dtypes of their results (`dialect/program/narrow_elements.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core import dtypes
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.module_writer import embed_captures
from axir.dialect.program.narrow_elements import widened_params
from axir.dialect.program.primitive import primitive_of
from axir.dialect.program.rules import Value


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
