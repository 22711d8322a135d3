"""Jobs of two processes, started by `mpirun` or one by one, compute the same and end together."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.jobs import KINDS, job

HERE = Path(__file__).parent


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
