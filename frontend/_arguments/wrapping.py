"""Functions that transformations return: their names, their documentation, their tracebacks."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import WRAPPER_ASSIGNMENTS, update_wrapper
from types import TracebackType

import ml_dtypes
import numpy as np

from axir.dialect.core.annotations import P, R, UserFunction
from axir.dialect.core.config import config
from axir.dialect.core.context import is_user_file
from axir.dialect.core.errors import AxirError


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

    The decorated function is a boundary of tracebacks.

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


# Tracebacks ---------------------------------------------------------------------------------------


_STANDARD_LIBRARY = os.path.dirname(os.__file__)
# Libraries that axir calls; users call them as well.
_CALLED = tuple(os.path.dirname(x.__file__ or "") for x in (np, ml_dtypes))


def boundary(function: Callable[P, R]) -> Callable[P, R]:
    """Returns a function that raises its errors without axir's frames in their tracebacks."""

    @functools.wraps(function)
    def bounded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            leave_out_own_frames(error)
            raise

    return bounded


def leave_out_own_frames(error: BaseException) -> None:
    """Removes axir's frames from the traceback of an error, and of the errors that led to it.

    A traceback that ends in axir keeps these last frames, unless axir raised the error on purpose:
    a report of a fault needs them. Deep recursion keeps all.
    """
    if config.jax_traceback_filtering == "off" or isinstance(error, RecursionError):
        return
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        # Classes of users may forbid that attributes are set.
        BaseException.with_traceback(current, _of_user(current))
        suppressed = current.__suppress_context__
        current = current.__cause__ or (None if suppressed else current.__context__)


def _of_user(error: BaseException) -> TracebackType | None:
    frames = list(_frames(error.__traceback__))
    users = [number for number, (_, is_own) in enumerate(frames) if not is_own]
    # The frames after the user's last one.
    rest = 0 if not users else users[-1] + 1
    kept = [frames[number][0] for number in users]
    if not isinstance(error, AxirError):
        kept += [frame for frame, _ in frames[rest:]]
    following: TracebackType | None = None
    for each in reversed(kept):
        following = TracebackType(following, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return following


def _frames(traceback: TracebackType | None) -> Iterator[tuple[TracebackType, bool]]:
    """Yields the frames of a traceback; tells whether they are axir's or of a library it calls."""
    is_own = False
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        is_own = not is_user_file(filename) or (is_own and _is_called(filename))
        yield traceback, is_own
        traceback = traceback.tb_next


def _is_called(filename: str) -> bool:
    is_standard = filename.startswith(_STANDARD_LIBRARY) and "site-packages" not in filename
    return is_standard or filename.startswith(_CALLED)
