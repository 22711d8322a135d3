"""Jobs of two processes, started by `mpirun` or one by one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MPIRUN = Path(sys.executable).parent / "mpirun"
has_mpi = find_spec("mpi4py") is not None and MPIRUN.exists()
needs_mpi = pytest.mark.skipif(
    not has_mpi,
    reason="mpi4py and mpich are not installed: pip install 'axir[distributed]'",
)
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PYTEST_", "AXIR_", "JAX_")) and name != "XLA_FLAGS"
}
# Open MPI refuses root, and more processes than cores, without these options; MPICH does not.
ENVIRONMENT |= {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
KINDS = ["sockets", pytest.param("mpi", marks=needs_mpi)]


def job(
    kind: str, script: Path, *arguments: object, variables: dict[str, str] | None = None
) -> tuple[list[int], str]:
    """Runs two processes of a program; returns their exit codes and their output."""
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
            env={**ENVIRONMENT, **(variables or {})},
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
