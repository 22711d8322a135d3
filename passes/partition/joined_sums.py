"""Joined sums over devices: one exchange for many arrays, because an exchange is expensive.

A sum over devices waits, together with all ops that need it, until one cannot wait: the next sum
that needs it, an op with effects, or the end. Waiting sums over the same axes then become one
exchange. So the gradients of a step, which the program sums one by one, are summed together. Large
arrays are summed separately, because joining copies them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from axir.dialect.core import dtypes
from axir.dialect.core.memo import derived
from axir.dialect.core.state import attributed
from axir.dialect.ops.collectives.axis_reductions import psum_primitive
from axir.dialect.ops.collectives.joined_sums import joined_psum_primitive
from axir.dialect.program.effects import is_effectful
from axir.dialect.program.equation import Equation, Literal, Var
from axir.dialect.program.function import Function, functions_of
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Trace

# Bytes up to which an array is joined with others: copying a larger one costs as much as an
# exchange.
_LARGEST_ARRAY = 1 << 16
# Bytes from which on the joined arrays are sent.
_LARGEST_TOTAL = 1 << 20

Names = tuple[Hashable, ...]


@derived
def join_sums(function: Function) -> Function:
    """Returns a program of parts with fewer exchanges.

    Args:
        function: The program, without captures.
    """
    if not _has_several(function):
        return function
    with Trace(function.name, "Partition") as trace:
        walk = _Walk(trace, function)
        return trace.finish(walk.run([trace.add_input(v.type) for v in function.inputs]))


def _has_several(function: Function) -> bool:
    """Tells whether a function, or a callee, may have sums to join."""
    if sum(map(_may_wait, function.equations)) > 1:
        return True
    return any(_has_several(f) for e in function.equations for f in functions_of(e.params))


def _may_wait(equation: Equation) -> bool:
    is_sum = equation.primitive is psum_primitive and equation.params["axis_index_groups"] is None
    if not is_sum or dtypes.is_narrow(equation.operands[0].type.dtype):
        return False
    return _bytes_of(equation) <= _LARGEST_ARRAY


def _bytes_of(equation: Equation) -> int:
    operand = equation.operands[0].type
    return operand.size * operand.dtype.itemsize


class _Walk:
    """Writes a function with joined sums into a trace."""

    def __init__(self, trace: Trace, function: Function):
        self._trace = trace
        self._function = function
        self._values: dict[Var, Value] = {}
        # Waiting sums, by their axes; the ops that need them, in order; and the results of both.
        self._sums: dict[Names, list[Equation]] = {}
        self._behind: list[Equation] = []
        self._waiting: set[Var] = set()

    def run(self, arguments: Sequence[Value]) -> list[Value]:
        self._values.update(zip(self._function.inputs, arguments, strict=True))
        for equation in self._function.equations:
            self._visit(equation)
        self._flush()
        return [self._value(v) for v in self._function.outputs]

    def _visit(self, equation: Equation) -> None:
        waits = not self._waiting.isdisjoint(equation.operands)
        if _may_wait(equation):
            together = self._sums.get(equation.params["axes"], [])
            if waits or sum(map(_bytes_of, together)) > _LARGEST_TOTAL:
                self._flush()
            self._sums.setdefault(equation.params["axes"], []).append(equation)
            self._waiting.update(equation.results)
        elif is_effectful(equation):
            self._flush()
            self._write(equation)
        elif waits:
            self._behind.append(equation)
            self._waiting.update(equation.results)
        else:
            self._write(equation)

    def _flush(self) -> None:
        """Writes the waiting ops."""
        sums, behind = self._sums, self._behind
        self._sums, self._behind = {}, []
        self._waiting.clear()
        for names, together in sums.items():
            if len(together) == 1:
                self._write(together[0])
                continue
            operands = [self._value(e.operands[0]) for e in together]
            params = {"axes": names}
            for _ in attributed(together[-1:]):  # with the location of the last of them
                results = self._trace.record(joined_psum_primitive, operands, params)
                found = zip(together, results, strict=True)
                self._values.update((each.results[0], x) for each, x in found)
        for equation in behind:
            self._write(equation)

    def _write(self, equation: Equation) -> None:
        for each in attributed([equation]):
            params = {name: _within(value) for name, value in each.params.items()}
            results = self._trace.record(
                each.primitive, [self._value(v) for v in each.operands], params
            )
            found = results if each.primitive.multiple_results else [results]
            self._values.update(zip(each.results, found, strict=True))

    def _value(self, variable: Var) -> Value:
        if type(variable) is Literal:
            self._trace.embed(variable.array)
            return variable.array
        return self._values[variable]


def _within(param: object) -> object:
    """Returns a parameter with joined sums in the functions that it is or holds."""
    if type(param) is Function:
        return join_sums(param)
    return tuple(map(_within, param)) if type(param) is tuple else param
