"""Control flow on concrete operands: interpreted if that is cheap, else compiled as a unit.

Elsewhere: the estimates of both times (`dialect/program/costs.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from axir.dialect.core.annotations import Params, Returning
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.config import config
from axir.dialect.core.memo import Memo, derived
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import call, has_executor
from axir.dialect.program.costs import compilation_time
from axir.dialect.program.effects import has_effects
from axir.dialect.program.function import Function, functions_of
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Value


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
