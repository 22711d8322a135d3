"""Attributes that arrays cannot have, or not while they are traced: the way out for each name."""

from __future__ import annotations

from typing import NoReturn

from axir.dialect.core.array import Array
from axir.dialect.core.errors import AxirError
from axir.dialect.program.tracer import Tracer


class AbsentAttributeError(AxirError, AttributeError):
    """An attribute that other arrays have: mutable arrays, or arrays with a memory address."""


_WAYS_OUT = {
    "data": "np.asarray(x).data is the memory of an array on the CPU",
    "fill": "Make a new array: x = jnp.full_like(x, value)",
    "flags": "No array can be written to; np.asarray(x).flags tells how its memory is laid out",
    "flat": "Write x.ravel() in place of x.flat",
    "itemset": "Make a new array: x = x.at[index].set(value)",
    "partition": "Make a new array: x = jnp.partition(x, kth)",
    "put": "Make a new array: x = jnp.put(x, index, values, inplace=False)",
    "resize": "Make a new array: x = jnp.resize(x, shape)",
    "setfield": "Make a new array: x = x.at[index].set(value)",
    "setflags": "No array can be written to: leave the call out",
    "strides": "np.asarray(x).strides tells how the memory of an array is laid out",
    "tofile": "Write np.asarray(x).tofile(path), or jnp.save(path, x)",
}


_IMMUTABLE = (
    "Arrays have no attribute {!r}: they never change, and where their elements lie is not for "
    "programs to see."
)

_WAYS_OUT_OF_TRACES = {
    "copy_to_host_async": "Copy the function's results",
    "device": "Ask the function's arguments before it is called, or its results",
    "is_ready": "Ask the function's results",
    "sharding": "axir.debug.inspect_array_sharding tells how an array will be spread over devices",
}
_TRACED = (
    "Traced arrays have no attribute {!r}: they are still to be computed, wherever their program "
    "runs."
)


class _Absent:
    """A descriptor with an error that names the replacement of an attribute."""

    def __init__(self, name: str, what: str, way_out: str):
        self.message, self.way_out = what.format(name), way_out

    def __get__(self, array: object, owner: type) -> NoReturn:
        raise AbsentAttributeError(self.message, f"{self.way_out}.")


def install() -> None:
    """Gives arrays and tracers the errors; called once, when `axir.numpy` is imported."""
    for name, way_out in _WAYS_OUT.items():
        setattr(Array, name, _Absent(name, _IMMUTABLE, way_out))
    for name, way_out in _WAYS_OUT_OF_TRACES.items():
        setattr(Tracer, name, _Absent(name, _TRACED, way_out))
