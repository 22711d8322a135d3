"""Builds the wheel, installs it into a new environment, and imports every module from there."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALLED = {
    "frontend": "axir",
    "dialect": "axir/dialect",
    "passes": "axir/passes",
    "runtime": "axir/runtime",
}
IMPORT_ALL = """
import importlib, pkgutil, sys
import axir
assert axir.__file__.startswith(sys.prefix), axir.__file__
names = [module.name for module in pkgutil.walk_packages(axir.__path__, "axir.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(" ".join(["axir", *names]))
"""


def run(*command: str | Path, folder: Path) -> str:
    finished = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def installed_sources() -> set[str]:
    """Returns the paths that the sources have once installed."""
    return {
        f"{target}/{path.relative_to(ROOT / folder)}"
        for folder, target in INSTALLED.items()
        for path in (ROOT / folder).rglob("*.py")
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Built from a copy, for setuptools writes into the folder that it builds.
    folder = tmp_path_factory.mktemp("wheel")
    copied = ["pyproject.toml", "setup.py", "README.md", "LICENSE", *INSTALLED]
    run("cp", "-r", *(ROOT / name for name in copied), folder, folder=ROOT)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", "built", ".", folder=folder)
    (built,) = (folder / "built").iterdir()
    return built


def test_wheel_holds_every_source(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if name.endswith(".py")} == installed_sources()
    assert {f"{target}/py.typed" for target in INSTALLED.values()} <= names


def test_wheel_states_what_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    assert "License-Expression: Apache-2.0" in lines
    assert "Requires-Python: >=3.10" in lines
    for package in ("compiler", "runtime"):
        assert f"Requires-Dist: iree-base-{package}<3.14,>=3.13" in lines


def test_every_module_imports_from_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    site = run(
        python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=tmp_path
    ).strip()
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--no-deps", "--no-index", wheel, folder=tmp_path)
    # The dependencies are borrowed from this environment. The editable axir is not: a .pth file is
    # read in site-packages only, not in a folder that a .pth file names.
    (Path(site) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    imported = run(python, "-I", "-c", IMPORT_ALL, folder=tmp_path).split()
    expected = {
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in installed_sources()
    }
    assert set(imported) == expected
