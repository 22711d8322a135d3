"""What the functions of `axir.scipy.special` share."""

from __future__ import annotations

from collections.abc import Callable

from axir.dialect.core.annotations import ArrayLike, Options, UserObject
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import (
    broadcast_arguments,
    constant,
    promote_inexact,
    require_real,
)


def real_arguments(name: str, *args: Options) -> list[Value]:
    """Promotes real arguments to a float dtype and broadcasts them."""
    values = promote_inexact(name, *args)
    require_real(name, *values)
    return broadcast_arguments(name, *values)


def weak_constant(value: float, x: Value) -> Value:
    """Returns a constant of the dtype of a value, without a part in its weak type."""
    return constant(value, x.type.dtype, True)


def unary_function(
    name: str, apply: Callable[[Value], Value], summary: str
) -> Callable[[UserObject], Value]:
    """Returns the function of one real argument that applies another to it, documented."""

    def function(x: ArrayLike) -> Value:
        return apply(*real_arguments(name, x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    Args:
        x: Array or scalar of real numbers.

    Raises:
        DTypeError: for complex numbers.
    """
    return function
