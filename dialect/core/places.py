"""The devices that arrays are committed to, and the devices of results computed from them.

The place of an array (`ConcreteArray._device`) is a device, or the devices of a mesh with the parts
of each (`is_spread`), or None: then the array moves to the place of a computation. Elsewhere:
devices and memory (`runtime/`), and the shardings that users write (`frontend/_devices/`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from .annotations import Foreign
from .config import config
from .errors import IncompatibleDevicesError
from .types import ShapedArray


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
