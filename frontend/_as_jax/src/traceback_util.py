"""`jax._src.traceback_util`: the files with lines that errors do not name.

axir's errors name the innermost line that is neither in axir nor in a library that has registered
its path here.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType

from axir.dialect.core.annotations import UserFunction
from axir.dialect.core.context import hidden_paths, is_user_file

__all__ = ["api_boundary", "include_frame", "register_exclusion"]

_exclude_paths = hidden_paths


def register_exclusion(path: str) -> None:
    """Excludes the lines of files under a path from errors."""
    hidden_paths.append(path)


def include_frame(f: FrameType) -> bool:
    """Tells whether a frame belongs to the user."""
    return is_user_file(f.f_code.co_filename)


def api_boundary(fun: Callable[..., object], **options: bool) -> UserFunction:
    """Returns the function: tracebacks stay whole, and errors name the user's line."""
    return fun
