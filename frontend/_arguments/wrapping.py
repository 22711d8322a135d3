"""Names and documentation of the functions that transformations return."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import WRAPPER_ASSIGNMENTS, update_wrapper

from axir.dialect.core.annotations import UserFunction

from .tracebacks import boundary


def wraps(fun: Callable[..., object]) -> Callable[[UserFunction], UserFunction]:
    """Works as `functools.wraps`, also for callables with a name that is not a string.

    >>> class Model:
    ...     __name__ = None
    >>> wraps(Model())(lambda x: x).__name__
    '<lambda>'
    """

    def wrap(wrapper: Callable[..., object]) -> Callable[..., object]:
        for name in WRAPPER_ASSIGNMENTS:
            with suppress(AttributeError, TypeError):
                setattr(wrapper, name, getattr(fun, name))
        return update_wrapper(wrapper, fun, assigned=())

    return wrap


def wraps_as(
    fun: Callable[..., object], what: str, keeps_original: bool = False
) -> Callable[[UserFunction], UserFunction]:
    r"""Returns a decorator: `functools.wraps`, with documentation of the transformation.

    The decorated function is a boundary of tracebacks (`tracebacks.py`).

    Args:
        fun: The function that was transformed.
        what: A sentence with `{fun}` in place of its name.
        keeps_original: Whether its own documentation follows; it still tells about the arguments.

    >>> def square(x):
    ...     "Returns the square."
    ...     return x * x
    >>> wraps_as(square, "The twin of {fun}.", keeps_original=True)(lambda x: x).__doc__
    'The twin of square.\n\nOriginal documentation:\n\nReturns the square.'
    """

    def wrap(wrapper: Callable[..., object]) -> Callable[..., object]:
        wrapped = wraps(fun)(boundary(wrapper))
        text = what.format(fun=getattr(fun, "__name__", "the function"))
        original = getattr(fun, "__doc__", None)
        if keeps_original and original:
            text += f"\n\nOriginal documentation:\n\n{original}"
        wrapped.__doc__ = text
        return wrapped

    return wrap
