"""Options of `jit`: arguments by number or name, static ones in the key, options of XLA's compiler.

Elsewhere: the tables that the keys lead into (`jit.py`).
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import NamedTuple

from axir._arguments.wrapping import wraps
from axir.dialect.core.annotations import Options, UserFunction, UserObject
from axir.dialect.core.errors import StaticArgumentError


class StaticKey(NamedTuple):
    """The static arguments of a call, as a key: 1, 1.0 and True are different.

    Attributes:
        given: How many arguments are given by position.
        positional: Numbers of the static ones among them.
        values: Their values, positional ones first, then named ones.
        names: The named ones.
        types: The types of the values.
    """

    given: int
    positional: tuple[int, ...]
    values: tuple[UserObject, ...]
    names: tuple[str, ...]
    types: tuple[type, ...]

    def bound(self, function: Callable[..., object]) -> UserFunction:
        """Returns a function of the other arguments, with these given."""
        numbers = len(self.positional)
        fixed = dict(zip(self.positional, self.values[:numbers], strict=True))
        named = dict(zip(self.names, self.values[numbers:], strict=True))

        @wraps(function)
        def bound(*dynamic: object, **keywords: object) -> UserObject:
            remaining = iter(dynamic)
            args = [fixed[n] if n in fixed else next(remaining) for n in range(self.given)]
            return function(*args, **keywords, **named)

        return bound


@dataclasses.dataclass(frozen=True)
class StaticArguments:
    """Which arguments of a function are static.

    Attributes:
        numbers: Positions; negative ones count from the end.
        names: Their names, where they are given by name.
        function_name: For messages.
    """

    numbers: tuple[int, ...]
    names: tuple[str, ...]
    function_name: str

    def split(
        self, args: tuple[object, ...], kwargs: dict[str, Options]
    ) -> tuple[UserObject, UserObject, StaticKey]:
        """Takes the static arguments out; they become the key, by value.

        Raises:
            StaticArgumentError: if one is not hashable.
        """
        count = len(args)
        positional, others = _places(self.numbers, count)
        values = tuple([args[n] for n in positional])
        names: tuple[str, ...] = ()
        if kwargs:
            names = tuple(sorted([k for k in kwargs if k in self.names]))
            values += tuple([kwargs[k] for k in names])
            kwargs = {k: v for k, v in kwargs.items() if k not in self.names}
        key = StaticKey._make((count, positional, values, names, tuple([type(v) for v in values])))
        try:
            hash(key)
        except TypeError:
            unhashable = next(v for v in values if not _is_hashable(v))
            raise StaticArgumentError(
                f"jit of {self.function_name!r}: static argument {unhashable!r} of type "
                f"{type(unhashable).__name__!r} is not hashable.",
                "Static arguments are part of the cache key: use tuples instead of lists, and make "
                "arrays ordinary arguments.",
            ) from None
        return tuple([args[n] for n in others]), kwargs, key


@functools.lru_cache
def _places(numbers: tuple[int, ...], count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the static positions among a number of arguments, and the others."""
    chosen = {n if n >= 0 else n + count for n in numbers}
    positional = tuple(n for n in range(count) if n in chosen)
    return positional, tuple(n for n in range(count) if n not in chosen)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _numbers(value: UserObject, name: str) -> tuple[int, ...]:
    numbers = (value,) if isinstance(value, int) else tuple(value)
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        raise TypeError(f"jit: {name} must be an integer or a sequence of integers, not {value!r}.")
    return numbers


def chosen(
    fun: Callable[..., object],
    argnums: int | Sequence[int] | None,
    argnames: str | Sequence[str] | None,
    option: str,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Returns numbers and names of the arguments that either of the two options of `jit` names.

    The missing one is inferred from the other and the function's signature.

    Raises:
        StaticArgumentError: for a number or a name that the function does not take.
        TypeError: for numbers that are no integers.
    """
    numbers = () if argnums is None else _numbers(argnums, f"{option}_argnums")
    names = _strings(argnames)
    _check_names(fun, names, f"{option}_argnames")
    if argnums is not None and argnames is not None and hasattr(fun, "__wrapped__"):
        return numbers, names  # the wrapped function's signature may be narrower
    return _complete(numbers, names, _parameter_names(fun), fun)


def _strings(value: str | Sequence[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _parameter_names(fun: Callable[..., object]) -> list[str] | None:
    """Returns the names of the positional parameters, or None if they cannot be known."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (ValueError, TypeError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _check_names(fun: Callable[..., object], names: Sequence[str], option: str) -> None:
    """Raises `StaticArgumentError` if a function takes no argument of a name."""
    try:
        parameters = inspect.signature(fun).parameters
    except (ValueError, TypeError):
        return
    unknown = sorted({*names} - {*parameters})
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        raise StaticArgumentError(
            f"jit: {option} names {', '.join(unknown)}, but "
            f"{getattr(fun, '__name__', 'the function')!r} takes {', '.join(parameters)}."
        )


def _complete(
    numbers: tuple[int, ...],
    names: tuple[str, ...],
    parameters: list[str] | None,
    fun: Callable[..., object],
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Makes numbers and names say the same, so that either way of calling works."""
    if parameters is None:
        return numbers, names
    for number in numbers:
        if not -len(parameters) <= number < len(parameters):
            raise StaticArgumentError(
                f"jit: argument number {number} is out of range: "
                f"{getattr(fun, '__name__', 'the function')!r} has {len(parameters)} positional "
                "parameters."
            )
    numbers = tuple(n % len(parameters) for n in numbers)
    all_numbers = {*numbers, *(parameters.index(n) for n in names if n in parameters)}
    all_names = {*names, *(parameters[n] for n in numbers)}
    return tuple(sorted(all_numbers)), tuple(sorted(all_names))


# Options of XLA's compiler ------------------------------------------------------------------------


class CompilerEffortLevel(enum.Enum):
    """The effort of a compiler: exists for imports only; no function takes it.

    axir's compiler has the option `axir_opt_level`.
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


class Inline(enum.Enum):
    """The stage at which a jitted function is inlined into its caller.

    With `JAX_EARLY` its operations become part of the caller's program. With any other value it is
    a function in that program until axir's compiler inlines it.
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"
