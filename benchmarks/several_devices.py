"""The costs of communication between CPU devices of one process, and of committed arguments.

    python benchmarks/several_devices.py

All figures are medians of interleaved calls. The devices share the cores: compute and communication
are measured apart, the same step with and without its collectives.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import numpy as np

import axir
import axir.numpy as jnp
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.meshes.communication import Collective
from axir.runtime.spmd.engines import ThreadEngine
from axir.sharding import Mesh, NamedSharding
from axir.sharding import PartitionSpec as P

ROUNDS = 60


def medians(calls: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Returns the median of the microseconds of each call, made in turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: 1e6 * statistics.median(found) for name, found in times.items()}


def committed_arguments() -> None:
    """A small compiled function of arguments that are committed, and of others."""
    function = axir.jit(lambda x, y: x + y)
    plain = jnp.ones(8), jnp.ones(8)
    committed = axir.device_put(plain, axir.devices()[0])
    elsewhere = axir.device_put(plain, axir.devices()[1])

    def many(arguments: tuple[axir.Array, axir.Array]) -> Callable[[], None]:
        return lambda: [function(*arguments) for _ in range(100)] and None

    found = medians({"plain": many(plain), "first": many(committed), "second": many(elsewhere)})
    print("A call of two arguments, us:", {name: round(x / 100, 2) for name, x in found.items()})


def sum_over_threads(count: int = 4, size: int = 1 << 18) -> None:
    """A psum of 1 MB over threads, and NumPy's sum of as many arrays."""
    kind = ShapedArray((size,), np.float32)
    collective = Collective("psum", (tuple(range(count)),), kind, kind)
    parts = [np.random.default_rng(n).normal(size=size).astype(np.float32) for n in range(count)]
    engine, meet = ThreadEngine(count), threading.Barrier(count)
    times: list[float] = []

    def run(position: int) -> None:
        for _ in range(ROUNDS):
            meet.wait()
            start = time.perf_counter()
            engine.communicate(collective, position, parts[position])
            if position == 0:
                times.append(time.perf_counter() - start)

    for _ in range(3):
        threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = medians({"np.sum": lambda: np.sum(parts, axis=0)})
        print(
            f"psum of 1 MB over {count} threads: {1e6 * statistics.median(times):.0f} us; NumPy's "
            f"sum of {count} arrays: {found['np.sum']:.0f} us"
        )
        times.clear()


