"""The values that steps and ends of blocks read and define."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from .host_program import Branch, End, HostFunction, Jump, Span, Step, Target, Value

_GIVEN = ("result", "results")


def used_values(step: Step | End) -> Iterator[Value]:
    """Yields the values that a step, or the end of a block, reads."""
    for field in dataclasses.fields(step):
        if field.name not in _GIVEN:
            yield from _values_in(getattr(step, field.name))


def given_values(step: Step) -> Iterator[Value]:
    """Yields the values that a step defines."""
    for field in dataclasses.fields(step):
        if field.name in _GIVEN:
            yield from _values_in(getattr(step, field.name))


def _values_in(x: object) -> Iterator[Value]:
    if isinstance(x, Value):
        yield x
    elif isinstance(x, tuple):
        for item in x:
            yield from _values_in(item)
    elif isinstance(x, (Span, Target)):
        for field in dataclasses.fields(x):
            yield from _values_in(getattr(x, field.name))


def targets_of(end: End) -> tuple[Target, ...]:
    """Returns where control may go from the end of a block."""
    if isinstance(end, Branch):
        return end.then, end.otherwise
    return (end.target,) if isinstance(end, Jump) else ()


def used_elsewhere(function: HostFunction) -> set[Value]:
    """Returns the values that are used in other blocks than the defining one."""
    home = {
        value: number
        for number, block in enumerate(function.blocks)
        for step, _ in block.steps
        for value in given_values(step)
    }
    return {
        value
        for number, block in enumerate(function.blocks)
        for step in (*(step for step, _ in block.steps), block.end)
        for value in used_values(step)
        if home.get(value, number) != number
    }
