"""Parts of the report: the machine and its driver, without axir's help and with it."""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator

import numpy as np
from iree import runtime as iree_runtime

import axir
import axir.numpy as jnp
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function_tracing import trace_function
from axir.passes.transforms.lower_to_stablehlo import lower_functions
from axir.runtime import Device, Program, Target, compile_module
from axir.runtime.compiler.function_compilation import prepare_for_target
from axir.runtime.device.gpu_drivers import cuda_features
from axir.runtime.device.gpu_features import CudaFeatures

from .items import Item
from .rows import Row

_PACKAGES = ("numpy", "scipy", "ml_dtypes", "iree-base-runtime", "iree-base-compiler", "optree")
_OTHERS = ("torch", "jax", "jaxlib", "llvmlite", "pytest", "scikit-learn")
_LIBRARIES = ("libcuda.so.1", "libvulkan.so.1", "libnvidia-ptxjitcompiler.so.1")
_QUERY = "name,driver_version,memory.total,memory.used,clocks.max.sm,power.limit,mig.mode.current"


def machine(is_tiny: bool) -> Iterator[Item]:
    """Yields queries of the machine; nothing is run on its GPU."""
    told: dict[str, Callable[[], str]] = {
        "python": lambda: f"{platform.python_version()}, {platform.platform()}",
        "cores": lambda: f"{len(os.sched_getaffinity(0))}",
        "packages": lambda: _versions(_PACKAGES),
        "other packages": lambda: _versions(_OTHERS),
        "libraries": _libraries,
        "nvidia-smi": _nvidia_smi,
        "driver": lambda: "; ".join(map(str, cuda_features())),
        "drivers of IREE": lambda: ", ".join(iree_runtime.query_available_drivers()),
        "devices of IREE": _iree_devices,
    }
    for name, tell in told.items():
        yield Item(name, functools.partial(_tell, name, tell))


def _tell(name: str, tell: Callable[[], str], device: Device) -> list[Row]:
    return [Row(name, "told", tell())]


def _versions(names: tuple[str, ...]) -> str:
    found = []
    for name in names:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def _libraries() -> str:
    found = []
    for name in _LIBRARIES:
        try:
            ctypes.CDLL(name)
        except OSError as error:
            found.append(f"no {name} ({error})")
        else:
            found.append(name)
    return ", ".join(found)


def _nvidia_smi() -> str:
    if shutil.which("nvidia-smi") is None:
        return "not installed"
    command = ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    return " | ".join((result.stdout + result.stderr).splitlines())


def _iree_devices() -> str:
    found = []
    for driver in ("cuda", "vulkan"):
        try:
            listed = iree_runtime.get_driver(driver).query_available_devices()
            found.append(f"{driver}: {listed}")
        except Exception as error:
            found.append(f"{driver}: {str(error).splitlines()[0]}")
    return "; ".join(found)


def device(is_tiny: bool) -> Iterator[Item]:
    """Yields first steps on the device: its properties, transfers of arrays, programs of each kind.

    Where programs do not load, those for other targets tell which would.
    """
    yield Item("what it is", _what_it_is)
    yield Item("bytes there and back", _there_and_back)
    for name in _SMALL:
        yield Item(name, functools.partial(_small, name), functools.partial(_prepare_small, name))
    for name, features in _LADDER.items():
        yield Item(
            f"compiled for {name}",
            functools.partial(_for_target, name, features),
            lambda device, features=features: _binary(features),
        )


def _what_it_is(device: Device) -> list[Row]:
    stats = device.memory_stats()
    return [
        Row("what it is", "told", f"{device}: {device.device_kind}; {device.features}; {stats}")
    ]


def _there_and_back(device: Device) -> list[Row]:
    for size in (0, 1, 1000, 1 << 14, (1 << 20) + 3):
        sent = np.arange(size, dtype=np.float32)
        if not np.array_equal(device.put(sent).to_numpy(), sent):
            return [Row("bytes there and back", "wrong", f"{size} numbers came back as others")]
    return [Row("bytes there and back", "right")]


_SMALL = {
    "an addition": lambda x: x + 1,
    "a sum": lambda x: x.sum(),
    "sums of rows": lambda x: x.sum(1),
    "a product of f32": lambda x: x @ x,
    "a product of bf16": lambda x: (x.astype(jnp.bfloat16) @ x.astype(jnp.bfloat16)).astype(
        x.dtype
    ),
    "a sort": lambda x: jnp.sort(x, 0),
    "a loop": lambda x: axir.lax.fori_loop(0, 5, lambda i, y: y @ x / 8 + i, x),
}
_SIZE = 64


def _prepare_small(name: str, device: Device) -> None:
    argument = np.ones((_SIZE, _SIZE), np.float32)
    axir.jit(_SMALL[name], device=device).lower(argument).compile()


def _small(name: str, device: Device) -> list[Row]:
    x = np.random.default_rng(0).standard_normal((_SIZE, _SIZE), np.float32)
    function = _SMALL[name]
    expected = np.asarray(function(jnp.asarray(x)))
    found = np.asarray(axir.jit(function, device=device)(x))
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    allowed = 1e-2 if "bf16" in name else 1e-5
    verdict = "right" if error <= allowed else "wrong"
    return [Row(name, verdict, f"largest error {error:.1e} of the largest value")]


# The same program, in PTX of other versions and for other capabilities.
_LADDER = {
    "sm_90, PTX 9.0": CudaFeatures("", (9, 0), (13, 0), 232448),
    "sm_90, PTX 7.8, 48 KiB": CudaFeatures("", (9, 0), (11, 8)),
    "sm_80, PTX 7.0": CudaFeatures("", (8, 0), (11, 0), 166912),
    "sm_60, PTX 7.0": CudaFeatures("", (6, 0), (11, 0)),
}


def _binary(features: CudaFeatures) -> bytes:
    types = [ShapedArray((_SIZE, _SIZE), np.dtype(np.float32))]
    module = lower_functions({"main": trace_function(lambda x: [x @ x + 1], types)}, "cuda")
    target = Target("cuda", gpu_features=features)
    prepare_for_target(module, target)
    return compile_module(module, target)


def _for_target(name: str, features: CudaFeatures, device: Device) -> list[Row]:
    name = f"compiled for {name}"
    if device.platform != "cuda":
        return [Row(name, "refused", "for CUDA alone")]
    x = np.random.default_rng(0).standard_normal((_SIZE, _SIZE), np.float32)
    (result,) = Program(_binary(features), device).function()([device.put(x)])
    is_right = np.allclose(result.to_numpy(), x @ x + 1, atol=1e-4)
    return [Row(name, "right" if is_right else "wrong")]
