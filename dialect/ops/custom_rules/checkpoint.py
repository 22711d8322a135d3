"""`checkpoint`: a call; its derivative repeats the call instead of keeping residuals.

The derivative is an op of the same kind (`differentiated`). With `prevent_cse` the compiler cannot
see the repetition, because an optimization barrier stands before its operands. A policy
(`policies.py`) chooses residuals to keep nevertheless. The transformation `rematerialize` splits
the call.

`checkpoint_name` names a value, so that policies can choose it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.annotations import Param
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.symbolic_zeros import chosen, moving, spread
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import (
    Apply,
    call_batch,
    call_jvp,
    call_transpose,
    declare_call,
    sample_call,
)
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.elementwise.samples import random_values
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.dimensions import position_wise
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import (
    BatchAxes,
    Cotangent,
    Operand,
    OperandTangents,
    Tangent,
    Tangents,
    Value,
)

from .bodies import Axes
from .policies import policy_of

PolicyParameter: TypeAlias = Callable[..., bool] | tuple[object, ...] | None
"""A function that chooses values to keep, the name and arguments of one, or None."""


def _calling(**params: object) -> Apply:
    def apply(function: Function, operands: Sequence[Value]) -> list[Value]:
        return checkpoint_primitive.bind(*operands, *function.captured, jaxpr=function, **params)

    return apply


def _value_and_jvp(
    primals: Sequence[Value], tangents: OperandTangents, *, jaxpr: Function, **params: object
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    return call_jvp(_calling(**params), jaxpr, primals, tangents)


def _linearize(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    *,
    jaxpr: Function,
    policy: PolicyParameter,
    prevent_cse: bool,
    differentiated: bool,
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    active = moving(tangents)
    split = derive(jaxpr, "rematerialize", active, policy)
    params = {"policy": policy, "prevent_cse": prevent_cse}
    results = _calling(**params, differentiated=differentiated)(split.forward, primals)
    count = len(jaxpr.outputs)
    out_tangents: list[Tangent] = []
    if any(split.active_outputs):
        taken = [*(primals[index] for index in split.used), *results[count:]]
        repeat = _calling(**params, differentiated=True)
        out_tangents = repeat(split.derivative, [*chosen(tangents, active), *taken])
    return results[:count], spread(out_tangents, split.active_outputs, jaxpr.output_types)


def _transpose(
    cotangents: Sequence[Cotangent], *operands: Param, jaxpr: Function, **params: object
) -> Sequence[Cotangent | None]:
    apply = _calling(**params)
    return call_transpose(lambda f, xs: apply(derive(f, "prune"), xs), jaxpr, cotangents, operands)


def _batch(
    operands: Sequence[Value], axes: Axes, *, jaxpr: Function, **params: object
) -> tuple[list[Value], Axes]:
    return call_batch(_calling(**params), jaxpr, operands, axes)


def _body(
    *, jaxpr: Function, prevent_cse: bool, differentiated: bool, **params: object
) -> Function | None:
    return None if prevent_cse and differentiated else jaxpr


def _lower(
    context: LoweringContext,
    *values: ir.Value,
    jaxpr: Function,
    prevent_cse: bool,
    differentiated: bool,
    **params: object,
) -> list[ir.Value]:
    if prevent_cse and differentiated and values:
        values = tuple(hlo.optimization_barrier(values))
    return context.inline(jaxpr, *values)


def _samples() -> list[Sample]:
    function, arguments = sample_call()
    variants: list[tuple[Any, bool, bool]] = [
        (None, True, True),
        (("everything_saveable",), False, False),
        (("save_only_these_names", "a"), True, False),
    ]
    return [
        Sample(
            arguments,
            {"jaxpr": function, "policy": p, "prevent_cse": cse, "differentiated": again},
        )
        for p, cse, again in variants
    ]


checkpoint_primitive = declare_call(
    "checkpoint",
    "jaxpr",
    parameters={
        "jaxpr": Function,
        "policy": PolicyParameter,
        "prevent_cse": bool,
        "differentiated": bool,
    },
    check=lambda types, *, policy, **params: policy_of(policy),
    value_and_jvp=_value_and_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    body=_body,
    samples=_samples,
)


def call_checkpointed(
    function: Function, arguments: Sequence[Value], policy: object, prevent_cse: bool
) -> list[Value]:
    """Calls a function; its derivative repeats the call. Captures take the captured values.

    Args:
        function: The function to call.
        arguments: Values of the inputs.
        policy: Chooses the values to keep for the derivative; None keeps the arguments only.
        prevent_cse: Whether the compiler must not see that ops are repeated.
    """
    params = {"policy": policy, "prevent_cse": prevent_cse, "differentiated": False}
    return _calling(**params)(function, arguments)


def _infer_of_name(operand: ShapedArray, *, name: str) -> ShapedArray:
    if not isinstance(name, str):
        raise ParameterError(f"checkpoint_name: the name must be a string, not {name!r}.")
    return operand


def _jvp_of_name(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
) -> Tangents:
    return tangents[0]


def _batch_of_name(operands: Sequence[Value], axes: BatchAxes, *, name: str) -> tuple[Value, Value]:
    return name_primitive.bind(*operands, name=name), axes[0]


def _samples_of_name() -> list[Sample]:
    generator = np.random.default_rng(0)
    return [
        Sample((random_values(generator, shape, np.dtype(dtype), -2, 2),), {"name": "value"})
        for dtype, shape in (("float32", (2, 3)), ("complex64", ()), ("int32", (0, 2)))
    ]


name_primitive = declare(
    "name",
    parameters={"name": str},
    takes_keys=True,
    takes_narrow=True,
    infer=_infer_of_name,
    evaluate=lambda operand, *, name: operand,
    jvp=_jvp_of_name,
    transpose=lambda cotangent, operand, *, name: [cotangent],
    dimensions=position_wise,
    batch=_batch_of_name,
    lower=lambda context, value, *, name: value,
    samples=_samples_of_name,
)


def checkpoint_name(x: Operand, name: str) -> Value:
    """Returns an array or scalar under a name; see `axir.ad_checkpoint.checkpoint_name`."""
    return name_primitive.bind(as_value(x), name=name)
