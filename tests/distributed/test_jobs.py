"""Jobs of two processes, started by `mpirun` or one by one, compute the same and end together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from support.gpus import gpu_or_skip
from support.jobs import KINDS, has_mpi, job

from axir.dialect.core.config import config

HERE = Path(__file__).parent
Said = tuple[list[int], str]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Said]]:
    """How jobs have ended, all of which are under way at the same time: they mostly wait."""
    futures: dict[tuple[str, str], Future[Said]] = {}
    with ThreadPoolExecutor(5) as pool:
        for kind in ("sockets", "mpi") if has_mpi else ("sockets",):
            folder = tmp_path_factory.mktemp(kind)
            futures[kind, "program"] = pool.submit(job, kind, HERE / "program.py", folder)
            futures[kind, "kill"] = pool.submit(job, kind, HERE / "losses.py", "kill")
        futures["sockets", "raise"] = pool.submit(job, "sockets", HERE / "losses.py", "raise")
        yield lambda *key: futures[key].result()


@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_compute_together(kind: str, ended: Callable[..., Said]) -> None:
    codes, said = ended(kind, "program")
    for index in range(2):
        assert f"process {index} is content" in said, said
    # By MPI a process that has failed does not wait for the others, which then may end unheard.
    told = [index for index in range(2) if f"process {index} was told" in said]
    assert told == [0, 1] or (kind == "mpi" and told), said
    assert all(code == 0 for code in codes) or kind == "mpi", said


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_process_ends_the_job(kind: str, ended: Callable[..., Said]) -> None:
    codes, said = ended(kind, "kill")
    assert codes[0] not in (0, None), said
    if kind == "sockets":
        assert "ProcessLostError: Process 1 (pid " in said, said
        assert "was lost: its connection has ended" in said
    else:  # mpirun names it, and ends the others before these can say much
        assert "Killed (signal 9)" in said or "was lost" in said, said


def test_a_failed_process_ends_the_job(ended: Callable[..., Said]) -> None:
    codes, said = ended("sockets", "raise")
    assert 0 not in codes, said
    assert "has failed: ValueError: a mistake of mine" in said, said


@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_with_a_gpu_each(kind: str) -> None:
    config.update("jax_platforms", None)
    gpu = gpu_or_skip()
    codes, said = job(kind, HERE / "on_gpus.py", gpu.platform)
    assert set(codes) == {0}, said
    assert "process 0 is content" in said
    assert "process 1 is content" in said
