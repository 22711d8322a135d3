"""Where arrays are committed to lie, and where what is computed from them lies.

The place of an array (`ConcreteArray._device`) is a device, or the devices of a mesh and what each
of them holds (`is_spread`), or None: then it goes wherever a computation is. Elsewhere: devices and
memory (`runtime/`), and the shardings that users write (`frontend/_devices/`).
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
    """Returns the place that arrays are committed to, None if there is none.

    Of several placements on the same devices it is the first one.

    Args:
        what: The computation in which they meet, for the error.
        arrays: The arrays.
        name_of: What to call an array, by its number.

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
    """Returns where a result lies that was computed from arrays whose common place is known.

    On a mesh it is cut as an operand of its shape is, or else whole on every device.
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
    """Returns where an array of a shape lies that was made from another one."""
    return place_of_result(array._device, (array,), shape)
