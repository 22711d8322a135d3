"""Which arguments a derivative is taken by: numbers, selection, and whether they can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from axir._arguments.wrapping import wraps
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Options, UserFunction, UserObject
from axir.dialect.core.errors import GradientError, ParameterError
from axir.dialect.program.rules import Value


class ArgumentNumberError(ParameterError, TypeError):
    """A derivative is requested with respect to an argument that the call does not have."""


def normalize_argnums(
    argnums: int | Sequence[int], count: int, name: str
) -> tuple[tuple[int, ...], bool]:
    """Returns argument numbers from 0, and whether one number was given rather than a sequence."""
    is_single = isinstance(argnums, (int, np.integer))
    wanted = (argnums,) if is_single else tuple(argnums)  # type: ignore[arg-type]
    normal = []
    for number in wanted:
        if not isinstance(number, (int, np.integer)):
            raise TypeError(f"{name}: argnums must be integers, not {number!r}.")
        if not -count <= number < count:
            raise ArgumentNumberError(
                f"{name}: argnums {number} is out of range: the function was called with {count} "
                "positional arguments.",
                "Pass by position the arguments that the derivative is taken by.",
            )
        normal.append(int(number) % count)
    if len({*normal}) < len(normal):
        raise ParameterError(
            f"{name}: argnums {tuple(wanted)} name an argument twice.", "Name each argument once."
        )
    return tuple(normal), bool(is_single)


def select_arguments(
    fun: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, Options],
    chosen: tuple[int, ...],
) -> UserFunction:
    """Returns `fun` as a function of the chosen arguments only."""
    if chosen == tuple(range(len(args))) and not kwargs:
        return fun

    @wraps(fun)
    def partial(*selected: object) -> UserObject:
        full_args = list(args)
        for number, value in zip(chosen, selected, strict=True):
            full_args[number] = value
        return fun(*full_args, **kwargs)

    return partial


def check_differentiable(
    values: Sequence[Value], holomorphic: bool, name: str, allow_int: bool
) -> None:
    """Raises `GradientError` if a value cannot be differentiated in."""
    for x in values:
        is_complex = dtypes.is_complex(x.dtype)
        if holomorphic and not is_complex:
            raise GradientError(
                f"{name} with holomorphic=True requires inputs of a complex dtype, but got "
                f"{x.type}.",
                "Cast with x.astype(complex), or drop holomorphic.",
            )
        if not dtypes.is_inexact(x.dtype) and not allow_int:
            raise GradientError(
                f"{name} requires real- or complex-valued inputs (sub-dtype of np.inexact), but "
                f"got {x.type}.",
                "Pass floats: 2.0 instead of 2, x.astype(float); or set allow_int=True.",
            )