def host_call() -> None:
    """A collective of one device in a compiled program: a host call of 1 MB without copies."""
    mesh = Mesh(np.array(axir.devices()[:2]), ("x",))
    x = axir.device_put(np.ones((2, 1 << 18), np.float32), NamedSharding(mesh, P("x")))

    def swapped(part: axir.Array) -> axir.Array:
        return axir.lax.ppermute(part, "x", [(0, 1), (1, 0)])

    def mapped(function: Callable[[axir.Array], axir.Array]) -> Callable[[], object]:
        program = axir.jit(axir.shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
        return lambda: program(x).block_until_ready()

    calls = {
        "nothing": mapped(lambda part: part),
        "copied": mapped(lambda part: part + 1),
        "exchanged": mapped(swapped),
    }
    found = medians(calls)
    print("1 MB on each of 2 devices, us:", {name: round(us) for name, us in found.items()})


def data_parallel_step() -> None:
    """A step of a network of 1.6 MB on two devices, with and without the sum of its gradients."""
    mesh = Mesh(np.array(axir.devices()[:2]), ("batch",))
    random = np.random.default_rng(0)
    sizes = ((256, 640), (640, 256), (256, 272))
    weights = [random.normal(size=s).astype(np.float32) / 16 for s in sizes]
    print(f"weights: {sum(w.nbytes for w in weights) / 1e6:.2f} MB")
    x = random.normal(size=(512, 256)).astype(np.float32)

    def loss(w: list[axir.Array], x: axir.Array) -> axir.Array:
        hidden = jnp.tanh(jnp.tanh(x @ w[0]) @ w[1]) @ w[2]
        return (hidden**2).mean()

    def step(w: list[axir.Array], x: axir.Array, communicates: bool) -> list[axir.Array]:
        gradients = axir.grad(loss)(w, x)
        if communicates:
            gradients = axir.lax.pmean(gradients, "batch")
        return [p - 0.01 * g for p, g in zip(w, gradients, strict=True)]

    placed = axir.device_put(weights, NamedSharding(mesh, P()))
    batch = axir.device_put(x, NamedSharding(mesh, P("batch")))

    def program(communicates: bool) -> Callable[[], object]:
        part = axir.shard_map(
            lambda w, x: step(w, x, communicates),
            mesh=mesh, in_specs=(P(), P("batch")), out_specs=P(), check_vma=False,
        )  # fmt: skip
        compiled = axir.jit(part)
        return lambda: axir.block_until_ready(compiled(placed, batch))

    whole = axir.jit(lambda w, x: step(w, x, False))
    alone = axir.jit(
        axir.shard_map(
            lambda w: axir.lax.psum([2 * p for p in w], "batch"), mesh=mesh, in_specs=P(),
            out_specs=P(),
        )
    )  # fmt: skip
    found = medians(
        {
            "two devices": program(True),
            "without communication": program(False),
            "communication alone": lambda: axir.block_until_ready(alone(placed)),
            "one device": lambda: axir.block_until_ready(whole(weights, x)),
        }
    )
    print("Data-parallel step, us:", {name: round(us) for name, us in found.items()})
    ratio = found["two devices"] / found["without communication"] - 1
    print(f"communication adds {100 * ratio:.0f} %")


def many_small_sums() -> None:
    """The sum of 40 arrays of 4 KB over two devices, and of one array with as many bytes."""
    mesh = Mesh(np.array(axir.devices()[:2]), ("batch",))

    def total(count: int, size: int) -> Callable[[], object]:
        placed = axir.device_put([np.ones(size, np.float32)] * count, NamedSharding(mesh, P()))
        program = axir.jit(
            axir.shard_map(
                lambda w: axir.lax.psum([2 * x for x in w], "batch"), mesh=mesh, in_specs=P(),
                out_specs=P(),
            )
        )  # fmt: skip
        return lambda: axir.block_until_ready(program(placed))

    found = medians({"40 arrays": total(40, 1 << 10), "one array": total(1, 40 << 10)})
    print("psum of 160 KB, us:", {name: round(us) for name, us in found.items()})


def eager_map() -> None:
    """An eager call of a map over four devices; JAX's own under the same flag, in a process."""
    program = """
import time, statistics, numpy as np
{setup}
from {lib}.sharding import Mesh, PartitionSpec as P
mesh = Mesh(np.array(lib.devices()), ("i",))
body = lambda w, x: lib.lax.psum(lib.numpy.tanh(x @ w).sum(0), "i")
mapped = lib.shard_map(body, mesh=mesh, in_specs=(P(), P("i")), out_specs=P())
w, x = np.ones((16, 16), np.float32), np.ones((32, 16), np.float32)
times = []
for _ in range({rounds}):
    start = time.perf_counter()
    lib.block_until_ready(mapped(w, x))
    times.append(time.perf_counter() - start)
print(round(1e6 * statistics.median(times[2:])))
"""
    found = {}
    for lib, rounds in (("axir", 40), ("jax", 7)):
        text = program.format(lib=lib, rounds=rounds, setup=f"import {lib} as lib")
        environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "4"}
        run = subprocess.run(
            [sys.executable, "-c", text], env=environment, capture_output=True, text=True
        )
        found[lib] = run.stdout.strip() or run.stderr.strip().splitlines()[-1]
    print("An eager shard_map over 4 devices, us:", found)


if __name__ == "__main__":
    axir.config.update("axir_num_cpu_devices", 4)
    committed_arguments()
    sum_over_threads()
    host_call()
    many_small_sums()
    eager_map()
    for _ in range(3):
        data_parallel_step()
