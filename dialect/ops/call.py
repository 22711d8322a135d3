"""The call that a nested `jit` leaves: `jit`, whose body is a function of its own.

Its tangent, linear, transposed and batched parts are calls of derived functions, so a jitted
function stays one compiled unit under every transformation. How a body is compiled and run is not
known here: the frontend sets the executor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..array import ConcreteArray
from ..context import state
from ..derived import derive, derive_batched
from ..effects import acts_where_it_stands, is_staged
from ..errors import ParameterError
from ..function import Function
from ..primitive import Sample
from ..symbolic import Zero, is_undefined_primal
from ..trace import trace_function
from ..tracer import Tracer
from ..types import ShapedArray
from .table import declare

Executor = Callable[[Function, Sequence[ConcreteArray]], list[ConcreteArray]]
_executor: Executor | None = None


def set_executor(executor: Executor | None) -> Executor | None:
    """Sets what runs the body of a `jit` on concrete operands; returns what was set before.

    Without one, the evaluator runs the body op by op.
    """
    global _executor
    previous, _executor = _executor, executor
    return previous


def has_executor() -> bool:
    """Tells whether calls on concrete operands are compiled."""
    return _executor is not None


def _arguments(jaxpr: Function) -> list[ShapedArray]:
    return [v.type for v in (*jaxpr.inputs, *jaxpr.captures)]


def _infer(*types: ShapedArray, jaxpr: Function, **params: Any) -> list[ShapedArray]:
    expected = _arguments(jaxpr)
    fits = len(types) == len(expected) and all(
        a.shape == b.shape and a.dtype == b.dtype for a, b in zip(types, expected, strict=True)
    )
    if not fits:
        raise ParameterError(
            f"jit: @{jaxpr.name} takes ({', '.join(map(str, expected))}), but was called with "
            f"({', '.join(map(str, types))})."
        )
    return jaxpr.output_types


def _evaluate(*operands: np.ndarray, jaxpr: Function, **params: Any) -> list[np.ndarray]:
    arrays = [
        ConcreteArray(v.type, x)
        for v, x in zip((*jaxpr.inputs, *jaxpr.captures), operands, strict=True)
    ]
    return [x.host() for x in jaxpr.interpret(arrays)]


def _implement(*operands: Any, jaxpr: Function, **params: Any) -> list[Any]:
    if _executor is None:
        return jit_primitive._evaluate(operands, {"jaxpr": jaxpr, **params})
    return _executor(jaxpr, operands)


def _value_and_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Function, **params: Any
) -> tuple[list[Any], list[Any]]:
    active = tuple(type(t) is not Zero for t in tangents)
    derived = derive(jaxpr, "jvp", active)
    moving = [t for t in tangents if type(t) is not Zero]
    results = call(derived.function, *primals, *moving)
    count = len(jaxpr.outputs)
    return results[:count], _spread(jaxpr, results[count:], derived.active_outputs)


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Function, **params: Any
) -> tuple[list[Any], list[Any]]:
    active = tuple(type(t) is not Zero for t in tangents)
    split = derive(jaxpr, "linearize", active)
    count = len(jaxpr.outputs)
    results = call(split.known, *primals)
    residuals = split.residual_values(primals, results[count:])
    moving = [t for t in tangents if type(t) is not Zero]
    out_tangents: list[Any] = []
    if any(split.active_outputs):
        out_tangents = jit_primitive.bind(*moving, *residuals, **_parameters(split.linear))
    return results[:count], _spread(jaxpr, out_tangents, split.active_outputs)


def _spread(jaxpr: Function, tangents: Sequence[Any], active: Sequence[bool]) -> list[Any]:
    remaining = iter(tangents)
    return [
        next(remaining) if is_active else Zero(v.type.to_tangent_aval())
        for v, is_active in zip(jaxpr.outputs, active, strict=True)
    ]


def spread_cotangents(
    operands: Sequence[Any], active: Sequence[bool], cotangents: Sequence[Any]
) -> list[Any]:
    """Returns what a transpose rule returns: an entry for each operand, None for the known ones.

    Args:
        operands: The operands; cotangents are those of the linear ones.
        active: For each linear operand, whether it has a cotangent or a symbolic zero.
        cotangents: The cotangents that are no zeros, in order.
    """
    remaining, has_cotangent = iter(cotangents), iter(active)
    return [
        (next(remaining) if next(has_cotangent) else Zero(x.aval.to_tangent_aval()))
        if is_undefined_primal(x)
        else None
        for x in operands
    ]


def transpose_call(
    cotangents: Sequence[Any], *operands: Any, jaxpr: Function, **params: Any
) -> list[Any]:
    """Calls the transpose of a function; the transpose rule of calls."""
    is_linear = tuple(is_undefined_primal(x) for x in operands)
    active = tuple(type(ct) is not Zero for ct in cotangents)
    derived = derive(jaxpr, "transpose", is_linear, active)
    known = [x for x in operands if not is_undefined_primal(x)]
    results = call(derived.function, *known, *(c for c in cotangents if type(c) is not Zero))
    return spread_cotangents(operands, derived.active_arguments, results)


def _batch(
    operands: Sequence[Any], axes: Sequence[int | None], *, jaxpr: Function, **params: Any
) -> tuple[list[Any], Sequence[int | None]]:
    derived = derive_batched(jaxpr, axes)
    return call(derived.function, *operands), derived.axes


def _lower(context: Any, *values: Any, jaxpr: Function, **params: Any) -> list[Any]:
    return context.call(jaxpr, *values)


def _samples() -> list[Sample]:
    from .elementwise import mul
    from .transcendental import sin

    vector, flag = ShapedArray((3,), np.float32), ShapedArray((), np.bool_)

    def body(x: Any, y: Any, unused: Any) -> list[Any]:
        return [mul(sin(x), y), y]

    function = trace_function(body, [vector, vector, flag], name="body")
    x, y = np.array([0.1, 0.2, 0.3], np.float32), np.array([1, 2, 3], np.float32)
    return [Sample((x, y, np.array(True)), _parameters(function))]


jit_primitive = declare(
    "jit",
    takes_keys=True,
    multiple_results=True,
    is_call=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    value_and_jvp=_value_and_jvp,
    linearize=_linearize,
    transpose=transpose_call,
    batch=_batch,
    lower=_lower,
    samples=_samples,
)
jit_primitive.implementation = _implement


def _parameters(function: Function) -> dict[str, Any]:
    return {"jaxpr": function, "name": function.name}


def call(function: Function, *arguments: Any) -> list[Any]:
    """Calls a function as one unit; its captures take the values captured."""
    operands = [*arguments, *function.captured]
    if is_staged(function):
        return _call_staged(function, operands)
    return jit_primitive.bind(*operands, **_parameters(function))


def _call_staged(function: Function, operands: list[Any]) -> list[Any]:
    parameters = _parameters(function)
    owners = [x.owner for x in operands if type(x) is Tracer]
    ambient = state.ambient
    if ambient and (not owners or acts_where_it_stands(jit_primitive, parameters)):
        owners.append(ambient)
    if not owners:
        return jit_primitive.bind(*operands, **parameters)
    trace = max(owners, key=lambda owner: owner.level)
    if state.branch is not None and state.branch.level > trace.level:
        trace = state.branch
    if trace.environment is not None:
        # Values are known: op by op, effects happen now, once, and in order.
        return function.interpret(operands)
    return trace.record(jit_primitive, operands, parameters)
