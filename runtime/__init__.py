"""Compiling, devices, buffers, and calling compiled programs: everything that touches IREE.

Elsewhere: the meaning of operations (`axir.dialect`), transformations of programs (`axir.passes`),
the public functions (`axir`).
"""

from __future__ import annotations

from axir.runtime.device.devices import (
    CpuDevice,
    Device,
    default_device,
    device_count,
    devices,
    local_devices,
)

from .calls import eager_ops as eager_ops
from .calls.executable import Executable, Program
from .compiler import compile_command, compile_module
from .compiler.binaries import check_binary, check_machine
from .compiler.cache import ProgramCache, cache_directory
from .compiler.target import Target
from .device.buffers import Buffer, BufferType, aligned_empty
from .device.gpu_devices import CudaDevice, VulkanDevice
from .errors import (
    CompileError,
    CompileFailureWarning,
    CompilerCrashError,
    DeviceLostError,
    DeviceNotFoundError,
    DeviceUnfitError,
    HostCallError,
    LoadError,
    OutOfMemoryError,
    RuntimeExecutionError,
    WrongMemoryOrderError,
)

__all__ = [
    "Buffer",
    "BufferType",
    "CompileError",
    "CompileFailureWarning",
    "CompilerCrashError",
    "CpuDevice",
    "CudaDevice",
    "Device",
    "DeviceLostError",
    "DeviceNotFoundError",
    "DeviceUnfitError",
    "Executable",
    "HostCallError",
    "LoadError",
    "OutOfMemoryError",
    "Program",
    "ProgramCache",
    "RuntimeExecutionError",
    "Target",
    "VulkanDevice",
    "WrongMemoryOrderError",
    "aligned_empty",
    "cache_directory",
    "check_binary",
    "check_machine",
    "compile_command",
    "compile_module",
    "default_device",
    "device_count",
    "devices",
    "local_devices",
]
