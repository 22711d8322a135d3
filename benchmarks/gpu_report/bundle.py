"""Makes the folder in which the report travels to a machine with a GPU and without a network.

It contains axir, the test files that the report needs, IREE's wheels without unused parts, small
packages that may be missing, and the precompiled programs of the report. Its `run.py` needs only
Python with NumPy, SciPy and ml_dtypes.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_IREE = ("iree-base-compiler", "iree-base-runtime")
# Taken where the other machine lacks them.
_SPARE = ("optree", "platformdirs", "opt_einsum", "threadpoolctl", "typing_extensions")
_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014", "manylinux1")
_ROOMS = ("dialect", "passes", "runtime")
_OTHER_SOURCES = (
    "benchmarks",
    "tests/support",
    "tests/gpu",
    "tests/conftest.py",
    "examples",
    "pyproject.toml",
)
_COMPILER = "libIREECompiler.so"
# Parts of IREE's wheels that the report does not need: command-line programs, and the runtime with
# profiling. (Its linker is kept: the compiler uses it for constants computed at compile time.)
_LEFT_OUT = ("_runtime_libs_tracy", "_runtime_libs/iree-", ".pyi", ".h", ".png")
_DICTIONARY = 1 << 28


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes the folder; prints its size."""
    parser = argparse.ArgumentParser(prog="bundle", description=__doc__)
    parser.add_argument("--out", type=Path, default=_ROOT / "build" / "gpu-bundle")
    parser.add_argument("--python", default="3.12", help="that of the other machine (3.12)")
    parser.add_argument("--gpus", nargs="*", default=["sm_90"], help="to compile for (sm_90)")
    options = parser.parse_args(arguments)
    out, work = options.out.resolve(), options.out.resolve().with_name("gpu-bundle-work")
    out.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).with_name("run.py"), out / "run.py")
    _pack(out / "source.tar.xz", _sources())
    iree = _downloaded(_IREE, options.python, work / "iree")
    _pack(out / "iree.tar.xz", _members(iree, work / "iree-files"))
    _compress_compiler(work / "iree-files", out)
    spare = _downloaded(_SPARE, options.python, work / "spare")
    _pack(out / "spare.tar.xz", ((path, f"spare/{path.name}") for path in spare))
    _compile(options.gpus, work)
    _pack(out / "programs.tar.xz", _files(work / "programs", "programs"))
    total = 0
    for path in sorted(out.iterdir()):
        total += path.stat().st_size
        print(f"{path.name}: {path.stat().st_size / 2**20:.1f} MiB")
    print(f"{out}: {total / 2**20:.1f} MiB in all")
    return 0


def _sources() -> Iterator[tuple[Path, str]]:
    """Yields axir's files as they are installed, and the report's own files."""
    is_source: Callable[[Path], bool] = lambda path: path.suffix != ".pyc"  # noqa: E731
    for folder, name in (("frontend", "axir"), *((room, f"axir/{room}") for room in _ROOMS)):
        yield from _files(_ROOT / folder, name, is_source)
    for name in _OTHER_SOURCES:
        if (_ROOT / name).is_dir():
            yield from _files(_ROOT / name, name, lambda path: path.suffix == ".py")
        else:
            yield _ROOT / name, name


def _files(
    folder: Path, name: str, is_taken: Callable[[Path], bool] = lambda path: True
) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and is_taken(path):
            yield path, f"{name}/{path.relative_to(folder)}"


def _pack(archive: Path, members: Iterator[tuple[Path, str]]) -> None:
    with tarfile.open(archive, "w:xz", preset=6) as file:
        for path, name in members:
            file.add(path, name)


def _downloaded(names: Sequence[str], python: str, folder: Path) -> list[Path]:
    """Returns wheels of packages, of the versions that are installed here."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        try:
            wanted = f"{name}=={importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            wanted = name
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--only-binary=:all:", "--dest", str(folder)]
        command += ["--implementation", "cp", "--python-version", python, wanted]
        command += [f"--platform={platform}_x86_64" for platform in _PLATFORMS]
        subprocess.run(command, check=True)
    return sorted(folder.glob("*.whl"))


def _members(wheels: Sequence[Path], folder: Path) -> Iterator[tuple[Path, str]]:
    """Yields the needed files of wheels, except the compiler's library."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as file:
            file.extractall(folder)
            for info in file.infolist():
                if mode := info.external_attr >> 16:
                    (folder / info.filename).chmod(mode)
    for path, name in _files(folder, "."):
        if path.name != _COMPILER and not any(part in f"/{name}" for part in _LEFT_OUT):
            yield path, name


def _compress_compiler(folder: Path, out: Path) -> None:
    """Packs IREE's compiler without its symbols, which takes minutes, unless that was done."""
    version = importlib.metadata.version("iree-base-compiler")
    packed = out / f"compiler-{version}.xz"
    if packed.exists():
        return
    (library,) = folder.rglob(_COMPILER)
    stripped = folder / "stripped.so"
    shutil.copy(library, stripped)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", str(stripped)], check=True)
    filters = [
        {"id": lzma.FILTER_X86},
        {"id": lzma.FILTER_LZMA2, "preset": 7, "dict_size": _DICTIONARY},
    ]
    begun = packed.with_suffix(".begun")
    with stripped.open("rb") as source, lzma.open(begun, "wb", filters=filters) as target:
        shutil.copyfileobj(source, target, 1 << 20)
    stripped.unlink()
    begun.replace(packed)


def _compile(gpus: Sequence[str], work: Path) -> None:
    """Compiles the report's programs for GPUs that may be absent; prints failures."""
    environment = os.environ | {"AXIR_CACHE_DIR": str(work / "programs")}
    for gpu in gpus:
        command = [sys.executable, "-m", "benchmarks.gpu_report", "--compile-for", gpu]
        command += ["--out", str(work / gpu), "--seconds", "7200"]
        subprocess.run(command, cwd=_ROOT, env=environment, check=False)


if __name__ == "__main__":
    sys.exit(main())
