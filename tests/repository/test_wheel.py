"""Builds the wheel, installs it into a new environment, and imports every module from there."""

from __future__ import annotations

import re
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
    """Returns the paths of the installed sources."""
    return {
        f"{target}/{path.relative_to(ROOT / folder)}"
        for folder, target in INSTALLED.items()
        for path in (ROOT / folder).rglob("*.py")
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Built from a copy, because setuptools writes into the folder that it builds.
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


def test_cmake_finds_axir_in_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    package = tmp_path / "site" / "axir" / "runtime" / "cpp"
    shown = run(sys.executable, "-m", "axir", "--cmake-dir", folder=ROOT).strip()
    assert shown == str(ROOT / "runtime" / "cpp" / "cmake")  # of the editable axir
    files = {path.name: path.read_text() for path in Path(shown).iterdir()}
    assert {path.name: path.read_text() for path in (package / "cmake").iterdir()} == files
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.M)
    assert version
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(p CXX)\n"
        f"find_package(axir {version[1]} EXACT REQUIRED)\n"
        "find_package(axir 0.2 QUIET)\nif(axir_FOUND)\n  message(FATAL_ERROR newer)\nendif()\n"
        "add_executable(p p.cpp)\ntarget_link_libraries(p PRIVATE axir::runtime)\n"
    )
    (tmp_path / "p.cpp").write_text("#include <axir/axir.hpp>\nint main() {}\n")
    cmake = Path(sys.executable).parent / "cmake"
    found = f"-Daxir_DIR={package / 'cmake'}"
    run(cmake, "-S", ".", "-B", "build", found, folder=tmp_path)
    run(cmake, "--build", "build", folder=tmp_path)


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
