"""Times of programs on a GPU, compared with JAX, PyTorch, or the roofline of the GPU.

    make bench-gpu
    python benchmarks/gpu.py --platform vulkan --tiny copy softmax

The same function runs in axir and in JAX, if JAX supports the GPU; otherwise PyTorch's operation is
measured, if it exists. Without either, a program is compared with the roofline: the time to move
its bytes at the speed of the fastest program, or to do its operations at the speed of the fastest
program of its type. Both speeds are measured here. Elsewhere: benchmarks on the CPU
(`__main__.py`).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from rich.console import Console
from rich.table import Table

import axir
from axir.runtime import Device, DeviceNotFoundError

# Arrays, of a library's module and its NumPy.
Function = Callable[..., Any]
_LEAST_SECONDS = 1e-9


@dataclass(frozen=True)
class GpuProgram:
    """A program with its bytes and operations on a GPU.

    Attributes:
        build: Makes the function, of a library with JAX's API and its `numpy`.
        shapes: Those of its arguments, for an extent.
        extents: A large one and a tiny one.
        operations: How many floating-point operations it does, for an extent.
        dtype: The type of its arguments.
        torch: The same by PyTorch, which is passed first.
    """

    build: Callable[[Any, Any], Function]
    shapes: Callable[[int], Sequence[tuple[int, ...]]]
    extents: tuple[int, int]
    operations: Callable[[int], float] = field(default=lambda n: 0.0)
    dtype: str = "float32"
    torch: Callable[..., Any] | None = None

    def arguments(self, is_tiny: bool) -> list[np.ndarray]:
        """Returns standard normal numbers, as float32."""
        generator = np.random.default_rng(0)
        shapes = self.shapes(self.extents[is_tiny])
        return [generator.standard_normal(shape, np.float32) for shape in shapes]


def _product(dtype: str) -> GpuProgram:
    return GpuProgram(
        lambda jax, jnp: lambda x, y: x @ y,
        lambda n: [(n, n), (n, n)],
        (4096, 64),
        lambda n: 2.0 * n**3,
        dtype,
        lambda torch, x, y: x @ y,
    )


def _convolution(jax: Any, jnp: Any) -> Function:
    numbers = ("NHWC", "HWIO", "NHWC")

    def convolve(x: Any, kernel: Any) -> Any:
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers)

    return convolve


def _attention(jax: Any, jnp: Any) -> Function:
    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = q @ jnp.swapaxes(k, -1, -2) / np.float32(8)
        return jax.nn.softmax(scores.astype(np.float32)).astype(v.dtype) @ v

    return attend


def _step(jax: Any, jnp: Any) -> Function:
    def loss(first: Any, second: Any, x: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ first) @ second - x) ** 2)

    def step(first: Any, second: Any, x: Any) -> Any:
        slopes = jax.grad(loss, (0, 1))(first, second, x)
        return first - 0.1 * slopes[0], second - 0.1 * slopes[1]

    return step


PROGRAMS: dict[str, GpuProgram] = {
    "copy": GpuProgram(
        lambda jax, jnp: lambda x: x + 1,
        lambda n: [(n,)],
        (1 << 26, 1 << 12),
        torch=lambda torch, x: x + 1,
    ),
    "product_f32": _product("float32"),
    "product_f16": _product("float16"),
    "product_bf16": _product("bfloat16"),
    "softmax": GpuProgram(
        lambda jax, jnp: jax.nn.softmax,
        lambda n: [(n, n)],
        (8192, 32),
        torch=lambda torch, x: torch.softmax(x, -1),
    ),
    "sum_of_columns": GpuProgram(
        lambda jax, jnp: lambda x: jnp.sum(x, 0),
        lambda n: [(n, n)],
        (8192, 32),
        torch=lambda torch, x: x.sum(0),
    ),
    "sort": GpuProgram(
        lambda jax, jnp: jnp.sort,
        lambda n: [(n,)],
        (1 << 20, 100),
        torch=lambda torch, x: torch.sort(x)[0],
    ),
    "convolution_f16": GpuProgram(
        _convolution,
        lambda n: [(n, 56, 56, 64), (3, 3, 64, 64)],
        (32, 1),
        lambda n: 2.0 * n * 56 * 56 * 64 * 64 * 9,
        "float16",
    ),
    "attention_f16": GpuProgram(
        _attention,
        lambda n: [(8, 8, n, 64)] * 3,
        (1024, 16),
        lambda n: 4.0 * 64 * n * n * 64,
        "float16",
        lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v),
    ),
    "training_step": GpuProgram(
        _step,
        lambda n: [(n, n), (n, n), (256, n)],
        (2048, 32),
        lambda n: 6.0 * 2 * 256 * n * n,
    ),
}


@dataclass(frozen=True)
class Row:
    """The measurements of a program; `bytes` counts its arguments and results."""

    name: str
    seconds: float
    other: float | None
    bytes: int
    operations: float


def seconds_of(call: Callable[[], Any], finish: Callable[[Any], Any], rounds: int) -> float:
    """Returns the median time of calls that are waited for; the first ones do not count."""
    times = []
    for _ in range(rounds + 2):
        start = time.perf_counter()
        finish(call())
        times.append(time.perf_counter() - start)
    return max(statistics.median(times[2:]), _LEAST_SECONDS)


def _in_library(
    library: Any, device: Any, program: GpuProgram, values: Sequence[np.ndarray], rounds: int
) -> tuple[float, int]:
    """Returns the time of a program in a library with JAX's API, and the bytes that it moves."""
    numpy = importlib.import_module(f"{library.__name__}.numpy")
    function = library.jit(program.build(library, numpy))
    given = [library.device_put(numpy.asarray(x, program.dtype), device) for x in values]
    results = library.tree_util.tree_leaves(function(*given))
    size = sum(x.nbytes for x in (*given, *results))
    return seconds_of(lambda: function(*given), library.block_until_ready, rounds), size


