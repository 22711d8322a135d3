"""`checkpoint`: a call whose derivative repeats the call instead of keeping what it computed.

The derivative is an op of the same kind (`differentiated`). With `prevent_cse` the compiler cannot
see that it repeats ops, for an optimization barrier stands before its operands. What is kept all
the same is a policy's choice (`policies.py`); the splitting stands in `rematerialization.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import stablehlo as hlo
from ...derived import derive
from ...function import Function
from ...primitive import Sample
from ...symbolic import Zero, is_undefined_primal
from ...trace import trace_function
from ...types import ShapedArray
from ..call import spread_cotangents
from ..table import declare
from .bodies import batched_body, check_call, evaluate_body, is_moving
from .policies import policy_of
from .rematerialization import split_for


def _infer(
    *types: ShapedArray, jaxpr: Function, policy: Any, prevent_cse: bool, differentiated: bool
) -> list[ShapedArray]:
    check_call("checkpoint", jaxpr, types)
    policy_of(policy)
    return jaxpr.output_types


def _evaluate(*operands: np.ndarray, jaxpr: Function, **params: Any) -> list[np.ndarray]:
    return evaluate_body(jaxpr, operands)


def _implement(*operands: Any, jaxpr: Function, **params: Any) -> list[Any]:
    return jaxpr.interpret(operands)


def _apply(function: Function, operands: Sequence[Any], **params: Any) -> list[Any]:
    return checkpoint_primitive.bind(*operands, *function.captured, jaxpr=function, **params)


def _spread(
    types: Sequence[ShapedArray], active: Sequence[bool], values: Sequence[Any]
) -> list[Any]:
    remaining = iter(values)
    return [
        next(remaining) if is_active else Zero(t.to_tangent_aval())
        for t, is_active in zip(types, active, strict=True)
    ]


def _value_and_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Function, **params: Any
) -> tuple[list[Any], list[Any]]:
    derived = derive(jaxpr, "jvp", tuple(map(is_moving, tangents)))
    results = _apply(derived.function, [*primals, *filter(is_moving, tangents)], **params)
    count = len(jaxpr.outputs)
    return results[:count], _spread(jaxpr.output_types, derived.active_outputs, results[count:])


def _linearize(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: Function,
    policy: Any,
    prevent_cse: bool,
    differentiated: bool,
) -> tuple[list[Any], list[Any]]:
    split = split_for(jaxpr, tuple(map(is_moving, tangents)), policy)
    params = {"policy": policy, "prevent_cse": prevent_cse}
    results = _apply(split.forward, primals, **params, differentiated=differentiated)
    count = len(jaxpr.outputs)
    out_tangents: list[Any] = []
    if any(split.active_outputs):
        taken = [*(primals[index] for index in split.used), *results[count:]]
        operands = [*filter(is_moving, tangents), *taken]
        out_tangents = _apply(split.derivative, operands, **params, differentiated=True)
    return results[:count], _spread(jaxpr.output_types, split.active_outputs, out_tangents)


def _transpose(
    cotangents: Sequence[Any], *operands: Any, jaxpr: Function, **params: Any
) -> list[Any]:
    is_linear = tuple(map(is_undefined_primal, operands))
    derived = derive(jaxpr, "transpose", is_linear, tuple(map(is_moving, cotangents)))
    function = derive(derived.function, "prune")
    known = [x for x in operands if not is_undefined_primal(x)]
    results = _apply(function, [*known, *filter(is_moving, cotangents)], **params)
    return spread_cotangents(operands, derived.active_arguments, results)


def _batch(
    operands: Sequence[Any], axes: Sequence[int | None], *, jaxpr: Function, **params: Any
) -> tuple[list[Any], Sequence[int | None]]:
    derived = batched_body(jaxpr, axes)
    return _apply(derived.function, operands, **params), derived.axes


def _body(
    *, jaxpr: Function, prevent_cse: bool, differentiated: bool, **params: Any
) -> Function | None:
    return None if prevent_cse and differentiated else jaxpr


def _lower(
    context: Any,
    *values: Any,
    jaxpr: Function,
    prevent_cse: bool,
    differentiated: bool,
    **params: Any,
) -> list[Any]:
    if prevent_cse and differentiated and values:
        values = tuple(hlo.optimization_barrier(values))
    return context.inline(jaxpr, *values)


def _samples() -> list[Sample]:
    from ..elementwise import mul
    from ..transcendental import sin

    vector, flag = ShapedArray((3,), np.float32), ShapedArray((), np.bool_)

    def body(x: Any, y: Any, unused: Any) -> list[Any]:
        return [mul(sin(sin(x)), y), unused]

    function = trace_function(body, [vector, vector, flag], name="body")
    x, y = np.array([0.1, 0.2, 0.3], np.float32), np.array([1, 2, 3], np.float32)
    policies: list[Any] = [None, ("everything_saveable",), ("save_only_these_names", "a")]
    return [
        Sample(
            (x, y, np.array(True)),
            {"jaxpr": function, "policy": p, "prevent_cse": cse, "differentiated": again},
        )
        for p, cse, again in zip(policies, (True, False, True), (True, False, False), strict=True)
    ]


checkpoint_primitive = declare(
    "checkpoint",
    takes_keys=True,
    multiple_results=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    value_and_jvp=_value_and_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    body=_body,
    samples=_samples,
)
checkpoint_primitive.implementation = _implement


def call_checkpointed(
    function: Function, arguments: Sequence[Any], policy: Any, prevent_cse: bool
) -> list[Any]:
    """Calls a function whose derivative repeats it; its captures take the values captured.

    Args:
        function: What is computed.
        arguments: Values of the inputs.
        policy: What is kept for the derivative all the same; None keeps the arguments only.
        prevent_cse: Whether the compiler must not see that ops are repeated.
    """
    return _apply(
        function, arguments, policy=policy, prevent_cse=prevent_cse, differentiated=False
    )
