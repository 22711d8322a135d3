"""The cost of sums over all processes by MPI: axir's sums against mpi4py's.

    mpirun -n 2 python benchmarks/all_reduce.py

Both are called in turns, and a barrier stands before each call. Printed are medians of the longest
time of any process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import axir
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.meshes.communication import Collective
from axir.runtime.processes.transports import world
from axir.runtime.spmd.process_engine import engine_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=51)
    options = parser.parse_args()
    axir.distributed.initialize()
    communicator = world()
    position, count = axir.process_index(), axir.process_count()
    if position == 0:
        print(f"{count} processes\n{'bytes':>10} {'mpi4py us':>10} {'axir us':>10} {'ratio':>6}")
    for size in (1 << 10, 1 << 16, 1 << 20, 1 << 24):
        x = np.ones(size // 4, np.float32)
        into = np.empty_like(x)
        kind = ShapedArray(x.shape, x.dtype)
        step = Collective("psum", (tuple(range(count)),), kind, kind)
        engine = engine_of(axir.devices())
        calls: dict[str, Callable[[], object]] = {
            "mpi4py": lambda x=x, into=into: communicator.Allreduce(x, into),
            "axir": lambda x=x, step=step, e=engine: e.communicate(step, position, x),
        }
        times: dict[str, list[float]] = {name: [] for name in calls}
        for repetition in range(options.repetitions + 3):
            for name, call in calls.items():
                communicator.Barrier()
                began = time.perf_counter()
                call()
                slowest = max(communicator.allgather(time.perf_counter() - began))
                if repetition >= 3:
                    times[name].append(slowest * 1e6)
        theirs, ours = (float(np.median(times[name])) for name in ("mpi4py", "axir"))
        if position == 0:
            print(f"{size:>10} {theirs:>10.0f} {ours:>10.0f} {ours / theirs:>6.2f}", flush=True)


if __name__ == "__main__":
    main()
