"""Parts of the report: how long programs take by axir, by PyTorch and by JAX, and copies."""

from __future__ import annotations

import functools
import importlib
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import axir
from axir.runtime import Device

from .items import Item
from .rows import Row
from .timed import Timed, programs

# So long one program is measured, of so many calls at least and at most.
_SECONDS = 0.6
_CALLS = (3, 50)
_COPIES = (1 << 12, 1 << 20, 1 << 28)


class NotThereError(Exception):
    """A library is not installed, or has no GPU."""


def _measured(call: Callable[[], Any], finish: Callable[[Any], Any]) -> dict[str, float]:
    """Returns the median seconds of calls that are waited for, and the mean of some in a row."""
    start = time.perf_counter()
    finish(call())
    first = time.perf_counter() - start
    times = list[float]()
    begun = time.perf_counter()
    while len(times) < _CALLS[0] or (
        len(times) < _CALLS[1] and time.perf_counter() - begun < _SECONDS
    ):
        start = time.perf_counter()
        finish(call())
        times.append(time.perf_counter() - start)
    count = max(_CALLS[0], min(20, int(_SECONDS / statistics.median(times))))
    start = time.perf_counter()
    result = None
    for _ in range(count):
        result = call()
    finish(result)
    in_a_row = (time.perf_counter() - start) / count
    return {"first": first, "waited": statistics.median(times), "in a row": in_a_row}


def by_axir(is_tiny: bool) -> Iterator[Item]:
    """Yields the programs by axir, and copies to the device and from it."""
    for program in programs(is_tiny):
        if program.precision == "f32":
            yield Item(
                program.name,
                functools.partial(_by_jax_api, axir, program),
                functools.partial(_prepare, program),
            )
    for size in _COPIES[:-1] if is_tiny else _COPIES:
        yield Item(f"copy of {size} bytes", functools.partial(_copies, size))


def _prepare(program: Timed, device: Device) -> None:
    function = program.build(axir, importlib.import_module("axir.numpy"))
    kind = axir.numpy.dtype(program.dtype)
    types = [axir.ShapeDtypeStruct(shape, kind) for shape in program.shapes]
    axir.jit(function, device=device).lower(*types).compile()


def _by_jax_api(library: Any, program: Timed, device: Any) -> list[Row]:
    numpy = importlib.import_module(f"{library.__name__}.numpy")
    function = library.jit(program.build(library, numpy))
    given = [
        library.device_put(numpy.asarray(x, program.dtype), device) for x in program.arguments()
    ]
    start = time.perf_counter()
    results = library.block_until_ready(function(*given))
    first = time.perf_counter() - start
    size = sum(x.nbytes for x in (*given, *library.tree_util.tree_leaves(results)))
    figures = _measured(lambda: function(*given), library.block_until_ready)
    figures |= {"first": first, "bytes": float(size), "operations": program.operations}
    return [Row(program.name, "measured", "", 0.0, figures)]


def _copies(size: int, device: Device) -> list[Row]:
    sent = np.random.default_rng(0).integers(0, 255, size, np.uint8)
    there = _measured(lambda: device.put(sent), lambda x: x)
    lying = device.put(sent)
    back = _measured(lying.to_numpy, lambda x: x)
    costs = {"bytes": float(size), "operations": 0.0}
    return [
        Row(f"copy of {size} bytes to the device", "measured", "", 0.0, there | costs),
        Row(f"copy of {size} bytes from the device", "measured", "", 0.0, back | costs),
    ]


def by_torch(is_tiny: bool) -> Iterator[Item]:
    """Yields the programs by PyTorch."""
    yield Item("PyTorch", _torch_version)
    for program in programs(is_tiny):
        if program.torch is not None:
            yield Item(program.name, functools.partial(_by_torch, program))
    for size in _COPIES:
        yield Item(f"copy of {size} bytes", functools.partial(_copies_by_torch, size))


def _torch() -> Any:
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise NotThereError(str(error)) from error
    if not torch.cuda.is_available():
        raise NotThereError("PyTorch has no GPU here")
    return torch


def _torch_version(device: object) -> list[Row]:
    try:
        torch = _torch()
    except NotThereError as error:
        return [Row("PyTorch", "told", str(error))]
    return [Row("PyTorch", "told", f"{torch.__version__}, {torch.cuda.get_device_name(0)}")]


def _by_torch(program: Timed, device: object) -> list[Row]:
    try:
        torch = _torch()
    except NotThereError:
        return []
    torch.backends.cuda.matmul.allow_tf32 = program.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = program.precision == "tf32"
    kind = getattr(torch, program.dtype)
    given = [torch.from_numpy(x).to("cuda", kind) for x in program.arguments()]
    operation = program.torch
    assert operation is not None
    figures = _measured(lambda: operation(torch, *given), lambda _: torch.cuda.synchronize())
    return [Row(program.name, "measured", "", 0.0, figures)]


def _copies_by_torch(size: int, device: object) -> list[Row]:
    try:
        torch = _torch()
    except NotThereError:
        return []
    sent = torch.from_numpy(np.random.default_rng(0).integers(0, 255, size, np.uint8))
    there = _measured(lambda: sent.to("cuda"), lambda _: torch.cuda.synchronize())
    lying = sent.to("cuda")
    back = _measured(lying.cpu, lambda x: x)
    return [
        Row(f"copy of {size} bytes to the device", "measured", "", 0.0, there),
        Row(f"copy of {size} bytes from the device", "measured", "", 0.0, back),
    ]


def by_jax(is_tiny: bool) -> Iterator[Item]:
    """Yields the programs by JAX."""
    yield Item("JAX", _jax_version)
    for program in programs(is_tiny):
        yield Item(program.name, functools.partial(_by_jax, program))


@functools.cache
def _jax() -> tuple[Any, Any]:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.pop("JAX_PLATFORMS", None)
    try:
        jax = importlib.import_module("jax")
        return jax, jax.devices("gpu")[0]
    except (ImportError, RuntimeError) as error:
        raise NotThereError(str(error)) from error


def _jax_version(device: object) -> list[Row]:
    try:
        jax, found = _jax()
    except NotThereError as error:
        return [Row("JAX", "told", str(error).splitlines()[0])]
    return [Row("JAX", "told", f"{jax.__version__}, {found.device_kind}")]


def _by_jax(program: Timed, device: object) -> list[Row]:
    try:
        jax, gpu = _jax()
    except NotThereError:
        return []
    precision = "tensorfloat32" if program.precision == "tf32" else "highest"
    with jax.default_matmul_precision(precision):
        return _by_jax_api(jax, program, gpu)
