"""Jobs of two processes, started by `mpirun` or one by one, compute the same and end together."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MPIRUN = Path(sys.executable).parent / "mpirun"
needs_mpi = pytest.mark.skipif(
    find_spec("mpi4py") is None or not MPIRUN.exists(),
    reason="mpi4py and mpich are not installed: pip install 'axir[distributed]'",
)
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PYTEST_", "AXIR_", "JAX_")) and name != "XLA_FLAGS"
}
KINDS = ["sockets", pytest.param("mpi", marks=needs_mpi)]


def job(kind: str, script: Path, *arguments: object) -> tuple[list[int], str]:
    """Runs two processes of a program; returns how they ended, and what they have said."""
    command = [sys.executable, script, *map(str, arguments)]
    if kind == "mpi":
        commands = [[MPIRUN, "-n", "2", *command]]
    else:
        with socket.socket() as unused:
            unused.bind(("localhost", 0))
            place = f"localhost:{unused.getsockname()[1]}"
        commands = [[*command, place, str(index)] for index in range(2)]
    running = [
        subprocess.Popen(
            each,
            cwd=ROOT,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for each in commands
    ]
    try:
        said = [process.communicate(timeout=280)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    return [process.returncode for process in running], "\n".join(said)


@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_compute_together(kind: str, tmp_path: Path) -> None:
    codes, said = job(kind, HERE / "program.py", tmp_path)
    for index in range(2):
        assert f"process {index} is content" in said, said
        assert f"process {index} was told" in said, said
    # By MPI a process that has failed does not wait for the others.
    assert all(code == 0 for code in codes) or kind == "mpi", said


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_process_ends_the_job(kind: str) -> None:
    codes, said = job(kind, HERE / "losses.py", "kill")
    assert codes[0] not in (0, None), said
    if kind == "sockets":
        assert "ProcessLostError: Process 1 (pid " in said, said
        assert "was lost: its connection has ended" in said
    else:  # mpirun names it, and ends the others before these can say much
        assert "Killed (signal 9)" in said or "was lost" in said, said


def test_a_failed_process_ends_the_job() -> None:
    codes, said = job("sockets", HERE / "losses.py", "raise")
    assert 0 not in codes, said
    assert "has failed: ValueError: a mistake of mine" in said, said
