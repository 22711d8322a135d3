"""Functions and classes of the module `jax` of 2020 that have another name or form today."""

from __future__ import annotations

from collections.abc import Callable

from axir import Array, jit, process_count
from axir.dialect.core.annotations import UserFunction
from axir.stages import Lowered

__all__ = ["DeviceArray", "host_count", "host_ids", "xla_computation"]

DeviceArray = Array
host_count = process_count


def host_ids() -> list[int]:
    """Returns the indices of the processes."""
    return list(range(process_count()))


class Computation:
    """A program as text. It is StableHLO; in 2020 it was XLA's own form."""

    def __init__(self, lowered: Lowered):
        self._lowered = lowered

    def as_hlo_text(self) -> str:
        """Returns the program."""
        return self._lowered.as_text()

    GetHloText = as_hlo_text


def xla_computation(
    fun: Callable[..., object], static_argnums: int | tuple[int, ...] = ()
) -> UserFunction:
    """Returns a function of example arguments that returns the program of `fun`.

    Args:
        fun: Function of arrays or trees of arrays.
        static_argnums: Positions of arguments that are part of the program.

    >>> computation = xla_computation(lambda x: x + x)(1.0)
    >>> "stablehlo.add" in computation.as_hlo_text()
    True
    """
    compiled = jit(fun, static_argnums=static_argnums)

    def computation(*args: object, **kwargs: object) -> Computation:
        return Computation(compiled.lower(*args, **kwargs))

    return computation
