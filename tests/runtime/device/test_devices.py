"""The devices, how they print, and the errors of missing ones."""

from __future__ import annotations

import pytest

from axir.dialect.core.config import config
from axir.runtime import DeviceNotFoundError, default_device, device_count, devices, local_devices
from axir.runtime.device.failures import short_status
from axir.runtime.device.gpu_devices import gpu_devices


def has_no(platform: str) -> bool:
    try:
        return not gpu_devices(platform)
    except DeviceNotFoundError:
        return True


def test_the_cpu_is_the_default_device():
    cpu = devices("cpu")[0]
    assert devices() == local_devices() == [cpu]
    assert device_count() == 1
    assert default_device() is cpu
    assert (cpu.id, cpu.platform, cpu.device_kind, cpu.process_index) == (0, "cpu", "cpu", 0)
    assert repr(cpu) == "CpuDevice(id=0)"
    assert str(cpu) == "cpu:0"


def test_handles_are_made_once():
    cpu = devices("cpu")[0]
    assert cpu.handle("local-task") is cpu.handle("local-task")
    assert cpu.handle() is cpu.handle("local-sync")
    assert cpu.handle("local-task") is not cpu.handle("local-sync")


def test_the_default_device_follows_the_option():
    cpu = devices("cpu")[0]
    config.update("jax_default_device", cpu)
    assert default_device() is cpu
    config.update("jax_default_device", "cpu")
    assert default_device() is cpu


def test_unknown_platforms_are_named():
    with pytest.raises(DeviceNotFoundError, match="no platform 'tpu'") as caught:
        devices("tpu")
    assert "Choose one of cpu, vulkan and cuda." in str(caught.value)


def test_platforms_that_are_not_offered_say_so():
    config.update("jax_platforms", "cpu")
    with pytest.raises(DeviceNotFoundError, match="not among those that jax_platforms offers"):
        devices("cuda")


@pytest.mark.skipif(not has_no("vulkan"), reason="this machine has a Vulkan device")
def test_a_missing_vulkan_device_tells_the_way_out():
    config.update("jax_platforms", None)
    with pytest.raises(DeviceNotFoundError, match="There is no vulkan device here: ") as caught:
        devices("vulkan")
    assert "Install a Vulkan loader" in str(caught.value)
    assert "runtime/src" not in str(caught.value)


@pytest.mark.skipif(not has_no("cuda"), reason="this machine has a CUDA device")
@pytest.mark.parametrize("name", ["cuda", "gpu"])
def test_a_missing_cuda_device_tells_the_way_out(name):
    config.update("jax_platforms", None)
    with pytest.raises(DeviceNotFoundError, match="There is no cuda device here: ") as caught:
        devices(name)
    assert "Install the NVIDIA driver" in str(caught.value)
    assert "runtime/src" not in str(caught.value)


def test_short_status_keeps_messages_without_a_status():
    assert short_status(RuntimeError("something else")) == "something else"
