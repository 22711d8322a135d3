"""Fewer and later sums over devices: one for several summands, and behind loops, not in them.

A sum over devices is delayed while the following ops are linear and the same on all devices: they
move elements, add such sums, or multiply by a constant. Two sums that meet in an addition become
one. If a loop adds such a sum to a carried value in each iteration, it carries each device's
summand instead, starting from zero, and the sum over devices follows the loop. So the gradient of a
recurrent network is summed once, not in each step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from axir.dialect.core import dtypes
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.memo import derived
from axir.dialect.core.state import attributed
from axir.dialect.ops.collectives.axis_reductions import psum_primitive
from axir.dialect.ops.control_flow.scan import scan_primitive
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, neg, sub
from axir.dialect.ops.elementwise.family import full
from axir.dialect.program.equation import Equation, Literal, Var
from axir.dialect.program.function import Function, functions_of
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Trace

Names = tuple[Hashable, ...]
_SUMS = (add.primitive, sub.primitive)
_SCALINGS = (mul.primitive, div.primitive)


class Summand(NamedTuple):
    """A device's summand of a sum, or a complete value.

    Attributes:
        value: The value.
        names: The axes over which it must still be summed.
    """

    value: Value
    names: Names = ()


def delay_sums(function: Function) -> Function:
    """Returns a program of parts with as few sums over devices as it needs.

    Args:
        function: The program, without captures.
    """
    return _delayed(function, (), ()).function


class _Delayed(NamedTuple):
    """A function with delayed sums.

    Attributes:
        function: The function.
        failed: The numbers of the inputs that cannot be accumulators.
    """

    function: Function
    failed: frozenset[int]


@derived
def _delayed(
    function: Function, accumulators: tuple[tuple[int, int], ...], names: Names
) -> _Delayed:
    """Delays the sums of a function.

    Args:
        function: The function.
        accumulators: Numbers of inputs that hold only this device's summand, and of the outputs
            that add to them.
        names: The axes over which these are yet to be summed.
    """
    if not _sums_in(function):
        return _Delayed(function, frozenset(n for n, _ in accumulators))
    with Trace(function.name, "Partition") as trace:
        walk = _Walk(trace, function, dict(accumulators), names)
        outputs = walk.run([trace.add_input(v.type) for v in function.inputs])
        return _Delayed(trace.finish(outputs), frozenset(walk.failed))


def _sums_in(function: Function) -> frozenset[Names]:
    """Returns the axes over which a function, and the functions that it calls, sum."""
    return frozenset(_axes_of_sums(function))


def _axes_of_sums(function: Function) -> Iterator[Names]:
    for equation in function.equations:
        if _is_sum(equation):
            yield equation.params["axes"]
        for inner in functions_of(equation.params):
            yield from _axes_of_sums(inner)


def _is_sum(equation: Equation) -> bool:
    is_whole = equation.params.get("axis_index_groups") is None
    return equation.primitive is psum_primitive and is_whole


class _Walk:
    """Writes a function with delayed sums into a trace; arguments are as of `_delayed`."""

    def __init__(
        self, trace: Trace, function: Function, accumulators: Mapping[int, int], names: Names
    ):
        self.trace = trace
        self.function = function
        self.names = names
        self.failed: set[int] = set()
        self._inputs = {function.inputs[n]: n for n in accumulators}
        self._outputs = {n: number for number, n in accumulators.items()}
        self._uses = Counter(v for e in function.equations for v in e.operands)
        self._uses.update(function.outputs)
        self._user = {v: e for e in function.equations for v in e.operands}
        self._places: dict[Var, Summand] = {}

    def run(self, arguments: Sequence[Value]) -> list[Value]:
        for variable, value in zip(self.function.inputs, arguments, strict=True):
            is_accumulator = variable in self._inputs
            self._places[variable] = Summand(value, self.names if is_accumulator else ())
        for variable, number in self._inputs.items():
            if self._uses[variable] != 1 or not self._is_linear(self._user.get(variable)):
                self.failed.add(number)
        for equation in attributed(self.function.equations):
            for variable, result in zip(equation.results, self._apply(equation), strict=True):
                self._places[variable] = result
        return [self._output(n, v) for n, v in enumerate(self.function.outputs)]

    def _output(self, number: int, variable: Var) -> Value:
        if number not in self._outputs:
            return self._settled(variable)
        found = self._summand(variable)
        if found.names != self.names:
            self.failed.add(self._outputs[number])
        return found.value

    def _summand(self, variable: Var) -> Summand:
        if type(variable) is Literal:
            return Summand(self._constant(variable.array))
        return self._places[variable]

    def _constant(self, array: ConcreteArray) -> ConcreteArray:
        self.trace.embed(array)
        return array

    def _settled(self, variable: Var) -> Value:
        """Returns the value of a variable, after its sum if that was delayed."""
        found = self._summand(variable)
        if not found.names:
            return found.value
        if variable in self._inputs:
            self.failed.add(self._inputs[variable])
        value = psum_primitive.bind(found.value, axes=found.names, axis_index_groups=None)
        self._places[variable] = Summand(value)
        return value

    # Ops -----------------------------------------------------------------------------------------

    def _apply(self, equation: Equation) -> list[Summand]:
        if _is_sum(equation):
            value = self._settled(equation.operands[0])
            return [self._kept(equation, Summand(value, equation.params["axes"]))]
        if equation.primitive is scan_primitive:
            return self._scan(equation)
        summands = list(map(self._summand, equation.operands))
        names = {x.names for x, v in zip(summands, equation.operands, strict=True) if _counts(v)}
        if self._is_linear(equation) and len(names) == 1 and names != {()}:
            (result,) = self._bind(equation, [x.value for x in summands])
            return [self._kept(equation, Summand(result, names.pop()))]
        values = [self._settled(v) for v in equation.operands]
        return [Summand(x) for x in self._bind(equation, values)]

    def _kept(self, equation: Equation, result: Summand) -> Summand:
        """Returns a result unsummed if its only user can delay the sum, else summed."""
        (variable,) = equation.results
        outputs = [n for n in self._outputs if self.function.outputs[n] is variable]
        if self._uses[variable] == 1 and (outputs or self._is_linear(self._user.get(variable))):
            return result
        total = psum_primitive.bind(result.value, axes=result.names, axis_index_groups=None)
        return Summand(total)

    def _is_linear(self, equation: Equation | None) -> bool:
        if equation is None or len(equation.results) != 1:
            return False
        primitive, operands = equation.primitive, equation.operands
        if primitive in _SUMS:
            return len({v.type.shape for v in operands}) == 1
        if primitive in _SCALINGS:
            factors = [_counts(v) for v in operands]
            return factors == [True, False] or (
                factors == [False, True] and primitive is mul.primitive
            )
        if primitive is neg.primitive:
            return True
        moves = primitive.moves_elements and primitive.axis_names is None and len(operands) == 1
        return moves and equation.results[0].type.size <= operands[0].type.size

    def _bind(self, equation: Equation, operands: Sequence[Value]) -> list[Value]:
        params = {name: _within(value) for name, value in equation.params.items()}
        results = self.trace.record(equation.primitive, operands, params)
        return list(results) if equation.primitive.multiple_results else [results]

    def _scan(self, equation: Equation) -> list[Summand]:
        params = equation.params
        first, count = params["num_consts"], params["num_carry"]
        body, numbers, names = _accumulating(params["jaxpr"], first, count)
        values = [self._settled(v) for v in equation.operands]
        init = list(values)
        for n in numbers:
            array = full(values[first + n].shape, 0, values[first + n].dtype)
            init[first + n] = self._constant(array)  # type: ignore[arg-type]
        results = list(self.trace.record(equation.primitive, init, {**params, "jaxpr": body}))
        for n in numbers:
            total = psum_primitive.bind(results[n], axes=names, axis_index_groups=None)
            results[n] = add(values[first + n], total)
        return list(map(Summand, results))


def _counts(variable: Var) -> bool:
    """Tells whether a linear op is linear in an operand, which is then no constant."""
    return type(variable) is not Literal


def _within(param: object) -> object:
    """Returns a parameter with delayed sums in the functions that it is or holds."""
    if type(param) is Function:
        return delay_sums(param)
    return tuple(map(_within, param)) if type(param) is tuple else param


def _accumulating(body: Function, first: int, count: int) -> tuple[Function, list[int], Names]:
    """Returns the body of a loop with sums delayed beyond it, as far as it only adds to them.

    Args:
        body: The body.
        first: Number of its first carried input.
        count: The number of carried inputs.

    Returns:
        The body, the numbers of carried values that hold only this device's summand, and the axes
        over which these must still be summed.
    """
    floats = [n for n in range(count) if dtypes.is_inexact(body.outputs[n].type.dtype)]
    for names in sorted(_sums_in(body), key=repr):
        numbers = floats
        while numbers:
            pairs = tuple((first + n, n) for n in numbers)
            found, failed = _delayed(body, pairs, names)
            if not failed:
                return found, numbers, names
            numbers = [n for n in numbers if first + n not in failed]
    return delay_sums(body), [], ()
