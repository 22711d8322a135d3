"""Ops that call a function: their shared rules, and `jit`, the op of a nested `jit`.

The tangent, linear, transposed and batched parts of a call are calls of derived functions, so a
jitted function stays one compiled unit under every transformation. This module does not know how a
body is compiled and run: the frontend sets the executor. Elsewhere: calls with custom derivatives
(`custom_rules/`) and control flow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import Param, Params, Returning
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.memo import derived
from axir.dialect.core.symbolic_zeros import (
    chosen,
    inverted,
    is_undefined_primal,
    moving,
    spread,
    unknown,
)
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import mul
from axir.dialect.ops.elementwise.transcendental import sin
from axir.dialect.program.derived_functions import derive, derive_batched
from axir.dialect.program.effects import acts_where_it_stands, is_staged
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import (
    Cotangent,
    Operand,
    OperandTangents,
    Rule,
    Tangent,
    TransposeOperand,
    Value,
)
from axir.dialect.program.tracer import Tracer, state

Called = Callable[..., tuple[Function, Sequence[Any]]]
"""From operands and parameters of an op to a function and its arguments."""
Apply = Callable[[Function, Sequence[Any]], list[Any]]
"""Calls a function with values of its inputs; captures take the values captured."""


# Any op that calls a function ------------------------------------------------------------------


def declare_call(
    name: str, called: str | Called, *, check: Returning[object] | None = None, **rules: Rule
) -> Primitive:
    """Declares an op that returns the results of a function.

    Args:
        name: Its name in the table.
        called: Name of the parameter that holds a function of all operands; or a callable that
            returns the function and its arguments.
        check: Called with the types of the operands and the parameters; raises `ParameterError`.
        **rules: Further rules, and replacements of the rules made here: `infer`, `evaluate`,
            `lower` and `implementation`.
    """
    call_of = _by_parameter(called) if isinstance(called, str) else called

    def infer(*types: ShapedArray, **params: object) -> list[ShapedArray]:
        function, arguments = call_of(*types, **params)
        check_call(name, function, arguments)
        if check is not None:
            check(types, **params)
        return function.output_types

    def evaluate(*operands: np.ndarray, **params: object) -> list[np.ndarray]:
        function, arguments = call_of(*operands, **params)
        arrays = map(ConcreteArray, function.in_avals, arguments)
        return [x.host() for x in function.interpret(list(arrays))]

    def implement(*operands: Operand, **params: object) -> list[Value]:
        function, arguments = call_of(*operands, **params)
        return function.interpret(arguments)

    def lower(context: LoweringContext, *values: ir.Value, **params: object) -> list[ir.Value]:
        function, arguments = call_of(*values, **params)
        return context.inline(function, *arguments)

    def dimensions(
        operands: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: object
    ) -> Function:
        function, _ = call_of(*operands, **params)
        return _of_operands(function, call_of, tuple(operands), *params.items())

    made = {
        "infer": infer,
        "evaluate": evaluate,
        "implementation": implement,
        "lower": lower,
        "dimensions": dimensions,
    }
    rules = {**made, **rules}
    return declare(name, takes_keys=True, multiple_results=True, is_memoized=False, **rules)


@derived
def _of_operands(
    function: Function,
    call_of: Called,
    types: tuple[ShapedArray, ...],
    *params: tuple[str, object],
) -> Function:
    """Returns the function that an op calls, as a function of all operands of the op."""

    def whole(*operands: Value) -> list[Value]:
        called, arguments = call_of(*operands, **dict(params))
        return called.interpret(arguments)

    return trace_function(whole, types, name=function.name)


def _by_parameter(parameter: str) -> Called:
    return lambda *operands, **params: (params[parameter], operands)


def same_types(first: Sequence[ShapedArray], second: Sequence[ShapedArray]) -> bool:
    """Tells whether types agree in number, shapes and dtypes."""
    return len(first) == len(second) and all(
        a.shape == b.shape and a.dtype == b.dtype for a, b in zip(first, second, strict=True)
    )


def listing(types: Sequence[ShapedArray]) -> str:
    """Renders types for messages."""
    return f"({', '.join(map(str, types))})"


def check_call(op: str, function: Function, types: Sequence[ShapedArray]) -> None:
    """Raises `ParameterError` if a function cannot be called with values of these types."""
    expected = function.in_avals
    if not same_types(expected, types):
        raise ParameterError(
            f"{op}: @{function.name} takes {listing(expected)}, but was called with "
            f"{listing(types)}."
        )


def check_count(op: str, name: str, count: int, of_what: str, expected: int) -> None:
    """Raises `ParameterError` unless a parameter has an entry for each operand or result."""
    if count != expected:
        raise ParameterError(
            f"{op}: {name} has {count} entries for {expected} {of_what}.",
            "Give one for each.",
        )


def call_jvp(
    apply: Apply, function: Function, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    """Applies the tangent function of a function; returns the results and their tangents."""
    active = moving(tangents)
    derived = derive(function, "jvp", active)
    results = apply(derived.function, [*primals, *chosen(tangents, active)])
    count = len(function.outputs)
    moved = spread(results[count:], derived.active_outputs, function.output_types)
    return results[:count], moved


def call_transpose(
    apply: Apply,
    function: Function,
    cotangents: Sequence[Cotangent],
    operands: Sequence[TransposeOperand],
) -> Sequence[Cotangent | None]:
    """Applies the transpose of a function; returns the results of a transpose rule."""
    is_linear, active = unknown(operands), moving(cotangents)
    derived = derive(function, "transpose", is_linear, active)
    known = chosen(operands, inverted(is_linear))
    results = apply(derived.function, [*known, *chosen(cotangents, active)])
    return spread_cotangents(operands, derived.active_arguments, results)


def spread_cotangents(
    operands: Sequence[TransposeOperand], active: Sequence[bool], cotangents: Sequence[Cotangent]
) -> Sequence[Cotangent | None]:
    """Returns the results of a transpose rule: an entry for each operand, None for the known ones.

    Args:
        operands: The operands; the linear ones have cotangents.
        active: For each linear operand, whether it has a cotangent or a symbolic zero.
        cotangents: The cotangents other than symbolic zeros, in order.
    """
    types = [x.aval for x in operands if is_undefined_primal(x)]
    pulled = iter(spread(cotangents, active, types))
    return [next(pulled) if is_undefined_primal(x) else None for x in operands]


def call_batch(
    apply: Apply, function: Function, operands: Sequence[Value], axes: Sequence[int | None]
) -> tuple[list[Value], Sequence[int | None]]:
    """Applies a function vectorized; returns the results and their axes."""
    derived = derive_batched(function, axes)
    return apply(derived.function, operands), derived.axes


# jit -------------------------------------------------------------------------------------------

Executor: TypeAlias = Callable[[Function, Sequence[Operand]], Sequence[Value]]
_executor: Executor | None = None


def set_executor(executor: Executor | None) -> Executor | None:
    """Sets the executor of `jit` bodies with concrete operands; returns the previous executor.

    Without an executor, the evaluator runs the body op by op.
    """
    global _executor
    previous, _executor = _executor, executor
    return previous


def has_executor() -> bool:
    """Tells whether calls on concrete operands are compiled."""
    return _executor is not None


def _implement(*operands: Operand, jaxpr: Function, **params: object) -> Sequence[Value]:
    if _executor is None:
        return jit_primitive._evaluate(operands, {"jaxpr": jaxpr, **params})
    return _executor(jaxpr, operands)


def _linearize(
    primals: Sequence[Value], tangents: OperandTangents, *, jaxpr: Function, **params: object
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    active = moving(tangents)
    split = derive(jaxpr, "linearize", active)
    count = len(jaxpr.outputs)
    results = call(split.known, *primals)
    residuals = split.residual_values(primals, results[count:])
    out_tangents: list[Tangent] = []
    if any(split.active_outputs):
        linear = [*chosen(tangents, active), *residuals]
        out_tangents = jit_primitive.bind(*linear, **_parameters(split.linear))
    return results[:count], spread(out_tangents, split.active_outputs, jaxpr.output_types)


def transpose_call(
    cotangents: Sequence[Cotangent], *operands: Param, jaxpr: Function, **params: object
) -> Sequence[Cotangent | None]:
    """Calls the transpose of a function; the transpose rule of calls."""
    return call_transpose(_call, jaxpr, cotangents, operands)


def sample_call() -> tuple[Function, tuple[np.ndarray, ...]]:
    """Returns a function and its arguments; it is smooth in two vectors, not in a third operand."""
    x, y = np.array([0.1, 0.2, 0.3], np.float32), np.array([1, 2, 3], np.float32)
    arguments = (x, y, np.array(4, np.int32))

    def body(x: Operand, y: Operand, passed: Any) -> list[Value]:
        return [mul(sin(x), y), passed]

    types = [ShapedArray(x.shape, x.dtype) for x in arguments]
    return trace_function(body, types, name="f"), arguments


def _samples() -> list[Sample]:
    function, arguments = sample_call()
    return [Sample(arguments, _parameters(function))]


def _call(function: Function, arguments: Sequence[Value]) -> list[Value]:
    return call(function, *arguments)


jit_primitive = declare_call(
    "jit",
    "jaxpr",
    parameters={"jaxpr": Function, "name": str},
    is_call=True,
    implementation=_implement,
    value_and_jvp=lambda primals, tangents, *, jaxpr, **params: call_jvp(
        _call, jaxpr, primals, tangents
    ),
    linearize=_linearize,
    transpose=transpose_call,
    batch=lambda operands, axes, *, jaxpr, **params: call_batch(_call, jaxpr, operands, axes),
    lower=lambda context, *values, jaxpr, **params: context.call(jaxpr, *values),
    samples=_samples,
)


def _parameters(function: Function) -> Params:
    return {"jaxpr": function, "name": function.name}


def call(function: Function, *arguments: Value) -> list[Value]:
    """Calls a function as one unit; its captures take the captured values."""
    operands = [*arguments, *function.captured]
    if is_staged(function):
        return _call_staged(function, operands)
    return jit_primitive.bind(*operands, **_parameters(function))


def _call_staged(function: Function, operands: Sequence[Value]) -> list[Value]:
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
