"""Arguments of calls: arrays in a device's memory, and donated arrays.

A program may overwrite donated arrays, which are deleted after the call. Elsewhere: which arguments
are donated, and when it is safe to overwrite them (`compiled_function.py`, `pending.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir.dialect.core.annotations import Foreign, HostArray
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.config import config
from axir.dialect.core.errors import DonationError
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.core.places import check_transfer
from axir.dialect.core.timeline import span, timeline
from axir.dialect.program.narrow_elements import bytes_of
from axir.runtime.device.buffers import Buffer
from axir.runtime.device.devices import BORROWED_BYTES, Device, default_device


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


def buffer_of(array: ConcreteArray, device: Device) -> Buffer:
    """Returns an array's memory on a device, copying it there only if it is not there yet."""
    buffer: Foreign = array._buffer
    if buffer is not None and not buffer.is_deleted:
        if buffer.device is device:
            return buffer
        if config.jax_transfer_guard or config.jax_transfer_guard_device_to_device:
            check_transfer("device_to_device", f"{array.type} from {buffer.device} to {device}")
        return _put(bytes_of(words_of(array.host())), device)
    host = bytes_of(words_of(array.host()))
    if host.nbytes >= BORROWED_BYTES and host.flags.writeable:
        # Arrays are immutable, so their memory can be shared with the device.
        host = host.view()
        host.flags.writeable = False
    buffer = _put(host, device)
    if device is array._device or device is default_device():
        array._buffer = buffer  # the array's device; on others it is a temporary copy
    return buffer


def _put(host: HostArray, device: Device) -> Buffer:
    if not timeline.is_on:
        return device.put(host)
    with span("to the device", "transfer", bytes=host.nbytes, device=str(device)):
        return device.put(host)
