"""The basis of the repository's habits: make targets that exist, versions that agree."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
MAKE_CALL = re.compile(r"(?:^|`|entry: |run: )make ([a-z-]+)", re.MULTILINE)
MAKE_TARGET = re.compile(r"^([a-z-]+):.*## ", re.MULTILINE)
PINNED = re.compile(r"([A-Za-z0-9][\w.-]*)==(\d[\w.]*)")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def texts_that_call_make() -> list[Path]:
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob(".github/**/*.md")]
    habits = [ROOT / ".ci/run", ROOT / ".pre-commit-config.yaml", ROOT / ".github/workflows/ci.yml"]
    return sorted([*documents, *habits])


def test_named_make_targets_exist() -> None:
    targets = set(MAKE_TARGET.findall((ROOT / "Makefile").read_text()))
    called = {
        (name, path.name)
        for path in texts_that_call_make()
        for name in MAKE_CALL.findall(path.read_text())
    }
    assert {"lint", "test", "smoke", "lock", "hooks", "format"} <= {name for name, _ in called}
    assert sorted((name, where) for name, where in called if name not in targets) == []


def test_continuous_integration_checks_style_before_it_tests() -> None:
    script = (ROOT / ".ci/run").read_text()
    assert MAKE_CALL.findall(script) == ["lint", "test"]
    assert "run: bash .ci/run" in (ROOT / ".github/workflows/ci.yml").read_text()


def test_every_supported_python_is_tested() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    (matrix,) = re.findall(r"^ *python: \[(.*)\]$", workflow, re.MULTILINE)
    tested = re.findall(r'"(3\.\d+)"', matrix)
    assert PROJECT["requires-python"] == f">={tested[0]}"
    found_by_make = re.findall(r"python(3\.\d+)\b", (ROOT / "Makefile").read_text())
    assert set(tested) == set(found_by_make)


def test_the_tiny_test_needs_nothing_but_axir_numpy_and_pytest() -> None:
    imported = set()
    for node in ast.walk(ast.parse((ROOT / "tests/test_tiny.py").read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add("." * node.level + (node.module or "").partition(".")[0])
    assert imported - sys.stdlib_module_names == {"axir", "numpy", "pytest"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked_versions() -> dict[str, str]:
    first, *lines = (ROOT / "requirements.lock").read_text().splitlines()
    assert first.startswith("# What the tests passed with on Python 3.")
    versions = {}
    for line in lines:
        pinned = PINNED.fullmatch(line)  # a name and a version, without the address of a file
        assert pinned, line
        versions[normal(pinned[1])] = pinned[2]
    return versions


def requirements_of_tests() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"]
    groups = ("demo", "safetensors", "test", "lint")
    texts = [*PROJECT["dependencies"], *(text for group in groups for text in extras[group])]
    requirements = [Requirement(text) for text in texts]
    # pip reads the lock; axir's own extras are in the list already.
    return [r for r in requirements if normal(r.name) not in ("axir", "pip")]


@pytest.mark.parametrize("requirement", requirements_of_tests(), ids=str)
def test_locked_version_is_one_that_is_allowed(requirement: Requirement) -> None:
    version = locked_versions()[normal(requirement.name)]
    assert requirement.specifier.contains(version), f"run: make lock ({version} is locked)"
