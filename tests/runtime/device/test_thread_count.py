"""How many threads compute a program on the CPU."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.config import ConfigError, config
from axir.runtime.device import workers
from axir.runtime.device.devices import devices
from axir.runtime.device.workers import core_count, cpu_ids, thread_count, worker_threads

# Whose programs run on threads, from the first call on.
BY_IREE = {"AXIR_COMPILER": "iree"}
COUNT = """
import os, axir, axir.numpy as jnp
f = axir.jit(lambda x: x @ x)
x = jnp.ones((600, 600))
for _ in range(20): y = f(x)
y.block_until_ready()
from axir.runtime.device.workers import worker_threads
print(len(worker_threads()))
"""

# Bytes of the mapping that holds the stack pointer of each worker that waits.
STACKS = """
import os, axir, axir.numpy as jnp
axir.jit(jnp.sin)(jnp.ones((600, 600))).block_until_ready()
from axir.runtime.device.workers import worker_threads
mappings = [line.split()[0].split("-") for line in open("/proc/self/maps")]
for thread in worker_threads():
    state = open(f"/proc/self/task/{thread}/syscall").read().split()
    for start, end in mappings:
        if len(state) > 2 and int(start, 16) <= int(state[-2], 16) < int(end, 16):
            print(int(end, 16) - int(start, 16))
"""


def count_workers(count, driver, cache, program=COUNT):
    environment = {
        **os.environ,
        "AXIR_NUM_THREADS": str(count),
        "AXIR_DRIVER": driver,
        **BY_IREE,
        "AXIR_CACHE_DIR": str(cache),
    }
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert run.returncode == 0, run.stderr
    return [int(line) for line in run.stdout.splitlines()]


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads cannot be counted")
def test_the_environment_says_how_many_workers_there_are(tmp_path):
    assert [count_workers(n, "local-task", tmp_path) for n in (1, 3)] == [[1], [3]]
    assert count_workers(1, "auto", tmp_path) == [0]  # the calling thread computes


@pytest.mark.skipif(not os.path.exists("/proc/self/syscall"), reason="stacks cannot be found")
def test_stacks_are_as_large_as_that_of_the_first_thread(tmp_path):
    sizes = count_workers(3, "local-task", tmp_path, STACKS)
    assert 1 <= len(sizes) <= 3
    assert min(sizes) >= 8_000_000


class Ended(io.StringIO):
    """The file of a thread that ends after it was opened, as Linux answers."""

    def read(self, size=-1):
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))


def test_threads_that_end_meanwhile_do_not_matter(tmp_path, monkeypatch):
    files = {"1": io.StringIO("python"), "2": Ended(), "3": io.StringIO("iree-worker-0")}
    for name in files:
        (tmp_path / name).mkdir()
    monkeypatch.setattr(workers, "_TASKS", str(tmp_path))
    monkeypatch.setattr(workers, "open", lambda path: files[path.split("/")[-2]], raising=False)
    assert worker_threads() == {3}


def test_by_default_there_is_a_thread_for_each_core_of_the_process():
    assert thread_count() == len(os.sched_getaffinity(0))
    with config(axir_num_threads=5):
        assert thread_count() == 5


def test_the_number_can_change():
    x = jnp.arange(10000.0)
    config.update("axir_driver", "local-task")
    f = axir.jit(lambda x: (x * 2).sum())
    device = devices("cpu")[0]
    for n in (1, 2, 3, 1):
        config.update("axir_num_threads", n)
        np.testing.assert_allclose(f(x), 99990000.0)
        assert device.handle("local-task", n) is device.handle("local-task", n)
    assert device.handle("local-task", 2) is not device.handle("local-task", 3)


WHERE = """
import os, axir, axir.numpy as jnp
f = axir.jit(lambda x: x @ x)
x = jnp.ones((600, 600))
f(x).block_until_ready()
from axir.runtime.device.workers import worker_threads
print([sorted(os.sched_getaffinity(t)) for t in sorted(worker_threads())])
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads cannot be listed")
@pytest.mark.parametrize(("ids", "count"), [("LAST", None), ("ALL", None), ("LAST", "2")])
def test_threads_are_pinned_to_the_cores_that_the_option_names(ids, count, tmp_path):
    cores = sorted(os.sched_getaffinity(0))
    chosen = cores[-1:] if ids == "LAST" else cores[::-1]
    environment = {
        **os.environ,
        "AXIR_CPU_IDS": ",".join(map(str, chosen)),
        "AXIR_DRIVER": "local-task",
        **BY_IREE,
        "AXIR_CACHE_DIR": str(tmp_path),
        **({"AXIR_NUM_THREADS": count} if count else {}),
    }
    run = subprocess.run(
        [sys.executable, "-c", WHERE], capture_output=True, text=True, env=environment
    )
    assert run.returncode == 0, run.stderr
    threads = int(count) if count else len(chosen)
    assert run.stdout.strip() == str([[chosen[i % len(chosen)]] for i in range(threads)])


def test_a_process_of_some_cores_pins_its_threads_to_these(tmp_path):
    core = max(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{core}])\n" + WHERE
    environment = {
        **os.environ,
        "AXIR_DRIVER": "local-task",
        **BY_IREE,
        "AXIR_CACHE_DIR": str(tmp_path),
    }
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == str([[core]])


def test_cores_are_numbers_and_ranges():
    cores = sorted(os.sched_getaffinity(0))
    with config(axir_cpu_ids=f" {cores[0]} "):
        assert cpu_ids() == (cores[0],)
        assert thread_count() == 1
    whole = f"{cores[0]}-{cores[-1]}"
    if cores == list(range(cores[0], cores[-1] + 1)):
        with config(axir_cpu_ids=whole):
            assert cpu_ids() == tuple(cores)
    with config(axir_cpu_ids=None):
        assert cpu_ids() == ()
        assert thread_count() == core_count() == len(cores)


@pytest.mark.parametrize("text", ["", "a", "1;2", "0,0", "3-2", "-1"])
def test_other_text_is_no_list_of_cores(text):
    with config(axir_cpu_ids=text), pytest.raises(ConfigError, match="different cores") as error:
        thread_count()
    assert "'0,2-5'" in str(error.value)


def test_cores_that_the_process_may_not_use_are_refused():
    absent = max(os.sched_getaffinity(0)) + 1
    with config(axir_cpu_ids=f"0,{absent}"), pytest.raises(ConfigError) as error:
        cpu_ids()
    assert f"names core {absent}, but this process may use" in str(error.value)


def test_there_is_at_least_one():
    with pytest.raises(ConfigError, match="an integer, at least 1"):
        config.update("axir_num_threads", 0)
