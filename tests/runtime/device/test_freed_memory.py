"""Memory that calls have freed: kept for the next call, unless the user's settings differ."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np
import axir, axir.numpy as jnp
from axir.runtime.device.process_state import keep_freed_memory

axir.jit(jnp.sin)(1.0).block_until_ready()
for _ in range(4):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(2**18) for _ in range(40)]  # of 2 MiB, that is 512 pages
    del arrays
print(keep_freed_memory(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _run(**variables: str) -> tuple[bool, int]:
    environment = {**os.environ, "AXIR_NUM_THREADS": "1", **variables}
    run = subprocess.run(
        [sys.executable, "-c", FAULTS], capture_output=True, text=True, env=environment, check=True
    )
    is_kept, faults = run.stdout.split()
    return is_kept == "True", int(faults)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's limits: runs on Linux")
def test_memory_comes_from_what_was_freed() -> None:
    assert "MALLOC_TRIM_THRESHOLD_" not in os.environ
    is_kept, faults = _run()
    _, faults_of_glibc = _run(AXIR_KEPT_MEMORY="0")
    assert is_kept
    assert 100 * faults < faults_of_glibc


@pytest.mark.parametrize("variable", ["AXIR_KEPT_MEMORY", "MALLOC_TRIM_THRESHOLD_"])
def test_who_sets_limits_of_their_own_has_them(variable: str) -> None:
    is_kept, _ = _run(**{variable: "0"})
    assert not is_kept
