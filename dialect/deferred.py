"""`DeferredFunction`: a function that is traced when somebody first asks for it.

An op may refer to a function that most programs never need, such as the derivative rule of a user's
function. Its parameter then holds a deferred function: Python runs the rule when a transformation
asks, and writing a module asks too, so that a saved module holds functions only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .context import state
from .function import Function, unique_symbol


class DeferredFunction:
    """A function by what traces it.

    Args:
        name: What the user calls it.
        trace: Traces it, called at most once.

    Attributes:
        symbol_name: By which ops refer to it until it is written.
    """

    def __init__(self, name: str, trace: Callable[[], Function]):
        self.name = name
        self.symbol_name = unique_symbol(name)
        self._trace = trace
        self._function: Function | None = None
        # The named axes that were in scope where it was made are in scope where it is traced.
        self._axis_sizes = state.axis_sizes
        # What was derived from it, as functions keep what is derived from them.
        self.derived: dict[Any, Any] = {}

    @property
    def function(self) -> Function:
        """The traced function."""
        if self._function is None:
            with self.surroundings():
                self._function = self._trace()
        return self._function

    @contextmanager
    def surroundings(self) -> Iterator[None]:
        """Lets the user's code run as where the function was made."""
        origin, axis_sizes = state.origin, state.axis_sizes
        state.origin, state.axis_sizes = None, self._axis_sizes
        try:
            yield
        finally:
            state.origin, state.axis_sizes = origin, axis_sizes

    def __repr__(self) -> str:
        return self.name


def resolved(value: Any) -> Function:
    """Returns the function that a parameter is, tracing it if it is deferred."""
    return value if type(value) is Function else value.function


def deferred_in(value: Any) -> Iterator[DeferredFunction]:
    """Yields the deferred functions that a parameter is or holds."""
    if isinstance(value, DeferredFunction):
        yield value
    elif type(value) is tuple:
        for item in value:
            yield from deferred_in(item)
