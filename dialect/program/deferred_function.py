"""`DeferredFunction`: a function that is traced at its first use.

An op may refer to a function that most programs never need, such as the derivative rule of a user's
function. Its parameter then holds a deferred function. Python runs the rule when a transformation
needs it. Writing a module traces it, too, so a saved module holds functions only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from axir.dialect.core.annotations import Param
from axir.dialect.core.memo import Memo
from axir.dialect.core.state import Change, state, user_code

from .function import Function, unique_symbol


class DeferredFunction:
    """A function, given by a callable that traces it.

    Args:
        name: Name of the user's function.
        trace: Traces the function; called at most once.

    Attributes:
        symbol_name: The symbol in ops that refer to it until it is written.
    """

    def __init__(self, name: str, trace: Callable[[], Function]):
        self.name = name
        self.symbol_name = unique_symbol(name)
        self._trace = trace
        self._function: Function | None = None
        # The named axes in scope at its creation are in scope at its tracing, too.
        self._axes = state.axis_sizes, state.tracked_axes
        # The values derived from it, as in `Function.derived`.
        self.derived = Memo()

    @property
    def function(self) -> Function:
        """The traced function."""
        if self._function is None:
            with self.surroundings():
                self._function = self._trace()
        return self._function

    def surroundings(self) -> Change:
        """Lets the user's code run as at the place where the function was made."""
        return user_code(*self._axes)

    def __repr__(self) -> str:
        return self.name


def resolved(value: Param) -> Function:
    """Returns the function that a parameter is, tracing it if it is deferred."""
    return value if type(value) is Function else value.function


def deferred_in(value: object) -> Iterator[DeferredFunction]:
    """Yields the deferred functions that a parameter is or holds."""
    if isinstance(value, DeferredFunction):
        yield value
    elif type(value) is tuple:
        for item in value:
            yield from deferred_in(item)
