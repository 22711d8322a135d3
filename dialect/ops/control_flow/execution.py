"""Control flow on concrete operands: interpreted if that is cheap, else compiled as a unit.

A body that runs repeatedly is decoded once into steps on a list of NumPy arrays. Elsewhere: the
estimates of both times (`dialect/program/costs.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from axir.dialect.core.annotations import Foreign, Params, Returning
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.config import config
from axir.dialect.core.dtypes import storage
from axir.dialect.core.errors import FloatingPointError_
from axir.dialect.core.host_arrays import ignore_floating_point_warnings, restore_warnings
from axir.dialect.core.memo import Memo, derived
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import call, has_executor
from axir.dialect.program.costs import compilation_time
from axir.dialect.program.effects import has_effects
from axir.dialect.program.equation import Equation, Literal, Var
from axir.dialect.program.function import Function, functions_of
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.primitive import Primitive, check_finite, primitive_of
from axir.dialect.program.rules import HostArrays, Value

Step = tuple[Callable[..., Any], list[int], dict[str, Any], Any, Any]


class Steps:
    """A function as steps; calling it maps NumPy arrays to NumPy arrays.

    Each step is (evaluation rule, slots of the operands, parameters, slot of the result, its
    dtype), with lists of slots and dtypes for an op with several results.
    """

    __slots__ = ("_outputs", "_slots", "_steps", "function")

    def __init__(self, function: Function):
        self.function = function
        arguments = (*function.inputs, *function.captures)
        self._slots: list[Foreign] = [None] * len(arguments)
        self._steps: list[Step] = []
        places = {v: index for index, v in enumerate(arguments)}
        self._add(function, places)
        self._outputs = [self._place(v, places) for v in function.outputs]
        del self._slots[: len(arguments)]

    def _add(self, function: Function, places: dict[Var, int]) -> None:
        for equation in function.equations:
            operands = [self._place(v, places) for v in equation.operands]
            if equation.primitive.is_call:
                callee = equation.params["jaxpr"]
                inner = dict(zip((*callee.inputs, *callee.captures), operands, strict=True))
                self._add(callee, inner)
                for result, output in zip(equation.results, callee.outputs, strict=True):
                    places[result] = self._place(output, inner)
                continue
            results = []
            for variable in equation.results:
                results.append(len(self._slots))
                places[variable] = len(self._slots)
                self._slots.append(None)
            self._steps.append(_step(equation, operands, results))

    def _place(self, variable: Var, places: dict[Var, int]) -> int:
        place = places.get(variable)
        if place is None:
            assert type(variable) is Literal
            place = places[variable] = len(self._slots)
            self._slots.append(variable.array.host())
        return place

    def __call__(self, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Runs the steps; call it under `quiet`."""
        slots = [*arguments, *self._slots]
        for evaluate, operands, params, place, dtype in self._steps:
            results = evaluate(*[slots[i] for i in operands], **params)
            if type(place) is int:
                if type(results) is not np.ndarray or results.dtype != dtype:
                    results = np.asarray(results, dtype)
                slots[place] = results
            else:
                for index, result, wanted in zip(place, results, dtype, strict=True):
                    slots[index] = np.asarray(result, wanted)
        found = [slots[i] for i in self._outputs]
        if config.jax_debug_nans or config.jax_debug_infs:
            self._check(arguments, found)
        return found

    def _check(self, arguments: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> None:
        """Raises for results that the debugging options forbid; names the first op that made one.

        Intermediate values of a program may be infinite: only its results are checked.
        """
        try:
            for x in found:
                check_finite(self.function.name, x)
        except FloatingPointError_:
            self._name_culprit(arguments)
            raise

    def _name_culprit(self, arguments: Sequence[np.ndarray]) -> None:
        variables = (*self.function.inputs, *self.function.captures)
        arrays = [ConcreteArray(v.type, x) for v, x in zip(variables, arguments, strict=True)]
        self.function.interpret(arrays)


def _step(equation: Equation, operands: list[int], results: list[int]) -> Step:
    primitive = equation.primitive
    dtypes = [storage(v.type.dtype) for v in equation.results]
    evaluate = primitive.evaluate
    if primitive.implementation is not None or evaluate is None:
        evaluate = _by_implementation(primitive_of(equation), [v.type for v in equation.operands])
    if primitive.multiple_results:
        return evaluate, operands, equation.params, results, dtypes
    return evaluate, operands, equation.params, results[0], dtypes[0]


def _by_implementation(primitive: Primitive, types: Sequence[Any]) -> Callable[..., object]:
    """Returns an evaluation rule that hands the arrays to the implementation of a primitive."""

    def evaluate(*hosts: np.ndarray, **params: object) -> HostArrays:
        arrays = [ConcreteArray(t, x) for t, x in zip(types, hosts, strict=True)]
        if primitive.implementation is not None:
            results = primitive.implementation(*arrays, **params)
        else:
            results = primitive._evaluate(arrays, params)
        if primitive.multiple_results:
            return [as_array(x).host() for x in results]
        return as_array(results).host()

    return evaluate


@derived
def steps_of(function: Function) -> Steps:
    """Returns the steps of a function; decodes them at the first request."""
    return Steps(function)


@contextmanager
def quiet() -> Iterator[None]:
    """Runs steps without NumPy's floating-point warnings."""
    token = ignore_floating_point_warnings()
    try:
        yield
    finally:
        restore_warnings(token)


def may_compile(params: Params) -> bool:
    """Tells whether an op may be compiled rather than interpreted."""
    if not has_executor() or config.jax_disable_jit:
        return False
    if config.jax_debug_nans or config.jax_debug_infs:
        return False
    return not any(map(has_effects, functions_of(params)))


class Unit:
    """An op as a separate function to compile; see `unit_of`."""

    def __init__(self, primitive: Primitive, params: Params, types: Sequence[ShapedArray]):
        self.derived = Memo()
        self._primitive = primitive
        self._params = params
        self._types = types
        # The options with which it has been compiled.
        self._used: set[Any] = set()

    @property
    def is_used(self) -> bool:
        """Whether it has been compiled before under the current options."""
        return config.cache_key in self._used

    def trace(self) -> Function:
        """Traces the op as a function."""
        return trace_function(
            lambda *operands: self._primitive.bind(*operands, **self._params),
            self._types,
            name=self._primitive.name,
        )

    def __call__(self, operands: Sequence[ConcreteArray]) -> list[Value]:
        """Runs the op compiled."""
        self._used.add(config.cache_key)
        return call(_traced(self), *operands)


@derived
def _traced(unit: Unit) -> Function:
    return unit.trace()


def unit_of(primitive: Primitive, params: Params, operands: Sequence[ConcreteArray]) -> Unit:
    """Returns an op on operands of some types as a unit; keeps it with a function that it calls."""
    keeper = next(functions_of(params))
    return _unit(keeper, primitive, tuple(params.items()), tuple(x.type for x in operands))


@derived
def _unit(
    keeper: Function,
    primitive: Primitive,
    params: tuple[tuple[str, object], ...],
    types: tuple[ShapedArray, ...],
) -> Unit:
    return Unit(primitive, dict(params), types)


def implementation(primitive: Primitive, gain: Callable[..., float]) -> Returning[Sequence[Value]]:
    """Returns a function that applies a primitive to concrete operands.

    Args:
        primitive: An op with a cost that is known in advance.
        gain: Estimates from the parameters how many microseconds compiled code saves.
    """

    def implement(*operands: Value, **params: object) -> Sequence[Value]:
        if may_compile(params):
            arrays = [as_array(x) for x in operands]
            unit = unit_of(primitive, params, arrays)
            if unit.is_used or gain(**params) > compilation_time(params):
                return unit(arrays)
        return primitive._evaluate(operands, params)

    return implement
