"""Kernels as object files, one file for each large kernel: `compile_objects(source, …) -> program`.

The disk cache keeps a large kernel under its text, so that it is compiled once for all programs
that contain it, and once for all versions of a program that change elsewhere. The other kernels are
compiled by two helper processes at once where that is worth the start of the second. Elsewhere:
machine code (`invocation/native.py`) and which process makes it (`native_compilation.py`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import marshal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

from axir.dialect.core.annotations import OptionValue
from axir.dialect.core.config import config
from axir.dialect.core.single_flight import single_flight
from axir.runtime.native.kernel_program import KernelProgram

from .cache import invocation_fingerprint, program_cache
from .compilation import COMPILER_VERSION, is_worth_keeping
from .helpers import MAX_HELPERS
from .module_reader import KernelSource

# Of a kernel's text: LLVM takes 30 ms or more for longer ones.
_LARGE_BYTES = 12_000
# Of all texts: below, a second helper process takes longer to begin, and more of processors, than
# it saves. It takes LLVM some 0.4 s to compile so much.
_BYTES_FOR_TWO = 200_000

# The object files of a set of kernels: the kernels' file, and the files of the functions that they
# call.
_Files: TypeAlias = tuple[bytes, ...]
# Compiles kernels, which may be soon replaced by better code.
Run: TypeAlias = Callable[[bytes, bool], _Files | None]
_Job: TypeAlias = Callable[[], _Files | None]


def compile_objects(
    source: KernelSource, is_quick: bool, machine: str, run: Run
) -> KernelProgram | None:
    """Compiles the kernels of a program, each once.

    Args:
        source: The program.
        is_quick: As for `run`.
        machine: The inputs of the machine code other than the kernel's text.
        run: Compiles, in any thread.

    Returns:
        The program with its machine code; None if it cannot be compiled.
    """
    texts = {name: source.text_of([name]) for name in source.kernels}
    large = [x for x in texts if len(texts[x]) >= _LARGE_BYTES] if len(texts) > 1 else []
    named = [_named_by_content(name, texts[name]) for name in large]
    small = source.text_of(name for name in texts if name not in large)
    made: dict[str, _Files | None] = {}
    jobs: dict[str, tuple[int, _Job]] = {}
    for symbol, text in named:
        key = _key(machine, text, is_quick)
        known = program_cache().get(key)
        if known is None:
            jobs[symbol] = len(text), partial(_kept, key, text, is_quick, run)
        else:
            made[symbol] = marshal.loads(known)
    if small or not large:  # around host functions, the code is only Python's entry
        jobs[""] = len(small), partial(run, small, is_quick)
    made.update(_run_all(jobs))
    found = [files for files in made.values() if files is not None]
    if len(found) < len(made):
        return None
    symbols = dict(zip(large, (symbol for symbol, _ in named), strict=True))
    steps = tuple(
        (symbols.get(name, name), count, places) for name, count, places in source.program.steps
    )
    return dataclasses.replace(
        source.program,
        object_files=tuple(files[0] for files in found if files[0]),
        # The first library is the same for all: the function that Python calls.
        libraries=tuple(dict.fromkeys(x for _, *libraries in found for x in libraries)),
        steps=steps,
    )


def _named_by_content(name: str, text: bytes) -> tuple[str, bytes]:
    """Returns a kernel renamed after its content; the new name keeps the kind."""
    base, _, suffix = name.rpartition("_")
    written = f"@{name}".encode()
    digest = hashlib.sha256(base.encode() + text.replace(written, b"@")).hexdigest()[:15]
    # Kernels with a number in their name round differently from kernels named by a digest
    # (`roundings.py`).
    symbol = f"{base}_{int(digest, 16)}" if suffix.isdigit() else f"{base}_k{digest}"
    return symbol, text.replace(written, f"@{symbol}".encode())


def _key(machine: str, text: bytes, is_quick: bool) -> str:
    kind = "quick kernel" if is_quick else "kernel"
    parts = (COMPILER_VERSION, invocation_fingerprint(), machine, kind)
    return hashlib.sha256("\0".join(parts).encode() + b"\0" + text).hexdigest()


def _kept(key: str, text: bytes, is_quick: bool, run: Run) -> _Files | None:
    """Compiles a kernel for the cache, and for all threads that want it now."""

    def compiled() -> _Files | None:
        start = time.perf_counter()
        made = run(text, is_quick)
        if made is not None:
            content = marshal.dumps(made)
            if is_worth_keeping(content, time.perf_counter() - start):
                program_cache().put(key, content)
        return made

    return single_flight(("kernel", key), compiled)[0]


def _run_all(jobs: Mapping[str, tuple[int, _Job]]) -> dict[str, _Files | None]:
    """Runs all jobs, each with its size in bytes, the largest first."""
    pending = sorted(jobs, key=lambda name: jobs[name][0])
    made: dict[str, _Files | None] = {}

    def work(options: dict[str, OptionValue]) -> None:
        with config(**options):
            while pending:
                try:
                    name = pending.pop()
                except IndexError:  # another thread has taken the last one
                    return
                made[name] = jobs[name][1]()

    size = sum(size for size, _ in jobs.values())
    pays = len(jobs) > 1 and size >= _BYTES_FOR_TWO and MAX_HELPERS > 1
    if not pays or config.axir_isolate_compiler == "never":
        work({})
        return made
    other = ThreadPoolExecutor(1, "axir-kernels")
    try:
        done = other.submit(work, config.overrides)
        work({})
        done.result()
    finally:
        pending.clear()
        other.shutdown(wait=False)
    return made
