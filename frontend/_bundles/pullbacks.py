"""The pullback of a saved function: from result cotangents to argument cotangents."""

from __future__ import annotations

from axir.dialect.core import dtypes
from axir.dialect.core.symbolic_zeros import UndefinedPrimal, Zero
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.program.function import Function
from axir.dialect.program.module_writer import embed_captures
from axir.dialect.program.rules import Cotangent, Value
from axir.dialect.program.tracer import Trace
from axir.dialect.text.signature import Argument, Signature
from axir.passes.transforms.linearize import linearize
from axir.passes.transforms.transpose import transpose

from .captures import with_captures, without_parameters


def pullback(function: Function, count: int) -> Function:
    """Returns the function of the arguments, then of cotangents of the inexact results.

    Args:
        function: Captures so many parameters first, which the new function captures as well.
        count: Their number.
    """
    whole = embed_captures(without_parameters(function, count))
    split = len(whole.inputs) - count
    with Trace(f"{function.name}_vjp", "Vjp") as trace:
        arguments: list[Value] = [trace.add_input(v.type) for v in whole.inputs[:split]]
        given = {
            number: trace.add_input(v.type)
            for number, v in enumerate(whole.outputs)
            if dtypes.is_inexact(v.type.dtype)
        }
        parameters: list[Value] = [trace.add_input(v.type) for v in whole.inputs[split:]]
        active = [dtypes.is_inexact(x.type.dtype) for x in arguments] + [False] * count
        made = linearize(whole, [*arguments, *parameters], active)
        cotangents: list[Cotangent] = [
            given.get(number, Zero(whole.outputs[number].type))
            for number, is_active in enumerate(made.active_outputs)
            if is_active
        ]
        linear = [UndefinedPrimal(v.type) for v in made.linear.inputs]
        pulled = transpose(made.linear, [*linear, *made.linear.captured], cotangents)
        found = [instantiate(x) for x in pulled[: len(linear)] if x is not None]
        traced = embed_captures(trace.finish(found))
    return with_captures(traced, split + len(given), function.captured[:count])


def pullback_signature(signature: Signature) -> Signature:
    """Returns the signature of the pullback of a function."""
    inexact = [a for a in signature.results if dtypes.is_inexact(a.type.dtype)]
    cotangents = tuple(Argument(f"ct_{a.name}", a.type) for a in inexact)
    results = tuple(
        Argument(f"ct_{a.name}", a.type)
        for a in signature.arguments
        if dtypes.is_inexact(a.type.dtype)
    )
    return Signature((*signature.arguments, *cotangents), results, is_named=True)
