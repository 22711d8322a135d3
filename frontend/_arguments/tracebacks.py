"""Tracebacks without axir's own frames, as the users of transformations want to read them.

An error in a function that is traced passes the tracer, the transformation and the call on its way
out. A function that users call is a boundary: an error that leaves it has only the frames of the
user's files. The option `jax_traceback_filtering="off"` keeps all frames.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from types import TracebackType

import ml_dtypes
import numpy as np

from axir.dialect.core.annotations import P, R
from axir.dialect.core.config import config
from axir.dialect.core.context import is_user_file
from axir.dialect.core.errors import AxirError

_STANDARD_LIBRARY = os.path.dirname(os.__file__)
# Libraries that axir calls; a user's frame calls them as well.
_CALLED = tuple(os.path.dirname(x.__file__ or "") for x in (np, ml_dtypes))


def boundary(function: Callable[P, R]) -> Callable[P, R]:
    """Returns a function that removes axir's frames from the tracebacks of its errors."""

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
    a bug report needs them. Deep recursion keeps all frames.
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
    """Yields the frames of a traceback, and whether they are of axir or of functions it calls."""
    is_own = False
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        is_own = not is_user_file(filename) or (is_own and _is_called(filename))
        yield traceback, is_own
        traceback = traceback.tb_next


def _is_called(filename: str) -> bool:
    is_standard = filename.startswith(_STANDARD_LIBRARY) and "site-packages" not in filename
    return is_standard or filename.startswith(_CALLED)
