"""The decorators of `axir.experimental.overlap` and `axir.experimental.vectorize`."""

from __future__ import annotations

import functools
from collections.abc import Callable

from axir import numpy
from axir.dialect.core.annotations import UserFunction


def vectorize(signature: str) -> Callable[[UserFunction], UserFunction]:
    """Returns a decorator: functions of arrays of the signature's axes broadcast over others.

    So was `vectorize` in 2020. Today's, which takes the function first, is `axir.numpy.vectorize`.

    Args:
        signature: As in `axir.numpy.vectorize`.

    >>> import axir.numpy as jnp
    >>> rows_times = vectorize("(n,m),(m)->(n)")(jnp.dot)
    >>> rows_times(jnp.ones((2, 3)), jnp.ones((5, 3))).shape
    (5, 2)
    """
    return functools.partial(numpy.vectorize, signature=signature)


def program_order(
    f: Callable[..., object] | None = None,
    *,
    enforce: bool,
    strict_in_out: bool | tuple[bool, bool] = False,
    exclude_argnames: str | tuple[str, ...] | None = None,
) -> UserFunction:
    """Returns a function as it is: each operation runs after its operands.

    The compiler orders operations by their operands; further hints in a program change nothing.

    Args:
        f: The function; without it, this is a decorator with options.
        enforce, strict_in_out, exclude_argnames: Ignored.

    >>> program_order(abs, enforce=True)(-1)
    1
    """
    if f is None:
        return functools.partial(program_order, enforce=enforce)
    return f
