"""The report of proofs in a run of the tests, and the tests that fail for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
COMPILER = """
from axir.runtime.compiler.invocation.invoker import Invoker
from axir.runtime.compiler.invocation.stream_passes import UNPROVEN, WrongMemoryError

def compile(self, source, flags, report, option=True):
    if source == b"wrong":
        raise WrongMemoryError("a_kernel reads something else")
    if source == b"new":
        report(UNPROVEN + "a thing of the future")
    return None if source == b"rejected" else b"made"

Invoker.compile = compile
"""
PROGRAMS = """
import pytest
from axir.runtime.compiler.invocation.invoker import Invoker

def run(*sources):
    for source in sources:
        try:
            Invoker.compile(None, source, (), print)
        except Exception:
            pass

def test_right():
    run(b"right", b"right", b"rejected", b"new")

def test_wrong():
    run(b"wrong")

@pytest.mark.makes_wrong_programs
def test_wanted():
    run(b"wrong", b"wrong", b"right")
"""


def test_a_test_fails_that_has_a_program_refused(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(COMPILER)
    (tmp_path / "test_programs.py").write_text(PROGRAMS)
    command = [sys.executable, "-m", "pytest", "-p", "support.run_report", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(TESTS), "PATH": ""},
    )
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "test_programs.py::test_wrong\n" in done.stdout
    assert "would read something else in memory than it means" in done.stdout
    assert (
        "Reads in memory what it means: proven of 3 programs, unknown of 1, refused 1, and 2 that "
        "tests had made wrong"
    ) in done.stdout
