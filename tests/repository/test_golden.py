"""Runs the golden tests of tests/filecheck under lit; each is a separate test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

GOLDEN_TESTS = Path(__file__).parents[1] / "filecheck"


SERVER = GOLDEN_TESTS.parent / "support" / "command_server.py"


def run_lit(
    *paths: Path, options: Sequence[str] = (), server: str = ""
) -> subprocess.CompletedProcess[str]:
    lit = Path(sysconfig.get_path("scripts")) / "lit"
    command = [sys.executable, str(lit), "-v", *options, *map(str, paths)]
    environment = {**os.environ, "AXIR_COMMAND_SERVER": server}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=1200, env=environment
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a process that runs `axir` in its forks."""
    path = str(tmp_path_factory.mktemp("server") / "socket")
    with subprocess.Popen(
        [sys.executable, SERVER, "serve", path], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        yield path
        process.kill()


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, server: str
) -> dict[str, tuple[str, str]]:
    """The results of one run of lit for the files to test, and its output."""
    tests = [item for item in request.session.items if item.path == request.path]
    files = [test.callspec.params["path"] for test in tests if hasattr(test, "callspec")]
    report = tmp_path_factory.mktemp("lit") / "report.json"
    finished = run_lit(*files, options=("-j1", "--output", str(report)), server=server)
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
