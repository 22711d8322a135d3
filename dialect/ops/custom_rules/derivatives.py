"""Derivatives of functions as functions; used by the rules of users' vectorizations."""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core.symbolic_zeros import Zero, chosen, inexact
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.effects import has_effects
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.rules import Value

from .bodies import with_captured


def tangents_of(function: Function, active: Sequence[bool]) -> Function:
    """Returns a function of arguments and tangents: results, and tangents of inexact ones.

    Args:
        function: The function to differentiate; its captures have no tangents.
        active: Which inputs have tangents.
    """
    flags = (*active, *(False for _ in function.captures))
    derived = derive(function, "jvp", flags, True).function
    return with_captured(derived, function, len(function.inputs))


def linear_part_of(function: Function, active: Sequence[bool]) -> Function:
    """Returns a function of arguments and tangents that gives tangents only; see `tangents_of`."""
    silent = derive(function, "silence") if has_effects(function) else function
    flags = (*active, *(False for _ in silent.captures))

    def apply(*values: Value) -> list[Value]:
        primals, moving = [*values[: len(active)], *silent.captured], values[len(active) :]
        split = derive(silent, "linearize", flags)
        results = split.known.evaluate(*primals)
        residuals = split.residual_values(primals, results[len(silent.outputs) :])
        tangents = iter(split.linear.interpret([*moving, *residuals]))
        return [
            next(tangents) if has else instantiate(Zero(t))
            for t, has in zip(silent.output_types, split.active_outputs, strict=True)
            if has or inexact([t])[0]
        ]

    types = function.input_types
    traced = trace_function(
        apply, [*types, *chosen(types, active)], name=function.name, kind="Linearize"
    )
    return derive(traced, "prune")


def transpose_of(function: Function, linear: Sequence[bool]) -> Function:
    """Returns the transpose: from the other arguments and cotangents to new cotangents.

    Args:
        function: A function that is linear in some inputs.
        linear: Marks of these inputs; the results are their cotangents.
    """
    flags = (*linear, *(False for _ in function.captures))
    outputs = (True,) * len(function.outputs)
    derived = derive(function, "transpose", flags, outputs, True).function
    return with_captured(derived, function, linear.count(False))
