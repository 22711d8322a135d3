"""`EArray`: the class of arrays with dtypes added by a library. No such arrays exist."""

from __future__ import annotations

from typing import NoReturn

from axir.dialect.core.array import Array
from axir.dialect.core.errors import DTypeError


class EArray(Array):
    """An array with a dtype added by a library. No array is an instance.

    Arrays of keys have the class of all arrays, although their dtype is not numeric.

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