def _jax_gpu() -> tuple[Any, Any] | None:
    """Returns JAX and its GPU, if it has one."""
    if importlib.util.find_spec("jax") is None:
        return None
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # axir needs some, too
    jax = importlib.import_module("jax")
    try:
        return jax, jax.devices("gpu")[0]
    except RuntimeError:
        return None


def _torch_seconds(program: GpuProgram, values: Sequence[np.ndarray], rounds: int) -> float | None:
    """Returns the time of PyTorch's operation, if it is installed with a GPU and has one."""
    if program.torch is None or importlib.util.find_spec("torch") is None:
        return None
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        return None
    kind = getattr(torch, program.dtype)
    given = [torch.from_numpy(x).to("cuda", kind) for x in values]
    operation = program.torch
    return seconds_of(lambda: operation(torch, *given), lambda _: torch.cuda.synchronize(), rounds)


def measure(device: Device, names: Sequence[str], is_tiny: bool, rounds: int) -> list[Row]:
    """Returns the measurements of programs on a device."""
    jax = None if device.platform != "cuda" else _jax_gpu()
    rows = []
    for name in names:
        program = PROGRAMS[name]
        values = program.arguments(is_tiny)
        seconds, size = _in_library(axir, device, program, values, rounds)
        other: float | None = None
        if jax is not None:
            other = _in_library(*jax, program, values, rounds)[0]
        elif device.platform == "cuda":
            other = _torch_seconds(program, values, rounds)
        operations = program.operations(program.extents[is_tiny])
        rows.append(Row(name, seconds, other, size, operations))
    return rows


def rooflines(rows: Sequence[Row]) -> Mapping[str, float]:
    """Returns the seconds that each program needs at least, going by the fastest ones.

    >>> rows = [Row("copy", 1.0, None, 100, 0.0), Row("sort", 4.0, None, 200, 0.0)]
    >>> rooflines(rows)["sort"]
    2.0
    """
    bandwidth = max(row.bytes / row.seconds for row in rows)
    fastest: dict[str, float] = {}
    for row in rows:
        if row.operations:
            kind = PROGRAMS[row.name].dtype
            fastest[kind] = max(fastest.get(kind, 0.0), row.operations / row.seconds)
    return {
        row.name: max(
            row.bytes / bandwidth,
            row.operations / fastest[PROGRAMS[row.name].dtype] if row.operations else 0.0,
        )
        for row in rows
    }


def table_of(rows: Sequence[Row], device: Device) -> Table:
    """Returns the measurements as a readable table."""
    table = Table("program", "us", "GB/s", "GFLOP/s", "other us", "ratio", "of roofline")
    table.title = f"{device}: {device.device_kind}"
    least = rooflines(rows)
    for row in rows:
        table.add_row(
            row.name,
            f"{1e6 * row.seconds:,.1f}",
            f"{1e-9 * row.bytes / row.seconds:,.1f}",
            f"{1e-9 * row.operations / row.seconds:,.1f}" if row.operations else "",
            "" if row.other is None else f"{1e6 * row.other:,.1f}",
            "" if row.other is None else f"{row.seconds / row.other:.2f}",
            f"{least[row.name] / row.seconds:.2f}",
        )
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the programs that the command line names."""
    parser = argparse.ArgumentParser(prog="benchmarks/gpu.py", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help=f"programs ({', '.join(PROGRAMS)}); all by default"
    )
    parser.add_argument("--platform", choices=("cuda", "vulkan"), help="CUDA, else Vulkan")
    parser.add_argument("--tiny", action="store_true", help="small arrays, for software devices")
    parser.add_argument("--rounds", type=int, default=20, help="calls of each program (20)")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in PROGRAMS]
    if unknown:
        parser.error(f"no program is named {unknown[0]}")
    axir.config.update("jax_platforms", None)
    reasons = []
    for platform in (options.platform,) if options.platform else ("cuda", "vulkan"):
        try:
            device = axir.devices(platform)[0]
        except DeviceNotFoundError as error:
            reasons.append(error.message)
            continue
        rows = measure(device, options.names or list(PROGRAMS), options.tiny, options.rounds)
        Console(width=None if sys.stdout.isatty() else 120).print(table_of(rows, device))
        return 0
    print("\n".join(reasons), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
