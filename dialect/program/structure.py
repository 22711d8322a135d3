"""The structure of a program: it is equal for two traces of the same code.

Functions, and values derived from them, are distinguished by identity. If each call traces a
function again, this module finds the function that an earlier call has traced.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from axir.dialect.core.annotations import HostArray

from .equation import Literal, Var
from .function import Function

# Larger arrays in a program count as different: comparing them would take too long.
_LARGEST_LITERAL = 1 << 16


def structure_of(function: Function) -> Hashable:
    """Returns a key that is equal for two functions with the same computation.

    It holds the types, the ops with their parameters and lines, and the flow of values between
    them, but not the captured values.

    >>> from axir.dialect.core.types import ShapedArray
    >>> from axir.dialect.ops.elementwise.transcendental import cos, sin
    >>> from axir.dialect.program.function_tracing import trace_function
    >>> def of(f, *shape):
    ...     return structure_of(trace_function(lambda x: [f(x)], [ShapedArray(shape, "float32")]))
    >>> of(sin, 2) == of(sin, 2), of(sin, 2) == of(cos, 2), of(sin, 2) == of(sin, 3)
    (True, False, False)
    """
    return _Numbers().of(function)


class _Numbers:
    """Values of a function by the order in which they are made."""

    def __init__(self) -> None:
        self._numbers: dict[Var, int] = {}

    def of(self, function: Function) -> Hashable:
        arguments = (*function.inputs, *function.captures)
        for variable in arguments:
            self._numbers[variable] = len(self._numbers)
        equations = []
        for equation in function.equations:
            operands = tuple([self._place(v) for v in equation.operands])
            for variable in equation.results:
                self._numbers[variable] = len(self._numbers)
            types = tuple([v.type for v in equation.results])
            params = tuple([(name, _within(value)) for name, value in equation.params.items()])
            equations.append((equation.primitive, operands, params, types, str(equation.location)))
        outputs = tuple([self._place(v) for v in function.outputs])
        types = tuple([v.type for v in arguments])
        return function.name, len(function.inputs), types, tuple(equations), outputs

    def _place(self, variable: Var) -> Hashable:
        if type(variable) is Literal:
            return variable.type, _content(variable.array.host())
        return self._numbers[variable]


def _within(param: object) -> Hashable:
    if type(param) is Function:
        return structure_of(param)
    if type(param) is tuple:
        return tuple(map(_within, param))
    # Zeros of both signs are equal, and so are 1 and True.
    return (type(param), repr(param) if type(param) is float else param)


def _content(array: HostArray) -> Hashable:
    return array.tobytes() if array.nbytes <= _LARGEST_LITERAL else id(array)


class Representatives:
    """The first function of each structure, kept for a number of recent structures.

    Args:
        limit: The number of structures.
    """

    def __init__(self, limit: int = 256):
        self._limit = limit
        self._found: OrderedDict[Hashable, Function] = OrderedDict()

    def of(self, function: Function, *key: Hashable) -> Function:
        """Returns the first function of this structure that came with an equal key."""
        try:
            found = self._found.setdefault((structure_of(function), *key), function)
        except TypeError:  # a parameter of a user's primitive that has no hash
            return function
        while len(self._found) > self._limit:
            self._found.popitem(last=False)
        return found

    def clear(self) -> None:
        """Forgets them."""
        self._found.clear()
