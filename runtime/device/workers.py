"""The threads that compute programs on the CPU, and the number of devices that the CPU is.

Here: how many threads there are and on which cores, and the options that make several devices.
Elsewhere: whether a program takes threads (`runtime/calls/driver_trial.py`).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable

from iree import runtime as iree_runtime

from axir.dialect.core.config import config
from axir.dialect.core.option_kinds import ConfigError
from axir.dialect.core.options import OPTIONS

_TASKS = "/proc/self/task"
_SECONDS_TO_START = 5.0
# Bytes of a worker's stack, as many as the first thread of a process has: a long kernel spills
# registers there, and IREE's 128 KB have ended processes. Only the used part takes memory.
_STACK = 8 << 20


def thread_count() -> int:
    """Returns the number of threads that compute a program on the CPU.

    It is the option `axir_num_threads`, or else one for each core of `axir_cpu_ids`, or of this
    process.
    """
    if config.axir_num_threads is not None:
        return config.axir_num_threads
    return len(cpu_ids()) or core_count()


def core_count() -> int:
    """Returns how many cores this process may use."""
    return len(_allowed()) or os.cpu_count() or 1


def cpu_ids() -> tuple[int, ...]:
    """Returns the cores that the option `axir_cpu_ids` names, in its order; none if it is not set.

    Raises:
        ConfigError: it is no list of cores, or names one that this process may not use.
    """
    text = config.axir_cpu_ids
    if text is None:
        return ()
    parts = [re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part) for part in text.split(",")]
    ids = [
        number
        for part in parts
        if part is not None
        for number in range(int(part[1]), int(part[2] or part[1]) + 1)
    ]
    if None in parts or len(set(ids)) != len(ids) or not ids:
        raise ConfigError(
            f"axir_cpu_ids={text!r} is no list of different cores. "
            "Write numbers and ranges, such as '0,2-5'."
        )
    allowed = _allowed()
    if not allowed:
        raise ConfigError("axir_cpu_ids: this system does not let a program choose its cores.")
    absent = [number for number in ids if number not in allowed]
    if absent:
        raise ConfigError(
            f"axir_cpu_ids={text!r} names core {absent[0]}, but this process may use "
            f"{', '.join(map(str, sorted(allowed)))} only."
        )
    return tuple(ids)


def with_workers(
    threads: int, open_device: Callable[[], iree_runtime.HalDevice]
) -> iree_runtime.HalDevice:
    """Returns a device with so many threads, each on a separate core if there are enough.

    IREE pins workers to cores if it chooses these itself, up to a limit; a fixed number of workers
    it leaves to the system, which may keep two of them on one core. Where the process may not use
    all cores, or the option names some, they are pinned here. More threads than cores are left to
    the system.
    """
    chosen = cpu_ids() or tuple(sorted(_allowed()))
    iree_runtime.flags.parse_flags(f"--task_worker_stack_size={_STACK}")
    if not config.axir_cpu_ids and core_count() == os.cpu_count() and threads <= core_count():
        iree_runtime.flags.parse_flags(
            "--task_topology_group_count=0", f"--task_topology_max_group_count={threads}"
        )
        return open_device()
    before = worker_threads()
    iree_runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
    device = open_device()
    if chosen and (threads <= len(chosen) or config.axir_cpu_ids):
        _pin(before, threads, chosen)
    return device


def _allowed() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def worker_threads() -> set[int]:
    """Returns the identifiers of the threads that IREE has made for computing."""
    found = set()
    for task in os.listdir(_TASKS) if os.path.isdir(_TASKS) else ():
        try:
            with open(f"{_TASKS}/{task}/comm") as file:
                is_worker = file.read().startswith("iree-worker")
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
        if is_worker:
            found.add(int(task))
    return found


def _pin(before: set[int], threads: int, chosen: tuple[int, ...]) -> None:
    """Pins the workers made since `before` to cores, in turn; late ones are pinned later."""
    end = time.monotonic() + _SECONDS_TO_START
    new = sorted(worker_threads() - before)
    while len(new) < threads and time.monotonic() < end:
        time.sleep(0.001)
        new = sorted(worker_threads() - before)
    for place, task in enumerate(new):
        os.sched_setaffinity(task, {chosen[place % len(chosen)]})


_FLAG = re.compile(r"--xla_force_host_platform_device_count=(\S+)")


def cpu_device_count() -> int:
    """Returns how many devices the CPU is in this process."""
    return config.jax_num_cpu_devices or _count_of_flags()


def _count_of_flags() -> int:
    """Returns the number of CPU devices in XLA's flags, which programs of JAX set.

    Raises:
        ConfigError: the value is not a number of devices.
    """
    found = _FLAG.findall(os.environ.get("XLA_FLAGS", ""))
    if not found:
        return 1
    option = OPTIONS["jax_num_cpu_devices"]
    return option.parse(found[-1], "XLA_FLAGS=--xla_force_host_platform_device_count")
