"""Captures of functions as parameters: named, shared, or part of the program if small.

A captured array is named as in the source of the function that captured it: after the variable of
the surroundings that holds it, and the path there (`params['w']`). Elsewhere: tracing
(`axir.export`), writing (`saving.py`).
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from types import FunctionType, MethodType
from typing import NamedTuple, TypeAlias

import numpy as np

from axir._trees import tree
from axir.dialect.core.annotations import HostArray, UserObject
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.program.equation import Equation, Literal
from axir.dialect.program.function import Function
from axir.dialect.program.module_writer import SMALL_BYTES, embed_captures
from axir.dialect.program.rules import Results, Value
from axir.dialect.program.tracer import Trace

from .manifest import FunctionEntry

_ANONYMOUS = "constant"
_Place: TypeAlias = tuple[str, int]


def names_in(fun: Callable[..., object]) -> dict[_Place, str]:
    """Returns names of the arrays that a function finds in its surroundings, by their places."""
    found: dict[_Place, str] = {}
    for name, value in _surroundings(fun):
        for path, leaf in zip(tree.paths(value), tree.leaves(value), strict=True):
            if isinstance(leaf, (ConcreteArray, np.ndarray)):
                for place in _places(leaf):
                    found.setdefault(place, name + path)
    return found


def _surroundings(fun: Callable[..., object]) -> Iterator[tuple[str, UserObject]]:
    """Yields the variables around a function, and around the functions that these hold."""
    pending, seen = [fun], set()
    while pending:
        fun = pending.pop(0)
        if id(fun) in seen:
            continue
        seen.add(id(fun))
        for name, value in _variables(fun):
            is_exported = isinstance(getattr(value, "entry", None), FunctionEntry)
            if isinstance(value, (FunctionType, MethodType, functools.partial)) or is_exported:
                pending.append(value)
            elif hasattr(value, "__wrapped__"):
                pending.append(value.__wrapped__)
            else:
                yield name, value


def _variables(fun: Callable[..., object]) -> Iterator[tuple[str, UserObject]]:
    """Yields the names and values of the variables around a function and of bound arguments."""
    fun = inspect.unwrap(fun)
    if isinstance(getattr(fun, "entry", None), FunctionEntry):  # exported itself
        parameters: UserObject = fun.__dict__["parameters"]
        yield from parameters.items()
    elif isinstance(fun, functools.partial):
        yield "", fun.func
        yield from zip(inspect.signature(fun.func).parameters, fun.args, strict=False)
        yield from fun.keywords.items()
    elif isinstance(fun, MethodType):
        yield "", fun.__func__
        yield from getattr(fun.__self__, "__dict__", {}).items()
    elif isinstance(fun, FunctionType):
        variables = inspect.getclosurevars(fun)
        yield from variables.nonlocals.items()
        if not str(fun.__module__).startswith("axir."):  # axir's own globals are no parameters
            yield from variables.globals.items()
    else:
        yield from getattr(fun, "__dict__", {}).items()


def _places(x: ConcreteArray | np.ndarray) -> Iterator[_Place]:
    """Yields keys that identify an array: its object's id, and its memory's address."""
    yield "object", id(x)
    host = x._host if isinstance(x, ConcreteArray) else x
    if host is not None and host.size:
        yield "memory", int(host.__array_interface__["data"][0])


class Parametrized(NamedTuple):
    """A function with parameters as its captures, and their values by name, in order."""

    function: Function
    parameters: dict[str, ConcreteArray]


def parametrized(
    function: Function, names: Mapping[_Place, str], bound: Mapping[str, ConcreteArray]
) -> Parametrized:
    """Splits the captures of a function into parameters, which stay captures, and constants.

    Args:
        function: A traced function with arrays as its captures; or a function read from a module,
            which also has its large constants made parameters.
        names: Names of arrays; see `names_in`.
        bound: Values of its last inputs, by name, which become parameters as well.
    """
    name_of = {id(x): _name(x, names) for x in map(as_array, function.captured)}

    def is_embedded(array: ConcreteArray) -> bool:
        if name_of.get(id(array)) is None and array.nbytes <= SMALL_BYTES:
            return True
        return id(array) not in name_of and _is_uniform(array.host())

    if function.captures or _has_large_constants(function):
        function = embed_captures(function, is_embedded, captures_others=True)
    named = dict(bound)
    for x in map(as_array, function.captured):
        named[_free_name(name_of.get(id(x)) or _ANONYMOUS, named)] = x
    count = len(function.inputs) - len(bound)
    return Parametrized(with_captures(function, count, list(named.values())), named)


def _has_large_constants(function: Function) -> bool:
    """Tells whether a function has constants so large that they should be parameters."""
    values = [*function.outputs, *(x for e in function.equations for x in e.operands)]
    return any(
        isinstance(x, Literal) and x.type.size * x.type.dtype.itemsize > SMALL_BYTES for x in values
    )


def _is_uniform(host: HostArray) -> bool:
    """Tells whether all elements of an array are the same, bit by bit."""
    content = np.ascontiguousarray(words_of(host)).reshape(-1).view(np.uint8)
    words = content.reshape(host.size or 1, -1)
    return bool((words[1:2] == words[:1]).all() and (words == words[:1]).all())


def _name(x: ConcreteArray, names: Mapping[_Place, str]) -> str | None:
    return next((names[place] for place in _places(x) if place in names), None)


def _free_name(name: str, taken: Container[str]) -> str:
    """Returns a name, with a number added if it is taken."""
    found, number = name, 1
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def shared(functions: Mapping[str, Parametrized]) -> dict[str, Parametrized]:
    """Gives equal parameters of several functions one name, and others different names.

    Parameters are equal if they hold the same numbers, and have the same name or no names.
    """
    if len(functions) == 1:  # no other function to share with
        return dict(functions)
    values: dict[str, ConcreteArray] = {}
    names: dict[tuple[UserObject, ...], str] = {}
    found = {}
    for symbol, (function, parameters) in functions.items():
        renamed = {}
        for name, x in parameters.items():
            base = None if name.startswith(_ANONYMOUS) else name
            key = (base, *_content(x))
            if key not in names or names[key] in renamed:
                names[key] = _free_name(name, values)
            values[names[key]] = renamed[names[key]] = values.get(names[key], x)
        captured = list(renamed.values())
        found[symbol] = Parametrized(
            with_captures(function, len(function.inputs), captured), renamed
        )
    return found


def with_captures(function: Function, count: int, captured: Sequence[Value]) -> Function:
    """Returns the function with its first inputs only; the further inputs become captures.

    Args:
        function: The function; its present captured values are dropped.
        count: The number of inputs that it keeps.
        captured: Values of all further inputs and of the captures.
    """
    arguments = (*function.inputs, *function.captures)
    copy = Function(
        function.name,
        function.op,
        arguments[:count],
        arguments[count:],
        captured,
        function.outputs,
        function.equations,
    )
    copy.owner = function.owner
    return copy


def reordered(
    function: Function, order: Sequence[int], places: Sequence[int] | None = None
) -> Function:
    """Returns the function with its arguments, and its results perhaps, in another order.

    Args:
        function: The function.
        order: Numbers of its arguments.
        places: Numbers of its results; by default these stay where they are.
    """
    with Trace(function.name) as trace:
        inputs = {number: trace.add_input(function.inputs[number].type) for number in order}
        captured: list[UserObject] = [trace.capture(x) for x in function.captured]

        def record(equation: Equation, operands: Sequence[Value]) -> Results:
            return trace.record(equation.primitive, operands, equation.params)

        values = [inputs[number] for number in range(len(order))]
        outputs: Sequence[UserObject] = function.interpret([*values, *captured], record)
        return trace.finish(outputs if places is None else [outputs[n] for n in places])


def without_parameters(function: Function, count: int) -> Function:
    """Returns the function with its first captures, so many, as arguments after the others."""
    if not count:
        return function
    return with_captures(function, len(function.inputs) + count, function.captured[count:])


def _content(x: ConcreteArray) -> tuple[object, ...]:
    """Returns a key that is the same for equal arrays."""
    host = np.ascontiguousarray(words_of(x.host()))
    return x.type, hashlib.sha256(host.reshape(-1).view(np.uint8).data).digest()
