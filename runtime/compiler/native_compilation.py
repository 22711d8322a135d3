"""Programs as machine code without IREE: `compile_natively(module, name) -> KernelProgram`.

A program that is one kernel with little work needs no compiler that forms dispatches, and no device
queue; other programs of kernels run this way until IREE's binary is ready. axir's own passes make
the kernels, and a helper process compiles them to object files. Elsewhere: machine code
(`invocation/native.py`), loading it (`runtime/native/`), and IREE (`compilation.py`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import logging
import math
import os
import re
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
from iree.compiler import ir

from axir.dialect.core.config import config
from axir.dialect.core.single_flight import single_flight
from axir.dialect.core.timeline import COMPILED, span, timed
from axir.passes.framework.pipeline import run_passes
from axir.passes.framework.registry import find_pass
from axir.runtime.device.process_state import abandon, call_in_forked_child
from axir.runtime.device.workers import thread_count
from axir.runtime.native.kernel_program import COPY, HOST_CALL, KINDS, KernelProgram
from axir.runtime.native.object_files import ForbiddenCodeError, ObjectFileError

from .architectures import host_architecture, host_cpu_features
from .cache import code_fingerprint, program_cache
from .compilation import COMPILER_VERSION, is_worth_keeping, look_up, may_skip_passes, text_of
from .diagnostics import CompilerEndedError
from .helpers import HelperStartError, helpers
from .invocation.native import NativeCompiler, NativeUnavailableError
from .kernel_objects import compile_objects
from .module_reader import KernelSource, read_kernels, runs_several_workgroups
from .transform_code import transform_code
from .waiting import announced_if_slow, passes_imported_meanwhile

_LOGGER = logging.getLogger(__name__)
_T = TypeVar("_T")
_UNFIT = b"unfit: "
_ARCHITECTURES = ("x86_64", "aarch64")
# Operations that make one kernel run long: loops with unknown bounds, products of large matrices,
# and Fourier transforms.
_LASTING = (b"scf.while", b"@axir_product_", b"@axir_products_", b"@axir_transform_")
# Operations slower than reading an element; below, the most stores: one in the loop, one for the
# rest.
_SLOW = re.compile(
    rb"math\.(?!fma|absf|floor|ceil|copysign)|arith\.(?:div|rem)|scf\.while|memref\.alloca|"
    rb"vector\.reduction|call @"
)
_MOST_STORES = 2
# Vectors assembled from single elements, which an efficient loop does not need.
_APART = b"vector.from_elements"
# The extents of arrays in memory, and the most elements that one thread finishes before other
# threads have started.
_ARRAY = re.compile(rb"memref<(\d+(?:x\d+)*)x[a-z]")
_LITTLE = 1 << 16


@dataclasses.dataclass(frozen=True)
class NotNative:
    """The reason that a program does not become machine code here.

    Attributes:
        reason: The reason, as text.
        left: The steps of `legalize-for-iree` that its module has not gone through; None if the
            module has become a kernel, which IREE may not be able to run.
    """

    reason: str
    left: str | None = "regions"


def compile_natively(module: ir.Module, text: str, name: str) -> KernelProgram | NotNative:
    """Makes machine code of a module for this machine's CPU, if it is one kernel.

    Args:
        module: StableHLO; it is rewritten in place.
        text: The module's text without source locations.
        name: The program's name in logs.
    """
    here = _here()
    if here is None:
        return NotNative("there is no llvmlite for this machine")
    parts = (COMPILER_VERSION, code_fingerprint(), here, text)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    left: str | None = "regions"

    def compiled() -> KernelProgram | str:
        nonlocal left
        cache = program_cache()
        with timed(COMPILED, name):
            known = look_up(cache, key)
            if known is not None and may_skip_passes():
                return _read(known)
            start = time.perf_counter()
            with span("kernel of the program", "compiler"):
                source = _kernel_of(module, "complex<" in text)
            left = "rest" if isinstance(source, str) else None
            if isinstance(source, str):
                cache.put(key, _UNFIT + source.encode())
                return source
            _dump(source, name)
            made = _compile(source, name) if known is None else _read(known)
            if isinstance(made, KernelProgram):
                _keep(key, made, time.perf_counter() - start)
        return made

    made = single_flight(("native", key), compiled)[0]
    if isinstance(made, str):
        _LOGGER.info("%s is compiled by IREE: %s", name, made)
        return NotNative(made, left)
    return made


def _keep(key: str, made: KernelProgram, seconds: float) -> None:
    """Puts a program into the cache, if it took long enough to compile."""
    content = made.to_bytes()
    if is_worth_keeping(content, seconds):
        program_cache().put(key, content)


def _read(entry: bytes) -> KernelProgram | str:
    """Decodes an entry of the cache: a program, or the reason that it is not one kernel."""
    if entry.startswith(_UNFIT):
        return entry[len(_UNFIT) :].decode()
    return KernelProgram.from_bytes(entry)


def find_kernels(text: str) -> KernelProgram | None:
    """Returns what `compile_kernels` made of a module, if the cache has it.

    Args:
        text: The module's text before it was legalized.
    """
    key = _key_of_kernels(text)
    content = None if key is None or not may_skip_passes() else program_cache().get(key)
    return None if content is None else KernelProgram.from_bytes(content)


def compile_kernels(module: ir.Module, text: str, name: str) -> KernelProgram | None:
    """Compiles a module that is ready for IREE to machine code, if it consists of kernels.

    Args:
        module: Legalized and tuned; it is rewritten in place.
        text: The module's text before that.
        name: The program's name in logs.
    """
    key = _key_of_kernels(text)
    if key is None:
        return None

    def compiled() -> KernelProgram | None:
        start = time.perf_counter()
        with span("kernels of the program", "compiler"):
            source = _kernels_of(module, "complex<" in text)
        made: KernelProgram | str
        if isinstance(source, str):
            made = source
        else:
            _dump(source, name)
            made = _compile(source, name, is_quick=not _stays())
        if isinstance(made, str):
            _LOGGER.info("the first calls of %s wait for IREE: %s", name, made)
            return None
        _keep(key, made, time.perf_counter() - start)
        return made

    return single_flight(("kernels", key), compiled)[0]


def remember_as_faster(text: str) -> None:
    """Keeps on disk that the kernels of a module are faster than IREE's program."""
    key = _key_of_kernels(text, _faster())
    if key is not None:
        program_cache().put(key, b"")


