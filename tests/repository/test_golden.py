"""Runs the golden tests of tests/filecheck under lit; each is a test of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

GOLDEN_TESTS = Path(__file__).parents[1] / "filecheck"


def run_lit(*paths: Path, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    lit = Path(sysconfig.get_path("scripts")) / "lit"
    command = [sys.executable, str(lit), "-v", *options, *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[str, str]]:
    """What one lit says of the files that are to be tested, and its output."""
    tests = [item for item in request.session.items if item.path == request.path]
    files = [test.callspec.params["path"] for test in tests if hasattr(test, "callspec")]
    report = tmp_path_factory.mktemp("lit") / "report.json"
    finished = run_lit(*files, options=("-j1", "--output", str(report)))
    assert report.exists(), finished.stdout + finished.stderr
    tests = json.loads(report.read_text())["tests"]
    return {test["name"].partition(" :: ")[2]: (test["code"], test["output"]) for test in tests}


@pytest.mark.parametrize(
    "path",
    sorted(GOLDEN_TESTS.rglob("*.mlir")),
    ids=lambda path: str(path.relative_to(GOLDEN_TESTS)),
)
def test_golden_file(path: Path, results: dict[str, tuple[str, str]]) -> None:
    code, output = results[str(path.relative_to(GOLDEN_TESTS.parent))]
    assert code == "PASS", output


def test_a_wrong_golden_file_fails(tmp_path: Path) -> None:
    (tmp_path / "lit.cfg.py").write_text((GOLDEN_TESTS.parent / "lit.cfg.py").read_text())
    folder = tmp_path / "filecheck"
    folder.mkdir()
    wrong = folder / "wrong.mlir"
    wrong.write_text("// RUN: echo module | filecheck %s\n// CHECK: func.func @expected\n")
    finished = run_lit(wrong)
    assert finished.returncode == 1
    assert "Failed: 1" in finished.stdout
