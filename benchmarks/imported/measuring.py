"""The contenders run a model in turn; their processes have their turn at a higher priority."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness.workers import Worker, WorkerError
from benchmarks.imported.contenders import Loaded
from benchmarks.imported.rows import Row, Timing

# Spinning threads of other libraries must not disturb the next measurement.
_PAUSE = 0.01
_MAX_SECONDS = 20.0
TOLERANCE = 1e-4


def measure(row: Row, workers: Mapping[str, Worker], folder: Path, rounds: int) -> None:
    """Adds to a row what each of the ways takes, in turn."""
    row.load = os.getloadavg()[0]
    loaded: dict[str, Loaded] = {}
    for way, worker in workers.items():
        try:
            told = worker.ask("load", row.model, row.batch, folder)
        except WorkerError as error:
            row.failures[way] = str(error)
            continue
        if told.error <= TOLERANCE:
            loaded[way] = told
        else:
            row.failures[way] = f"differs by {told.error:.2g} of the largest value"
    calls, processor = _in_turn(loaded, workers, rounds)
    for way, told in loaded.items():
        times = sorted(calls[way])
        row.timings[way] = Timing(
            statistics.median(times),
            times[0],
            times[min(len(times) - 1, int(0.99 * len(times)))],
            statistics.median(processor[way]),
            told.loading,
            told.first,
            told.error,
        )


def _in_turn(
    loaded: Mapping[str, Loaded], workers: Mapping[str, Worker], rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Returns the seconds of each way's calls, and of all threads, a call, in each round."""
    calls: dict[str, list[float]] = {way: [] for way in loaded}
    processor: dict[str, list[float]] = {way: [] for way in loaded}
    start = time.perf_counter()
    for index in range(rounds):
        order = list(loaded)
        shift = index % max(1, len(order))
        for way in order[shift:] + order[:shift]:
            count = loaded[way].calls
            with _prior(workers[way]):
                times, used = workers[way].ask("time", count)
            calls[way] += times
            processor[way].append(used / count)
            time.sleep(_PAUSE)
        if index >= 2 and time.perf_counter() - start > _MAX_SECONDS:
            break
    return calls, processor


@contextmanager
def _prior(worker: Worker) -> Iterator[None]:
    """Gives a process and its threads priority, where this one may, as it has itself."""
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    wanted = int(os.environ.get("BENCHMARK_PRIORITY", mine))
    if wanted == mine:
        yield
        return
    processes = [worker.process_id, *worker.ask("processes")]
    threads = [int(each) for one in processes for each in os.listdir(f"/proc/{one}/task")]
    _set(threads, wanted)
    try:
        yield
    finally:
        _set(threads, mine)


def _set(threads: list[int], priority: int) -> None:
    for thread in threads:
        try:
            os.setpriority(os.PRIO_PROCESS, thread, priority)
        except ProcessLookupError:  # it has ended meanwhile
            continue