def is_known_as_faster(text: str) -> bool:
    """Tells whether an earlier process found the kernels of a module to be faster."""
    key = _key_of_kernels(text, _faster())
    return key is not None and may_skip_passes() and program_cache().get(key) is not None


def _faster() -> str:
    return f"faster kernels than IREE's program on {thread_count()} threads"


def _key_of_kernels(text: str, kind: str = "") -> str | None:
    here = _here()
    if here is None:
        return None
    kind = kind or ("kernels" if _stays() else "quick kernels")
    parts = (COMPILER_VERSION, code_fingerprint(), here, kind, text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _stays() -> bool:
    """Tells whether kernels run for good, and not only until IREE's program is ready."""
    return config.axir_compiler == "native"


def _kernel_of(module: ir.Module, has_complex: bool) -> KernelSource | str:
    """Makes one kernel of a module; returns the reason if that is not possible.

    `has_complex` tells whether the module has complex numbers before legalization, which introduces
    none.
    """
    run_passes(module, [find_pass("legalize-for-iree").from_options({"part": "numbers"})])
    if has_complex and runs_several_workgroups(module):  # long transforms with long texts
        return "its kernel runs in several workgroups"
    text = text_of(module) if has_complex else ""
    if "complex<" not in text:
        run_passes(module, [find_pass("fuse-whole-programs")()])
        return read_kernels(module, most=1)
    # IREE handles complex numbers directly, so its module must keep them.
    with module.context:
        pairs = ir.Module.parse(text)
    run_passes(pairs, [find_pass("pair-complex-programs")(), find_pass("fuse-whole-programs")()])
    return read_kernels(pairs, most=1)


def _kernels_of(module: ir.Module, has_complex: bool) -> KernelSource | str:
    """Makes kernels of a module that is ready for IREE; returns why it is more than kernels."""
    pairing = [find_pass("pair-complex-programs")()] if has_complex else []
    run_passes(module, [*pairing, find_pass("fuse-islands")()])
    return read_kernels(module)


def _dump(source: KernelSource, name: str) -> None:
    """Writes a kernel to the folder of the option `axir_dump_dir`, if that is set."""
    if config.axir_dump_dir and source.kernels:
        folder = Path(config.axir_dump_dir)
        folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(source.text).hexdigest()[:12]
        (folder / f"{name}-{digest}.kernel.mlir").write_bytes(source.text)


def _compile(source: KernelSource, name: str, *, is_quick: bool = False) -> KernelProgram | str:
    machine = _environment()
    steps = source.program.steps
    if all(name == HOST_CALL for name, _, _ in steps) or machine is None:
        return dataclasses.replace(source.program, suits_one_thread=True)
    several = len(steps) > 1 or any(count > 1 for _, count, _ in steps)
    may_last = several or any(x in source.text for x in _LASTING)
    messages: list[str] = []
    try:
        with announced_if_slow(name, source.text), span("machine code", "compiler"):
            made = compile_objects(
                source, is_quick, machine, lambda text, quick: _run(text, quick, messages.append)
            )
            transforms = transform_code(
                source.kernels, machine, lambda text: _run_library(text, messages.append)
            )
    except CompilerEndedError as error:
        said = "".join(f": {line}" for line in error.lines[-1:])
        return _reported(name, f"the compiler of kernels ended with {error.ending}{said}")
    except HelperStartError as error:
        return _reported(name, f"no helper process compiles kernels: {error}")
    except NativeUnavailableError as error:
        _forget_native(str(error))
        return str(error)
    if made is None or transforms is None:
        return _reported(name, f"its kernel is not compiled: {'; '.join(messages)[:500]}")
    return dataclasses.replace(
        made,
        libraries=(*made.libraries, *transforms),
        may_last=may_last,
        suits_one_thread=_suits_one_thread(source),
    )


def _suits_one_thread(source: KernelSource) -> bool:
    """Tells whether a program is faster on one thread than on two of IREE's.

    True for a program that calls host functions for small arrays, and for loops over arrays that
    are bound by memory: one loop of elementwise operations, or kernels that only move elements.
    """
    kinds = {name for name, _, _ in source.program.steps if name in KINDS}
    if HOST_CALL in kinds and kinds <= {HOST_CALL, COPY}:
        return all(_elements(x) <= _LITTLE for x in _ARRAY.findall(source.text))
    if kinds or _SLOW.search(source.text):
        return False
    if source.kernels and all(x.startswith("move") for x in source.kernels):
        return True
    stores = sum(source.text.count(name) for name in (b"vector.store", b"memref.store"))
    is_alone = len(source.program.steps) == 1 and all(
        x.startswith("elementwise") for x in source.kernels
    )
    return is_alone and 0 < stores <= _MOST_STORES and _APART not in source.text


def _elements(shape: bytes) -> int:
    return math.prod(map(int, shape.split(b"x")))


def _reported(name: str, reason: str) -> str:
    if not helpers.is_closed:  # else the interpreter ends
        _LOGGER.warning("%s is compiled by IREE, for %s", name, reason)
    return reason


def _run(kernels: bytes, is_quick: bool, report: Callable[[str], None]) -> tuple[bytes, ...] | None:
    return _isolated(
        lambda: helpers.compile_kernels(kernels, is_quick, report),
        lambda: _compiler().compile(kernels, is_quick, report),
    )


def _run_library(text: bytes, report: Callable[[str], None]) -> bytes | None:
    return _isolated(
        lambda: helpers.compile_library(text, report),
        lambda: _compiler().compile_library(text, report),
    )


def _isolated(in_helper: Callable[[], _T], here: Callable[[], _T]) -> _T:
    """Compiles in a helper or in this process, as the option `axir_isolate_compiler` says."""
    if config.axir_isolate_compiler != "never":
        try:
            with passes_imported_meanwhile():
                return in_helper()
        except HelperStartError:
            if config.axir_isolate_compiler == "always" or helpers.is_closed:
                raise
    return here()


@cache
def _compiler() -> NativeCompiler:
    return NativeCompiler()


def _forget_compiler() -> None:
    if _compiler.cache_info().currsize:
        abandon(_compiler())
        _compiler.cache_clear()


call_in_forked_child(_forget_compiler)

_unavailable: list[str] = []


def give_up_kernel(name: str, error: ObjectFileError) -> None:
    """Logs that IREE compiles a program, because its machine code cannot be loaded.

    Args:
        name: The program.
        error: The reason; if the system forbids such code, IREE compiles all other programs as
            well.
    """
    if isinstance(error, ForbiddenCodeError):
        _forget_native(error.message)
    else:
        _reported(name, f"its machine code cannot be loaded: {error.message}")


def _forget_native(reason: str) -> None:
    """Uses IREE for all programs from now on, and logs that once."""
    if not _unavailable:
        _unavailable.append(reason)
        _LOGGER.warning("all programs are compiled by IREE, which takes longer: %s", reason)


def _here() -> str | None:
    """Returns the machine's part of a kernel's key; None if machine code cannot be made here."""
    if _unavailable:
        return None
    found = _environment()
    if found is None:
        _forget_native("llvmlite is not installed, or this machine's processor is of another kind")
    return found


@cache
def _environment() -> str | None:
    package = importlib.util.find_spec("llvmlite")
    if package is None or package.origin is None or host_architecture() not in _ARCHITECTURES:
        return None
    status = os.stat(package.origin)
    python = f"{sys.implementation.cache_tag} {object.__basicsize__} {np.__version__}"
    return f"{host_cpu_features()} {python} {package.origin} {status.st_mtime_ns}"
