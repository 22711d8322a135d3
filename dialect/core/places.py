"""The devices that arrays are committed to, and the devices of results computed from them.

The place of an array (`ConcreteArray._device`) is a device, or the devices of a mesh with the parts
of each (`is_spread`), or None: then the array moves to the place of a computation.

The options `jax_transfer_guard...` log or refuse moves of arrays. A transfer is explicit if a
function requests it (`device_put`, `device_get`), and implicit if an operation needs an array on
another device. On the CPU a device's memory is the host's, so reading an array is no transfer.

Elsewhere: devices and memory (`runtime/`), and the shardings that users write
(`frontend/_devices/`).
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from .annotations import Foreign
from .config import config
from .errors import IncompatibleDevicesError, TransferGuardError
from .options import TRANSFER_LEVELS
from .state import state
from .types import ShapedArray

_logger = logging.getLogger(__name__)
_ALLOW, _LOG, _DISALLOW, _LOG_EXPLICIT, _DISALLOW_EXPLICIT = TRANSFER_LEVELS


class _OfThread(threading.local):
    is_explicit = False


_of_thread = _OfThread()


@contextlib.contextmanager
def explicit_transfers() -> Iterator[None]:
    """Marks the transfers of a block as explicit."""
    before, _of_thread.is_explicit = _of_thread.is_explicit, True
    try:
        yield
    finally:
        _of_thread.is_explicit = before


def check_transfer(direction: str, what: object) -> None:
    """Lets a transfer happen, logs it, or refuses it, as the options say.

    Args:
        direction: `host_to_device`, `device_to_device` or `device_to_host`.
        what: The moved object, as named in the message.

    Raises:
        TransferGuardError: it is not allowed.
    """
    level = config.read(f"jax_transfer_guard_{direction}") or config.jax_transfer_guard
    if level in (None, _ALLOW) or state.ambient is not None:
        return
    is_explicit = _of_thread.is_explicit
    described = f"{direction.replace('_', '-')} transfer of {what}"
    if level == _DISALLOW_EXPLICIT or (level == _DISALLOW and not is_explicit):
        raise TransferGuardError(
            f"Disallowed {described}.",
            "Ask for it with axir.device_put or axir.device_get, or allow it with "
            "axir.transfer_guard('allow')."
            if not is_explicit
            else "Allow it with axir.transfer_guard('allow').",
        )
    if level == _LOG_EXPLICIT or (level == _LOG and not is_explicit):
        _logger.warning(described)


class PlacedArray(Protocol):
    """An array of known elements, as this file sees it: `ConcreteArray`."""

    @property
    def type(self) -> ShapedArray:
        """Shape and dtype."""
        ...

    @property
    def _device(self) -> Foreign: ...

    @property
    def _buffer(self) -> object: ...


_Kind = TypeVar("_Kind", bound=PlacedArray)


def devices_at(place: Foreign) -> tuple[Foreign, ...]:
    """Returns the devices of a place."""
    return tuple(place.devices) if place.is_spread else (place,)


def common_place(
    what: str,
    arrays: Sequence[PlacedArray],
    name_of: Callable[[int], str] = "operand {}".format,
) -> Foreign:
    """Returns the place that arrays are committed to, or None without a commitment.

    Of several placements on the same devices it is the first one.

    Args:
        what: The computation that uses them all, as named in the error.
        arrays: The arrays.
        name_of: Returns the name of an array, given its number.

    Raises:
        IncompatibleDevicesError: if their devices differ.
    """
    chosen, first = None, 0
    for number, x in enumerate(arrays):
        place = x._device
        if place is None or place is chosen:
            continue
        if chosen is None:
            chosen, first = place, number
        elif place.is_spread != chosen.is_spread or devices_at(place) != devices_at(chosen):
            raise IncompatibleDevicesError(
                f"Received incompatible devices for {what}: {name_of(first)}, "
                f"{arrays[first].type}, is committed to {_named(chosen)}, and {name_of(number)}, "
                f"{x.type}, to {_named(place)}.",
                "Move one of them with axir.device_put(x, device), or make it without naming a "
                "device.",
            )
    return chosen


def _named(place: Foreign) -> str:
    names = ", ".join(map(str, devices_at(place)))
    return f"the mesh of {names}" if place.is_spread else names


def place_of_result(
    place: Foreign, arrays: Sequence[PlacedArray], shape: tuple[int, ...]
) -> Foreign:
    """Returns the place of a result, given its operands and their common place.

    On a mesh it is cut like an operand of its shape; without one, it is whole on every device.
    """
    if place is None or not place.is_spread:
        return place
    alike = [x._device for x in arrays if x._device is not None and x.type.shape == shape]
    cut = [other for other in alike if not other.is_replicated]
    return (cut or alike or [place.replicated])[0]


def settled(array: _Kind) -> _Kind:
    """Puts an uncommitted array on the device that `jax_default_device` names; returns it.

    It stays there when the option changes.
    """
    device = config.jax_default_device
    if device is not None and not isinstance(device, str) and array._buffer is None:
        device.settle(array)
    return array


def place_of_part(array: PlacedArray, shape: tuple[int, ...]) -> Foreign:
    """Returns the place of an array of a shape that was made from another array."""
    return place_of_result(array._device, (array,), shape)
