"""`device_buffer` of arrays: an object with an array's place, which arrays now have themselves."""

from __future__ import annotations

import numpy as np

from axir import Device
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import Array, ConcreteArray


class DeviceBuffer:
    """The memory of an array."""

    def __init__(self, array: Array):
        self._array = array

    def device(self) -> Device:
        """Returns the device that the memory belongs to."""
        array: UserObject = self._array
        (device,) = array.devices()
        return device

    def to_py(self) -> np.ndarray:
        """Returns the elements as an array of NumPy's."""
        return np.asarray(self._array)


def give_arrays_buffers() -> None:
    """Gives arrays the attribute `device_buffer`."""
    setattr(ConcreteArray, "device_buffer", property(DeviceBuffer))  # noqa: B010
