"""Derivatives of functions as functions again: what the rules of users' vectorizations need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...derived import derive
from ...effects import has_effects
from ...function import Function
from ...symbolic import Zero
from ...trace import trace_function
from ..family import instantiate
from .bodies import inexact


def tangents_of(function: Function, active: Sequence[bool]) -> Function:
    """Returns a function of arguments and tangents: results, and tangents of inexact ones.

    Args:
        function: What to differentiate; its captures have no tangents.
        active: Which inputs have tangents.
    """
    flags = (*active, *(False for _ in function.captures))
    derived = derive(function, "jvp", flags, True).function
    count, first = len(function.inputs), len(function.inputs) + len(function.captures)
    inputs = [v.type for v in derived.inputs]

    def apply(*values: Any) -> list[Any]:
        return derived.evaluate(*values[:count], *function.captured, *values[count:])

    types = [*inputs[:count], *inputs[first:]]
    return trace_function(apply, types, name=derived.name, kind="Jvp")


def linear_part_of(function: Function, active: Sequence[bool]) -> Function:
    """Returns a function of arguments and tangents that gives tangents only; see `tangents_of`."""
    silent = _without_effects(function)

    def apply(*values: Any) -> list[Any]:
        primals, moving = values[: len(active)], values[len(active) :]
        split, residuals = _split(silent, active, primals)
        tangents = iter(split.linear.interpret([*moving, *residuals]))
        return [
            next(tangents) if has else instantiate(Zero(v.type))
            for v, has in zip(silent.outputs, split.active_outputs, strict=True)
            if has or inexact([v.type])[0]
        ]

    types = function.input_types
    moving_types = [t for t, is_active in zip(types, active, strict=True) if is_active]
    traced = trace_function(apply, [*types, *moving_types], name=function.name, kind="Linearize")
    return derive(traced, "prune")


def transpose_of(function: Function, linear: Sequence[bool]) -> Function:
    """Returns a function of the other arguments and cotangents: those of the linear arguments.

    Args:
        function: A function that is linear in some inputs.
        linear: Which.
    """
    flags = (*linear, *(False for _ in function.captures))
    outputs = (True,) * len(function.outputs)
    derived = derive(function, "transpose", flags, outputs, True).function
    count = linear.count(False)
    inputs = [v.type for v in derived.inputs]

    def apply(*values: Any) -> list[Any]:
        return derived.evaluate(*values[:count], *function.captured, *values[count:])

    types = [*inputs[:count], *inputs[count + len(function.captures) :]]
    return trace_function(apply, types, name=derived.name, kind="Transpose")


def _without_effects(function: Function) -> Function:
    return derive(function, "silence") if has_effects(function) else function


def _split(
    function: Function, active: Sequence[bool], arguments: Sequence[Any]
) -> tuple[Any, list[Any]]:
    """Returns the linearization of a function, and its residuals for values of the inputs."""
    split = derive(function, "linearize", (*active, *(False for _ in function.captures)))
    full = [*arguments, *function.captured]
    results = split.known.evaluate(*full)
    return split, split.residual_values(full, results[len(function.outputs) :])
