"""Programs on a GPU call functions of the host, and meshes have GPUs in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.config import config
from axir.experimental import io_callback
from axir.runtime import Device, DeviceNotFoundError
from axir.runtime.device import gpu_devices
from axir.sharding import Mesh, NamedSharding
from axir.sharding import PartitionSpec as P

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_callbacks_in_programs_and_their_loops(
    gpu: Device, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[Any] = []

    def program(x: Any) -> Any:
        like = axir.ShapeDtypeStruct(x.shape, x.dtype)
        axir.debug.print("first {}", x[0, 1])

        def body(i: Any, carried: Any) -> Any:
            io_callback(seen.append, None, i, ordered=True)
            return carried + axir.pure_callback(lambda x, i: x * (i + 1), like, x, i)

        return lax.fori_loop(0, 3, body, jnp.zeros_like(x)) * 2

    for _ in range(2):
        result = axir.jit(program)(axir.device_put(X, gpu))
        assert result.devices() == {gpu}
        np.testing.assert_array_equal(result, X * 12)
    assert seen == [0, 1, 2, 0, 1, 2]
    assert capfd.readouterr().out == "first 1.0\n" * 2


def test_an_exception_of_a_callback_is_raised_by_the_call(gpu: Device) -> None:
    def fail(x: Any) -> Any:
        raise KeyError("of mine")

    x = axir.device_put(X, gpu)
    call = axir.jit(lambda x: axir.pure_callback(fail, x, x + 1))
    for _ in range(2):
        with pytest.raises(KeyError, match="of mine"):
            call(x)
    np.testing.assert_array_equal(axir.jit(lambda x: x + 1)(x), X + 1)  # it goes on


def test_what_only_lapack_has_is_computed_by_the_host(gpu: Device) -> None:
    matrix = np.array([[0, 1], [-4, 0]], np.float32)
    values = axir.jit(jnp.linalg.eigvals, device=gpu)(matrix)
    assert values.devices() == {gpu}
    np.testing.assert_allclose(np.sort_complex(values), [-2j, 2j], atol=1e-6)


def test_a_mesh_of_a_gpu_and_a_cpu(gpu: Device) -> None:
    devices = [axir.devices("cpu")[0], gpu]
    mesh = Mesh(np.array(devices), ("rows",))
    x = axir.device_put(X, NamedSharding(mesh, P("rows")))
    result = axir.jit(lambda x: jnp.sin(x) - jnp.sin(x).sum(0))(x)
    assert result.devices() == set(devices)
    np.testing.assert_allclose(result, np.sin(X) - np.sin(X).sum(0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("text", ["1000", "first", "0,", "-1"])
def test_gpus_that_are_not_there_cannot_be_chosen(
    gpu: Device, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    option = {"vulkan": "axir_vulkan_visible_devices", "cuda": "jax_cuda_visible_devices"}
    monkeypatch.setattr(type(config), "read", lambda self, name: text)
    message = f"{option[gpu.platform]}='{text}': this machine has [0-9]+ {gpu.platform} devices"
    with pytest.raises(DeviceNotFoundError, match=message) as caught:
        gpu_devices.gpu_devices(gpu.platform)
    assert "Name some of these, separated by commas, or 'all'." in str(caught.value)
