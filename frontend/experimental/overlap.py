"""Overlap of operations, under the names of `jax.experimental.overlap`.

The compiler orders operations by their operands; further hints in a program change nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from axir.dialect.core.annotations import UserFunction

__all__ = ["program_order"]


def __dir__() -> list[str]:
    return __all__


def program_order(
    f: Callable[..., object] | None = None,
    *,
    enforce: bool,
    strict_in_out: bool | tuple[bool, bool] = False,
    exclude_argnames: str | tuple[str, ...] | None = None,
) -> UserFunction:
    """Returns a function as it is: each operation runs after its operands.

    Args:
        f: The function; without it, this is a decorator with options.
        enforce, strict_in_out, exclude_argnames: Ignored.

    >>> program_order(abs, enforce=True)(-1)
    1
    """
    if f is None:
        return functools.partial(program_order, enforce=enforce)
    return f
