"""Source locations of operations, under the names of `jax.extend.source_info_util`.

Each operation knows the user's line that made it, and the names of the scopes around that line.

>>> import axir
>>> with axir.named_scope("attention"):
...     str(current_name_stack())
'attention'
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from axir.dialect.core.context import NameStack, SourceInfo, hidden_paths
from axir.dialect.core.errors import user_line
from axir.dialect.core.state import Change, state, within_scope

__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack",
    "new_name_stack", "new_source_info", "register_exclusion", "reset_name_stack", "set_name_stack",
    "summarize", "transform_name_stack", "user_context",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def new_name_stack(name: str = "") -> NameStack:
    """Returns names of scopes: one, or none."""
    return NameStack((name,) if name else ())


def current_name_stack() -> NameStack:
    """Returns the names of the scopes around the code that runs."""
    return NameStack(tuple(filter(None, state.scope.split("/"))))


def current() -> SourceInfo:
    """Returns where an operation would come from that is recorded now."""
    return SourceInfo(user_line(), current_name_stack())


def new_source_info() -> SourceInfo:
    """Returns an unknown source location."""
    return SourceInfo(None, NameStack())


def extend_name_stack(name: str) -> AbstractContextManager[None]:
    """Names the operations that are recorded inside a `with`; see `axir.named_scope`."""
    return within_scope(name)


# Names of transformations are stored in the same field as names of scopes.
transform_name_stack = extend_name_stack


@contextmanager
def set_name_stack(name_stack: NameStack) -> Iterator[None]:
    """Has the operations that are recorded inside a `with` carry these names and no others."""
    with Change(scope=str(name_stack)):
        yield


def reset_name_stack() -> AbstractContextManager[None]:
    """Has the operations that are recorded inside a `with` carry no names."""
    return set_name_stack(NameStack())


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """Returns a place in words."""
    return source_info.line or "unknown"


@contextmanager
def user_context(traceback: object, *, name_stack: NameStack | None = None) -> Iterator[None]:
    """Has the operations that are recorded inside a `with` carry names; lines are found anew."""
    with set_name_stack(current_name_stack() if name_stack is None else name_stack):
        yield


def register_exclusion(path: str) -> None:
    """Hides files with this path prefix from the locations of errors and operations."""
    hidden_paths.append(path)
