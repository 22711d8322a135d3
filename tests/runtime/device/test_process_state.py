"""State of the process: freed memory, forks, library files."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

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


PRELUDE = """
import os, sys
import numpy as np
from axir.dialect.core.config import config
from axir.runtime import Program, Target, compile_module, devices
text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{ "
text += "%0 = stablehlo.OP %x, %x : tensor<2xf32> return %0 : tensor<2xf32> }}"
config.update("axir_driver", "{driver}")
device = devices()[0]
def load(op):
    return Program(compile_module(text.replace("OP", op), Target()), device).function()
"""


def run_python(
    body: str, driver: str = "auto", **environment: str
) -> subprocess.CompletedProcess[str]:
    code = PRELUDE.format(driver=driver) + textwrap.dedent(body)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False,
        env=os.environ | environment,
    )  # fmt: skip


@pytest.mark.parametrize("driver", ["local-sync", "local-task"])
def test_a_process_ends_without_a_word(driver):
    result = run_python(
        """
        class Cycle: pass
        cycle = Cycle()
        cycle.self = cycle
        cycle.function = load("add")
        cycle.buffer = device.put(np.ones(2, np.float32))
        (cycle.result,) = cycle.function([cycle.buffer])
        cycle.array = cycle.result.to_numpy()
        print(cycle.array.tolist())
        sys.keep = cycle
        """,
        driver,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "[2.0, 2.0]\n", "")


@pytest.mark.parametrize("driver", ["local-sync", "local-task"])
def test_a_forked_child_computes(driver):
    result = run_python(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a threaded process
        function = load("add")
        buffer = device.put(np.array([1, 2], np.float32))
        (before,) = function([buffer])
        child = os.fork()
        if child == 0:
            (old,) = function([before])
            (new,) = load("subtract")([buffer])
            print(old.to_numpy().tolist(), new.to_numpy().tolist(), flush=True)
            sys.exit(0)
        print(os.waitpid(child, 0)[1], function([before])[0].to_numpy().tolist())
        """,
        driver,
    )
    assert result.stderr == ""
    assert result.stdout == "[4.0, 8.0] [0.0, 0.0]\n0 [4.0, 8.0]\n"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="lists files of a Linux process")
def test_loaded_programs_keep_no_files(tmp_path):
    result = run_python(
        """
        import resource
        binary = compile_module(text.replace("OP", "add"), Target())
        Program(binary, device).function()([device.put(np.ones(2, np.float32))])
        before = len(os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (before + 20, before + 20))
        programs = [Program(binary, device).function() for _ in range(40)]
        for program in programs:
            (result,) = program([device.put(np.ones(2, np.float32))])
        print(result.to_numpy().tolist(), len(os.listdir("/proc/self/fd")) - before)
        """,
        TMPDIR=str(tmp_path),
    )
    assert result.stderr == ""
    assert result.stdout == "[2.0, 2.0] 0\n"
    assert list(tmp_path.iterdir()) == []
