"""Makes the report of this machine's GPU from the folder that this file lies in.

    python3 run.py --out REPORT

Needs Python, NumPy, SciPy and ml_dtypes; nothing is installed, and no network is used. Arguments
are passed on to `python -m benchmarks.gpu_report`.
"""

from __future__ import annotations

import argparse
import importlib.util
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEEDED = ("numpy", "scipy", "ml_dtypes")
LIBRARY = Path("iree/compiler/_mlir_libs/libIREECompiler.so")


def main() -> int:
    """Unpacks the folder beside the report, and runs it."""
    start = time.monotonic()
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"not installed for {sys.executable}: {', '.join(missing)}", file=sys.stderr)
        return 2
    site = Path(tempfile.mkdtemp(prefix="gpu-report-"))
    compiler = threading.Thread(target=_unpack_compiler, args=(site,))
    compiler.start()
    for name in ("source", "iree", "spare", "programs"):
        with tarfile.open(HERE / f"{name}.tar.xz") as archive:
            archive.extractall(site)
    _take_missing(site)
    compiler.join()
    print(f"unpacked in {time.monotonic() - start:.0f} s to {site}", flush=True)
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(site), os.environ.get("PYTHONPATH", "")])
    )
    environment["AXIR_CACHE_DIR"] = str(site / "programs")
    command = [sys.executable, "-m", "benchmarks.gpu_report", *_arguments(sys.argv[1:])]
    code = subprocess.run(command, cwd=site, env=environment, check=False).returncode
    shutil.rmtree(site, ignore_errors=True)
    return code


def _arguments(given: list[str]) -> list[str]:
    """Returns the command line's arguments, with the report's folder in full."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--out", type=Path, default=Path("gpu-report"))
    known, others = parser.parse_known_args(given)
    return [*others, "--out", str(known.out.resolve())]


def _unpack_compiler(site: Path) -> None:
    (packed,) = HERE.glob("compiler-*.xz")
    target = site / LIBRARY
    target.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(packed) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)


def _take_missing(site: Path) -> None:
    """Unpacks those small packages that are not installed here."""
    for wheel in sorted((site / "spare").glob("*.whl")):
        package = wheel.name.partition("-")[0]
        if importlib.util.find_spec(package) is None:
            with zipfile.ZipFile(wheel) as file:
                file.extractall(site)


if __name__ == "__main__":
    sys.exit(main())
