"""Named axes: what code inside `vmap(..., axis_name="i")` may refer to.

While a function is traced under a named axis, `axis_sizes` tells the extent. The ops that
communicate over the axis keep its name; vectorizing over it (`BatchFrame`) resolves them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .context import state
from .errors import UnboundAxisNameError
from .function import Equation, Function, functions_in

_MENTIONED = "axis names"


@dataclass(frozen=True)
class BatchFrame:
    """The axis over which a pass vectorizes.

    Attributes:
        size: Its extent.
        name: What collectives call it, None if it has no name.
    """

    size: int
    name: Hashable | None = None


@contextmanager
def named_axis(name: Hashable | None, size: int) -> Iterator[None]:
    """Lets the code traced inside name an axis; None names nothing."""
    if name is None:
        yield
        return
    previous = state.axis_sizes
    state.axis_sizes = {**previous, name: size}
    try:
        yield
    finally:
        state.axis_sizes = previous


def axis_extent(name: Hashable) -> int:
    """Returns the extent of a named axis in scope.

    Raises:
        UnboundAxisNameError: if there is no such axis.
    """
    try:
        return state.axis_sizes[name]
    except KeyError:
        known = ", ".join(map(repr, state.axis_sizes)) or "none"
        raise UnboundAxisNameError(
            f"unbound axis name: {name!r}. The axis names in scope are: {known}.",
            f"Call the function inside axir.vmap(..., axis_name={name!r}).",
        ) from None


@contextmanager
def batching_over(frame: BatchFrame) -> Iterator[None]:
    """Tells the rules called inside over which axis they vectorize."""
    previous = state.batching
    state.batching = frame
    try:
        with named_axis(frame.name, frame.size):
            yield
    finally:
        state.batching = previous


def current_frame() -> BatchFrame:
    """Returns the axis over which a pass vectorizes now."""
    return state.batching


def names_in(equation: Equation) -> frozenset[Any]:
    """Returns the names of the axes over which an op, or a function it calls, communicates."""
    rule = equation.primitive.axis_names
    if rule is not None:
        return frozenset(rule(**equation.params))
    names: frozenset[Any] = frozenset()
    for value in equation.params.values():
        for function in functions_in(value):
            names |= axis_names_of(function)
    return names


def axis_names_of(function: Function) -> frozenset[Any]:
    """Returns the names of the axes over which a function communicates."""
    names = function.derived.get(_MENTIONED)
    if names is None:
        found: set[Any] = set()
        for equation in function.equations:
            found |= names_in(equation)
        names = function.derived[_MENTIONED] = frozenset(found)
    return names
