"""Runs every golden test of tests/filecheck under lit, each as a test of its own."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

GOLDEN_TESTS = Path(__file__).parents[1] / "filecheck"


def run_lit(path: Path) -> subprocess.CompletedProcess[str]:
    lit = Path(sysconfig.get_path("scripts")) / "lit"
    command = [sys.executable, str(lit), "-v", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    "path",
    sorted(GOLDEN_TESTS.rglob("*.mlir")),
    ids=lambda path: str(path.relative_to(GOLDEN_TESTS)),
)
def test_golden_file(path: Path) -> None:
    finished = run_lit(path)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "Passed: 1" in finished.stdout


def test_a_wrong_golden_file_fails(tmp_path: Path) -> None:
    (tmp_path / "lit.cfg.py").write_text((GOLDEN_TESTS.parent / "lit.cfg.py").read_text())
    folder = tmp_path / "filecheck"
    folder.mkdir()
    wrong = folder / "wrong.mlir"
    wrong.write_text("// RUN: echo module | filecheck %s\n// CHECK: func.func @expected\n")
    finished = run_lit(wrong)
    assert finished.returncode == 1
    assert "Failed: 1" in finished.stdout
