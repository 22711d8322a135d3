"""A file's tests run in one worker, and their shared values are made once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The fixture waits long enough for the other worker to begin as well, if it had any of the tests.
_FILE = """
import os, time
import pytest

@pytest.fixture(scope="module")
def shared():
    with open(os.environ["MADE"], "a") as file:
        file.write(__name__ + "\\n")
    time.sleep(0.1)

@pytest.mark.parametrize("number", range(8))
def test_number(shared, number):
    pass
"""


def test_a_fixture_of_a_file_is_made_once(tmp_path: Path) -> None:
    for name in ("first", "second", "third"):
        (tmp_path / f"test_{name}.py").write_text(_FILE)
    made = tmp_path / "made.txt"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    options = ["-p", "support.distribution", "-p", "no:cacheprovider", "-n", "2", "-q"]
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", tmp_path, tmp_path],
        env={**environment, "MADE": str(made), "PYTHONPATH": str(ROOT / "tests")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "24 passed" in finished.stdout, finished.stdout + finished.stderr
    assert sorted(made.read_text().split()) == ["test_first", "test_second", "test_third"]
