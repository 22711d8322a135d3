"""Control flow on concrete operands: interpreted while that is cheap, else compiled as a unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...array import ConcreteArray, as_array
from ...config import config
from ...effects import has_effects
from ...function import Equation, Function, functions_in
from ...primitive import Primitive
from ...single_flight import made_once
from ...trace import trace_function
from ...types import ShapedArray
from ..call import call, has_executor

# What compiling costs in microseconds, at least and for each op.
_COMPILATION = 300_000.0
_COMPILED_OP = 5_000.0
# What interpreting costs: of a step, and of an element that it reads or writes.
_STEP = 2.5
_ELEMENT = 1e-3
# What a pass of a compiled loop costs at least, in microseconds: bodies of an op or two run faster
# interpreted.
COMPILED_PASS = 6.0
# Passes that a loop of unknown length is taken to make where it stands in another loop.
_UNKNOWN_LENGTH = 10


def work_of(function: Function) -> float:
    """Estimates the microseconds that interpreting a function takes."""
    known = function.derived.get("work")
    if known is None:
        known = function.derived["work"] = sum(map(_work_of_equation, function.equations))
    return known


def _work_of_equation(equation: Equation) -> float:
    sizes = sum(v.type.size for v in (*equation.operands, *equation.results))
    bodies = [work_of(f) for f in _functions(equation.params)]
    if not bodies:
        return _STEP + _ELEMENT * sizes
    if equation.primitive.name == "cond":
        return _STEP + max(bodies)
    is_loop = equation.primitive.name == "while"
    return _STEP + sum(bodies) * equation.params.get("length", _UNKNOWN_LENGTH if is_loop else 1)


def compilation_of(params: dict[str, Any]) -> float:
    """Estimates the microseconds that compiling an op takes: less work is interpreted."""
    return _COMPILATION + _COMPILED_OP * sum(map(_ops_of, _functions(params)))


def _ops_of(function: Function) -> int:
    return len(function.equations) + sum(map(_ops_of, function.callees()))


def _functions(params: dict[str, Any]) -> Iterator[Function]:
    for value in params.values():
        yield from functions_in(value)


def may_compile(params: dict[str, Any]) -> bool:
    """Tells whether an op may be compiled rather than interpreted."""
    if not has_executor() or config.jax_disable_jit:
        return False
    if config.jax_debug_nans or config.jax_debug_infs:
        return False
    return not any(map(has_effects, _functions(params)))


class Unit:
    """An op as a function of its own, to be compiled."""

    def __init__(self, primitive: Primitive, params: dict[str, Any], types: Sequence[ShapedArray]):
        self._keeper = next(_functions(params)).derived
        self._key = ("unit", primitive.name, tuple(params.items()), tuple(types))
        self._primitive = primitive
        self._params = params
        self._types = types

    @property
    def is_used(self) -> bool:
        """Whether it has been compiled before under the current options."""
        known = self._keeper.get(self._key)
        return known is not None and config.cache_key in known.derived.get("used", ())

    @property
    def function(self) -> Function:
        """The function, traced when first asked for."""
        return made_once(self._keeper, self._key, self._trace)

    def _trace(self) -> Function:
        return trace_function(
            lambda *operands: self._primitive.bind(*operands, **self._params),
            self._types,
            name=self._primitive.name,
        )

    def __call__(self, operands: Sequence[ConcreteArray]) -> list[ConcreteArray]:
        """Runs the op compiled."""
        function = self.function
        function.derived.setdefault("used", set()).add(config.cache_key)
        return call(function, *operands)


def implementation(
    primitive: Primitive, gain: Callable[..., float]
) -> Callable[..., list[ConcreteArray]]:
    """Returns what applies a primitive to concrete operands.

    Args:
        primitive: An op whose work is known beforehand.
        gain: Estimates the microseconds that it runs faster compiled, from its parameters.
    """

    def implement(*operands: Any, **params: Any) -> list[ConcreteArray]:
        if may_compile(params):
            arrays = [as_array(x) for x in operands]
            unit = Unit(primitive, params, [x.type for x in arrays])
            if unit.is_used or gain(**params) > compilation_of(params):
                return unit(arrays)
        return primitive._evaluate(operands, params)

    return implement
