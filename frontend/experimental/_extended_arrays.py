"""`EArray`: the class of arrays whose dtypes a library has added, of which there are none."""

from __future__ import annotations

from typing import NoReturn

from axir.dialect.core.array import Array
from axir.dialect.core.errors import DTypeError


class EArray(Array):
    """An array of a dtype that a library has added. No array is one: `isinstance` says so.

    Arrays of keys, whose dtype is no number either, are of the class of all arrays.

    Raises:
        DTypeError: when one is made.

    >>> import axir
    >>> isinstance(axir.random.key(0), EArray)
    False
    """

    def __new__(cls, aval: object, data: object) -> NoReturn:
        raise DTypeError(
            f"EArray: {aval} is no type of arrays here: dtypes are those of numbers and of keys.",
            "Keep the numbers in a container of your own, registered as a tree.",
        )
