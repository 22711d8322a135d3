"""How many threads compute a program on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.config import ConfigError, config
from axir.runtime.device.devices import devices, thread_count

COUNT = """
import os, axir, axir.numpy as jnp
f = axir.jit(lambda x: x @ x)
x = jnp.ones((600, 600))
for _ in range(20): y = f(x)
y.block_until_ready()
names = [open(f"/proc/self/task/{t}/comm").read() for t in os.listdir("/proc/self/task")]
print(sum(name.startswith("iree-worker") for name in names))
"""


def workers(count, driver, cache):
    environment = {
        **os.environ,
        "AXIR_NUM_THREADS": str(count),
        "AXIR_DRIVER": driver,
        "AXIR_CACHE_DIR": str(cache),
    }
    run = subprocess.run(
        [sys.executable, "-c", COUNT], capture_output=True, text=True, env=environment
    )
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads cannot be counted")
def test_the_environment_says_how_many_workers_there_are(tmp_path):
    assert [workers(n, "local-task", tmp_path) for n in (1, 3)] == [1, 3]
    assert workers(1, "auto", tmp_path) == 0  # the calling thread computes


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


def test_there_is_at_least_one():
    with pytest.raises(ConfigError, match="an integer, at least 1"):
        config.update("axir_num_threads", 0)
