"""What NumPy's arrays have and arrays that never change cannot: the way out for each name."""

from __future__ import annotations

from typing import NoReturn

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import Array
from axir.dialect.core.errors import AxirError


class AbsentAttributeError(AxirError, AttributeError):
    """An attribute of NumPy's arrays that arrays of axir do not have, since they never change."""


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


class _Absent:
    """A descriptor that says what to write in place of an attribute."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, array: UserObject, owner: type) -> NoReturn:
        raise AbsentAttributeError(
            f"Arrays have no attribute {self.name!r}: they never change, and where their elements "
            "lie is not for programs to see.",
            f"{_WAYS_OUT[self.name]}.",
        )


def install() -> None:
    """Gives arrays and tracers the errors; called once, when `axir.numpy` is imported."""
    for name in _WAYS_OUT:
        setattr(Array, name, _Absent(name))
