"""Programs for other CPUs, run by IREE's runtime for these in an emulator.

The runtime comes from the wheel for the other CPU, in the version that is installed here. It is
downloaded once, to a folder of the user's, and needs `qemu-user` and the C library of the other CPU
(`libc6-arm64-cross`, `libstdc++6-arm64-cross` of Debian and Ubuntu).
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import numpy as np

from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.core.types import ShapedArray

TRIPLES = {"aarch64": "aarch64-linux-gnu", "riscv64": "riscv64-linux-gnu"}
_PACKAGE = "iree-base-runtime"
_NAMES = {"bool": "i1", "bfloat16": "bf16"}


def emulator(architecture: str) -> list[str] | None:
    """Returns the command that runs programs for a CPU; None if it, or a C library, is missing."""
    if architecture == platform.machine():
        return []
    program = shutil.which(f"qemu-{architecture}") or shutil.which(f"qemu-{architecture}-static")
    root = Path("/usr") / TRIPLES[architecture]
    return [program, "-L", str(root)] if program and (root / "lib").is_dir() else None


def cross_compiler(architecture: str) -> str | None:
    """Returns the C++ compiler for a CPU, if there is one."""
    return shutil.which(f"{TRIPLES[architecture]}-g++")


@functools.cache
def runtime(architecture: str) -> Path | None:
    """Returns IREE's runner of modules on a CPU; None if it cannot be downloaded."""
    version = metadata.version(_PACKAGE)
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = home / "axir-tests" / f"iree-{version}-{architecture}"
    program = folder / "iree" / "_runtime_libs" / "iree-run-module"
    if program.exists():
        return program
    python = f"{sys.version_info.major}{sys.version_info.minor}"
    with tempfile.TemporaryDirectory() as download:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--python-version", python, "--dest", download]
        for name in (f"manylinux_2_28_{architecture}", f"manylinux_2_27_{architecture}"):
            command += ["--platform", name]
        done = subprocess.run(
            [*command, f"{_PACKAGE}=={version}"], capture_output=True, check=False, timeout=300
        )
        wheels = list(Path(download).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            return None
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as unpacked:
            with zipfile.ZipFile(wheels[0]) as wheel:
                wheel.extractall(unpacked)
            (Path(unpacked) / program.relative_to(folder)).chmod(0o755)
            if not folder.exists():
                os.rename(unpacked, folder)
                os.mkdir(unpacked)  # its context removes the folder
    return program


def run_program(
    binary: bytes,
    architecture: str,
    arguments: Sequence[np.ndarray],
    results: Sequence[ShapedArray],
    function: str = "main",
) -> list[np.ndarray]:
    """Runs a function of a program in the emulator.

    Args:
        binary: A `.vmfb`.
        architecture: The CPU that it was compiled for.
        arguments: The arguments of the function.
        results: The types of its results.
        function: Its name.
    """
    command = emulator(architecture)
    program = runtime(architecture)
    assert command is not None
    assert program is not None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.vmfb").write_bytes(binary)
        words = [str(program), f"--module={folder / 'program.vmfb'}", f"--function={function}"]
        words.append("--device=local-sync")
        words += [_input(folder / f"{n}", words_of(x)) for n, x in enumerate(arguments)]
        words += [f"--output=@{folder / f'{n}.out'}" for n in range(len(results))]
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return [
            np.fromfile(folder / f"{n}.out", kind.words.dtype).reshape(kind.words.shape)
            for n, kind in enumerate(results)
        ]


def _input(path: Path, array: np.ndarray) -> str:
    if array.dtype.kind == "c":  # the notation of shapes has no complex numbers
        np.save(path.with_suffix(".npy"), array)
        return f"--input=@{path.with_suffix('.npy')}"
    name = array.dtype.name
    name = _NAMES.get(name) or name.replace("float", "f").replace("int", "i")
    array.tofile(path.with_suffix(".bin"))
    return f"--input={'x'.join([*map(str, array.shape), name])}=@{path.with_suffix('.bin')}"
