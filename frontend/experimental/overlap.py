"""What may run beside what, under the names of `jax.experimental.overlap`.

The compiler orders operations by what they read; that a program says more changes nothing.
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
    """Returns a function as it is: its operations run in an order in which each has what it reads.

    Args:
        f: The function; without it, this is a decorator with options.
        enforce, strict_in_out, exclude_argnames: Of no consequence.

    >>> program_order(abs, enforce=True)(-1)
    1
    """
    if f is None:
        return functools.partial(program_order, enforce=enforce)
    return f
