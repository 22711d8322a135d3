"""The targets of compilation for GPUs, the refused GPUs, and the errors. No GPU is needed."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

import pytest

from axir.dialect.core.config import config
from axir.runtime import (
    DeviceLostError,
    DeviceUnfitError,
    OutOfMemoryError,
    Target,
    compile_module,
    devices,
)
from axir.runtime.device import gpu_devices, gpu_drivers
from axir.runtime.device.failures import device_failure
from axir.runtime.device.gpu_features import CudaFeatures, VulkanFeatures
from axir.runtime.errors import DeviceNotFoundError, RuntimeExecutionError

VULKAN = VulkanFeatures(
    name="made up",
    version=(1, 2),
    vendor=0x1002,
    subgroup_size=8,
    floats=(16, 32),
    integers=(16, 32),
    storage=(16, 32, 64),
    subgroup_operations=("shuffle",),
    has_integer_dot=False,
    max_workgroup_size=(64, 64, 64),
    max_threads=64,
    max_workgroup_memory=1 << 14,
    max_workgroup_counts=(65535, 65535, 65535),
)


def test_a_vulkan_target_is_the_device() -> None:
    (flag,) = VULKAN.flags()
    for part in (
        'arch = "rdna2"', "spirv:v1.5", "compute = fp32|fp16|int32|int16", "storage = b64|b32|b16",
        "subgroup = shuffle", "dot = none", "subgroup_size_choices = [8]",
        "max_thread_count_per_workgroup = 64",
    ):  # fmt: skip
        assert part in flag
    assert flag in Target("vulkan", gpu_features=VULKAN).flags()
    assert VULKAN.missing_types() == ("f64",)


@pytest.mark.parametrize(
    ("capability", "driver", "architecture", "ptx"),
    [
        ((9, 0), (12, 4), "sm_90", 84),
        ((12, 0), (12, 9), "sm_120", 88),
        ((13, 5), (13, 1), "sm_121", 90),
        ((12, 0), (12, 4), "sm_90", 84),
        ((8, 0), (11, 4), "sm_80", 74),
        ((8, 9), (11, 7), "sm_86", 77),
        ((7, 2), (12, 0), "sm_70", 80),
    ],
)
def test_cuda_targets(
    capability: tuple[int, int], driver: tuple[int, int], architecture: str, ptx: int
) -> None:
    features = CudaFeatures("made up", capability, driver)
    assert features.unmet_need() is None
    assert (features.architecture, features.ptx) == (architecture, ptx)


def test_needs_that_are_not_met() -> None:
    assert "capability is 5.2" in str(CudaFeatures("old", (5, 2), (12, 0)).unmet_need())
    assert "driver knows CUDA 10.2" in str(CudaFeatures("a", (8, 0), (10, 2)).unmet_need())
    assert "Vulkan 1.0" in str(dataclasses.replace(VULKAN, version=(1, 0)).unmet_need())


class _Driver:
    """NVIDIA's library, with one GPU of compute capability 9.0 and CUDA 12.4."""

    def __init__(self, result: int = 0):
        self._result = result

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            first = getattr(arguments[0], "_obj", arguments[0])
            if name == "cuDriverGetVersion":
                first.value = 12040
            elif name == "cuDeviceGetCount":
                first.value = 1
            elif name == "cuDeviceGetName":
                first.value = b"NVIDIA H200"
            elif name == "cuDeviceGetAttribute":
                first.value = {75: 9, 76: 0, 97: 232448}[arguments[1]]
            return self._result

        return call


def test_the_cuda_driver_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_drivers.ctypes, "CDLL", lambda name: _Driver())
    assert gpu_drivers.cuda_features() == [CudaFeatures("NVIDIA H200", (9, 0), (12, 4), 232448)]
    monkeypatch.setattr(gpu_drivers.ctypes, "CDLL", lambda name: _Driver(999))
    with pytest.raises(gpu_drivers.CudaDriverError, match="cuInit .* answers with error 999"):
        gpu_drivers.cuda_features()


def _no_library(name: str) -> ctypes.CDLL:
    raise OSError(name)


@pytest.mark.parametrize("platform", ["vulkan", "cuda"])
def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    config.update("jax_platforms", None)
    driver = type("Driver", (), {"query_available_devices": lambda self: [{"path": ""}]})()
    monkeypatch.setattr(gpu_devices.iree_runtime, "get_driver", lambda name: driver)
    monkeypatch.setattr(ctypes, "CDLL", _no_library)
    gpu_drivers.vulkan_features.cache_clear()
    with pytest.raises(DeviceNotFoundError, match=r"lib(vulkan|cuda)\.so\.1 is not installed"):
        gpu_devices.gpu_devices(platform)


def test_a_device_that_lacks_something_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = type(
        "Driver", (), {"query_available_devices": lambda self: [{"path": "", "name": "old one"}]}
    )()
    monkeypatch.setattr(gpu_devices.iree_runtime, "get_driver", lambda name: driver)
    old = CudaFeatures("old one", (5, 2), (12, 0))
    monkeypatch.setattr(gpu_devices, "cuda_features", lambda: [old])
    with pytest.raises(DeviceUnfitError, match=r"old one: its compute capability is 5\.2") as error:
        gpu_devices.gpu_devices("cuda")
    assert "Update the driver" in str(error.value)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("a.c:1: RESOURCE_EXHAUSTED; x", OutOfMemoryError, "for which cpu:0 has no memory"),
        ("VK_ERROR_OUT_OF_DEVICE_MEMORY", OutOfMemoryError, "for which cpu:0 has no memory"),
        ("a.c:1: DATA_LOSS; VK_ERROR_DEVICE_LOST", DeviceLostError, "cpu:0 is lost"),
        ("CUDA_ERROR_ILLEGAL_ADDRESS (700)", DeviceLostError, "cpu:0 is lost"),
        ("a.c:1: INTERNAL; odd", RuntimeExecutionError, "failed on cpu:0: internal: odd"),
    ],
)
def test_failures(text: str, kind: type[Exception], message: str) -> None:
    error = device_failure(RuntimeError(text), devices("cpu")[0], "The program", "here")
    assert type(error) is kind
    assert message in str(error)
    assert str(error).startswith("The program ")
    assert error.way_out


def test_a_cuda_target_is_the_gpu() -> None:
    (flag,) = CudaFeatures("made up", (9, 0), (12, 4), 232448).flags()
    for part in ('arch = "sm_90"', '"+ptx84"', "memory_bytes = 232448", "_16x8x16_BF16>", "F8E5M2"):
        assert part in flag
    (old,) = CudaFeatures("made up", (7, 5), (12, 4)).flags()
    assert "NV_WMMA_F32_16x16x16_F16" in old
    assert "NV_MMA_SYNC" not in old


def test_gpus_that_iree_has_no_name_for_are_compiled_for() -> None:
    text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    for target in (
        Target("cuda", gpu_architecture="sm_90"),
        Target("cuda", gpu_features=CudaFeatures("made up", (10, 0), (13, 0), 232448)),
    ):
        assert compile_module(text, target, "named")
