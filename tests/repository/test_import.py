"""The modules that `import axir` loads in a fresh process: only modules that all programs need."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Evaluators and frontend functions use SciPy; they import it when they are called.
UNLOADED = (
    "scipy", "opt_einsum", "jax", "jaxlib", "rich", "click", "platformdirs", "statistics",
    "threadpoolctl", "axir.scipy.special",
)  # fmt: skip


def modules_loaded_by(statement: str) -> set[str]:
    """Returns the modules that a fresh process has loaded after a statement."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    command = [sys.executable, "-c", program]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return set(finished.stdout.split())


@pytest.mark.parametrize("module", ["axir", "axir.numpy", "axir.lax", "axir.random", "axir.nn"])
def test_importing_loads_no_rarely_used_package(module: str) -> None:
    loaded = modules_loaded_by(f"import {module}")
    assert "numpy" in loaded
    assert loaded.isdisjoint(UNLOADED), sorted(loaded.intersection(UNLOADED))


def test_what_importing_makes_is_not_looked_at_for_garbage() -> None:
    program = "import gc, axir; print(len(gc.get_objects(0)) + len(gc.get_objects(1)))"
    command = [sys.executable, "-c", program]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert int(finished.stdout) < 5000  # of about 100,000


def test_importing_leaves_logging_to_the_program() -> None:
    program = "import logging, axir, axir.cli; print(logging.root.handlers)"
    command = [sys.executable, "-c", program]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert finished.stdout == "[]\n"


def test_the_check_sees_what_a_call_loads() -> None:
    loaded = modules_loaded_by("import axir.numpy as jnp; jnp.einsum('ij,jk', *[jnp.eye(2)] * 2)")
    assert "opt_einsum" in loaded
