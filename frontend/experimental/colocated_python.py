"""Names of `jax.experimental.colocated_python`: Python that runs where the devices are, so here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axir._made_modules import MadeModule
from axir.dialect.core.annotations import UserFunction
from axir.runtime import Device, devices

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]


# Of modules that are made here.
__path__: list[str] = []


def __dir__() -> list[str]:
    return __all__


def colocated_python(fun: Callable[..., object]) -> UserFunction:
    """Returns the function: the process that calls it has the devices."""
    return fun


def colocated_python_class(cls: type) -> type:
    """Returns the class: the process that makes its objects has the devices."""
    return cls


def colocated_cpu_devices(accelerators: Sequence[Device]) -> tuple[Device, ...]:
    """Returns the CPU beside each device."""
    return tuple(devices("cpu")[0] for _ in accelerators)


MadeModule(f"{__name__}.func", "Functions beside devices.", {"make_callable": colocated_python})
MadeModule(f"{__name__}.serialization", "Devices.", {"DeviceList": tuple[Device, ...]})
