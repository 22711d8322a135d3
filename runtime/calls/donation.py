"""Donated arguments: arrays that a program may overwrite, and that are deleted after the call.

Elsewhere: which arguments are donated, and when it is safe to overwrite them
(`compiled_function.py`, `pending.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import DonationError
from axir.runtime.device.buffers import Buffer


def with_copies(
    arguments: Sequence[ConcreteArray], donated: tuple[int, ...]
) -> list[ConcreteArray]:
    """Returns the arguments, with the donated ones copied, so that a run leaves them unchanged."""
    return [
        ConcreteArray(x.type, np.array(x.host())) if index in donated else x
        for index, x in enumerate(arguments)
    ]


def check_donated(arguments: Sequence[object], donated: tuple[int, ...]) -> None:
    """Raises DonationError if an array is donated twice, or donated and used."""
    for number in donated:
        used = [n for n, x in enumerate(arguments) if x is arguments[number]]
        if len(used) > 1:
            raise DonationError(
                f"The array that is argument {used[1]} of the call is donated, and argument "
                f"{used[0]} as well: its memory cannot be overwritten for one and read for the "
                "other.",
                "Pass a copy, jnp.array(x), or do not donate it.",
            )


def give_away(
    arguments: Sequence[ConcreteArray], donated: tuple[int, ...], buffers: list[Buffer]
) -> None:
    """Deletes donated arrays; puts the buffers that the program may overwrite into the list.

    Raises:
        DonationError: an array is donated twice, or donated and used.
    """
    check_donated(buffers, donated)
    for number in donated:
        # Memory that the host has seen may be visible through NumPy arrays, which must not change.
        owned = buffers[number].owned()
        buffers[number] = owned.moved()
        arguments[number].delete()
