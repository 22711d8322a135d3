"""Runs the tests of programs on four CPU devices, in a process that has four."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_programs_on_four_devices() -> None:
    options = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-p", "no:randomly"]
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "AXIR_")) and name != "XLA_FLAGS"
    }
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests/four_devices"],
        cwd=ROOT,
        env={**environment, "TEST_CPU_DEVICES": "4"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-5_000:]
