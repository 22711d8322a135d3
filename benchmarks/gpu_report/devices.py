"""The device that the report is of, and one that stands in for it while programs are compiled."""

from __future__ import annotations

import axir
from axir.dialect.core.annotations import HostArray
from axir.runtime import Device
from axir.runtime.device.buffers import Buffer, BufferType
from axir.runtime.device.gpu_devices import CudaDevice
from axir.runtime.device.gpu_features import CudaFeatures
from axir.runtime.errors import DeviceNotFoundError

# Properties of cards of these capabilities and their driver: name, newest CUDA, shared memory of a
# workgroup. Programs for other cards are compiled on the target machine.
KNOWN = {
    "sm_80": CudaFeatures("NVIDIA A100", (8, 0), (12, 4), 166912),
    "sm_90": CudaFeatures("NVIDIA H100", (9, 0), (13, 0), 232448),
}


class _StandIn(CudaDevice):
    """A GPU that is not there: programs are compiled for it, and nothing can lie on it."""

    def __init__(self, features: CudaFeatures):
        Device.__init__(self, 0, features.name)
        self.features = features

    def put(self, array: HostArray) -> Buffer:
        """Returns CPU memory for the captures of a program that is not run."""
        lying = axir.devices("cpu")[0].put(array)
        return Buffer(lying.ref, BufferType(array.shape, array.dtype, self))

    def _open(self, driver: str, threads: int) -> object:
        raise DeviceNotFoundError("This GPU only stands in for one.", "Compile for it.")


def stand_in(architecture: str) -> Device:
    """Returns a device of an architecture that programs can be compiled for; see `KNOWN`."""
    return _StandIn(KNOWN[architecture])


def chosen_device(platform: str) -> Device:
    """Returns the first device of a platform."""
    axir.config.update("jax_platforms", None)
    return axir.devices(platform)[0]
