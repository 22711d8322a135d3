"""Runs programs of JAX libraries, unchanged, in which `import jax` gives axir.

Their results are compared with their results on JAX, kept in `expected.json` (`record.py` writes it
anew), or, where long computations are compiled, with their results without compilation
(`jax_disable_jit`). `make test-ecosystem` runs them all where JAX is not installed. Elsewhere, the
programs run that have their libraries installed.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ecosystem.libraries import LIBRARIES

FOLDER = Path(__file__).parent
PROGRAMS = FOLDER / "programs"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
# The interpreter of the environment with all libraries, if that exists.
PYTHON = os.environ.get("ECOSYSTEM_PYTHON", sys.executable)
# Multiples of the largest element by which float32 results may differ. Adaptive steps, and
# training, amplify differences in the last bit.
TOLERANCE = 2e-5
TOLERANCES = {
    "bayex_optimization": 1e-3,
    "brax_pendulum": 1e-4,
    "diffrax_equations": 1e-4,
    "flax_linen": 1e-3,
    "flax_nnx": 1e-4,
    "gymnax_cartpole": 1e-3,
    "jraph_network": 1e-4,
    "mujoco_mechanics": 1e-4,
    "flowjax_density": 1e-4,
    "jaxley_cells": 1e-3,
    "s2fft_transforms": 1e-10,
}
# Programs that are compared with their results without compilation.
EVALUATED = (
    "diffrax_equations",
    "dynamax_models",
    "jaxley_cells",
    "optimistix_problems",
    "s2fft_transforms",
    "tinygp_processes",
)


def test_every_program_is_listed_and_compared_with_something() -> None:
    programs = {path.stem for path in PROGRAMS.glob("*.py")} - {"reporting"}
    assert programs == set(LIBRARIES)
    assert programs == set(EXPECTED) | set(EVALUATED)


def test_the_page_shows_every_program_and_what_was_measured_agrees() -> None:
    page = (FOLDER.parents[1] / "docs" / "libraries.md").read_text()
    assert {name for name in LIBRARIES if f"`{name}`" in page} == set(LIBRARIES)
    measured = json.loads((FOLDER / "measured.json").read_text())
    differences = {name: row["difference"] for name, row in measured.items()}
    assert differences.keys() <= LIBRARIES.keys()
    assert {name: x for name, x in differences.items() if x > TOLERANCES.get(name, TOLERANCE)} == {}


def skip_if_missing(name: str) -> None:
    for library in LIBRARIES[name]:
        find = f"import importlib.util as u; print(u.find_spec({library!r}) is None)"
        found = subprocess.run([PYTHON, "-c", find], capture_output=True, text=True, check=True)
        if found.stdout.strip() == "True":
            pytest.skip(f"{library} is not installed here; make test-ecosystem installs it")


@functools.cache
def computed(name: str, disables_jit: bool = False) -> dict[str, Any]:
    """Returns a program's results, compiled or not."""
    command = [PYTHON, "-W", "ignore", "-m", "axir.as_jax", PROGRAMS / f"{name}.py"]
    environment = {**os.environ, "JAX_DISABLE_JIT": str(int(disables_jit))}
    finished = subprocess.run(
        command, capture_output=True, text=True, timeout=900, check=False, env=environment
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    line = next(x for x in finished.stdout.splitlines() if x.startswith("RESULTS "))
    results = json.loads(line.removeprefix("RESULTS "))
    assert results.pop("implementation") == "axir.numpy"
    return results


def compare(name: str, results: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert set(results) == set(wanted)
    tolerance = TOLERANCES.get(name, TOLERANCE)
    for key, expected in wanted.items():
        largest = float(np.max(np.abs(expected)))
        np.testing.assert_allclose(
            results[key], expected, rtol=tolerance, atol=tolerance * largest, err_msg=key
        )


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_program_computes_what_it_computes_on_jax(name: str) -> None:
    skip_if_missing(name)
    compare(name, computed(name), EXPECTED[name])


@pytest.mark.parametrize("name", EVALUATED)
def test_a_program_computes_what_it_computes_without_the_compiler(name: str) -> None:
    skip_if_missing(name)
    compare(name, computed(name), computed(name, disables_jit=True))
