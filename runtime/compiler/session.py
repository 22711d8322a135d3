"""Compiles StableHLO with IREE, in process: `compile_module(module, target) -> bytes`.

One compiler session per set of flags is kept and reused; compiling releases the interpreter lock,
so threads compile side by side, each in a session of its own. Results go through the disk cache
(`cache.py`). What does not live here: reading the module (`analysis.py`), the choice of flags
(`target.py`), loading and running (`executable.py`).
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from iree.compiler import version
from iree.compiler.api import Invocation, Output, Session, Source, ctypes_dl

from axir.dialect.config import config

from ..cache import cache_directory, program_cache
from ..diagnostics import Diagnostic, compile_error
from ..fork_safety import abandon, call_in_forked_child
from ..target import PROCESS_FLAGS, Target
from .analysis import BYTECODE_MAGIC, analyze
from .branch_operands import repair_branches

_LOGGER = logging.getLogger(__name__)
_COMPILER_VERSION = str(version.VERSION)
# What is done to the compiler's result; what was compiled otherwise is compiled again.
_REPAIR = "repair_branches"
# Sessions hold uniqued types and attributes for good; a fresh one costs 3 ms.
_COMPILATIONS_PER_SESSION = 200
_ERROR_SEVERITY = 2


def compile_module(module: str | bytes, target: Target, name: str = "main") -> bytes:
    """Compiles a StableHLO module, as text or bytecode, to an IREE binary (`.vmfb`).

    A result in the disk cache is returned instead; its key is the module without source locations,
    the compiler's version, the flags and the CPU. When the optimizing flags make the compiler fail,
    it is asked once more without them.

    Args:
      module: the module; its public functions become the binary's functions.
      target: what to compile for.
      name: what the program is called in logs and in the file names of `axir_dump_dir`.

    Raises:
      CompileError: the compiler rejects the module or fails. The text has the first diagnostics,
        the user's line, and the place of a reproducer.
    """
    source = module.encode() if isinstance(module, str) else bytes(module)
    fingerprint, is_tiled = analyze(source, target)
    flags = target.flags(is_tiled)
    parts = (_COMPILER_VERSION, _REPAIR, *PROCESS_FLAGS, *flags, target.machine)
    key = hashlib.sha256("\0".join(parts).encode() + b"\0" + fingerprint).hexdigest()
    if config.axir_dump_dir:
        _dump(Path(config.axir_dump_dir), f"{name}-{key[:12]}", source, flags)
    cache = program_cache()
    binary = cache.get(key)
    if binary is None:
        binary = _compile(source, target, flags, f"{name}-{key[:12]}")
        cache.put(key, binary)
    return binary


def compile_command(flags: Sequence[str], source: str, output: str) -> str:
    """Returns the command line that compiles a file as `compile_module` compiles a module."""
    return " ".join(["iree-compile", *PROCESS_FLAGS, *flags, source, "-o", output])


def _compile(source: bytes, target: Target, flags: tuple[str, ...], name: str) -> bytes:
    binary, diagnostics = _run_compiler(source, flags, target.backend)
    if binary is not None:
        return binary
    plain_flags = target.plain.flags()
    if plain_flags != flags:
        binary, _ = _run_compiler(source, plain_flags, target.backend)
        if binary is not None:
            _LOGGER.info("%s compiles without optimizations only: %s", name, diagnostics[:1])
            return binary
    raise compile_error(diagnostics, _save_reproducer(source, flags, name))


# --- the session --------------------------------------------------------------------------------

_DIAGNOSTIC_CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_void_p
)


@cache
def _enable_callback_diagnostics() -> Callable[..., None]:
    # The wheel's Python API prints diagnostics; the C API hands them over.
    function = ctypes_dl._dylib.ireeCompilerInvocationEnableCallbackDiagnostics
    function.restype = None
    function.argtypes = [ctypes.c_void_p, ctypes.c_int, _DIAGNOSTIC_CALLBACK, ctypes.c_void_p]
    return function


@cache
def _set_process_flags() -> None:
    # These are not a session's to set, and the compiler accepts them only once.
    ctypes_dl._initializeGlobalCL("axir", *PROCESS_FLAGS)


class _SessionPool:
    """Idle compiler sessions by their flags. A session compiles one module at a time."""

    def __init__(self) -> None:
        self._idle: dict[tuple[str, ...], list[tuple[Session, int]]] = {}
        call_in_forked_child(self._forget)

    @contextmanager
    def session(self, flags: tuple[str, ...]) -> Iterator[Session]:
        """Lends a session with these flags."""
        try:
            session, count = self._idle.setdefault(flags, []).pop()
        except IndexError:
            _set_process_flags()
            session, count = Session(), 0
            session.set_flags(*flags)
        yield session
        if count + 1 < _COMPILATIONS_PER_SESSION:
            self._idle[flags].append((session, count + 1))

    def _forget(self) -> None:
        abandon(self._idle)
        self._idle = {}


_sessions = _SessionPool()


def _run_compiler(
    source: bytes, flags: tuple[str, ...], backend: str
) -> tuple[bytes | None, list[Diagnostic]]:
    diagnostics: list[Diagnostic] = []

    @_DIAGNOSTIC_CALLBACK
    def collect(severity: int, text: Any, length: int, _: object) -> None:
        if severity >= _ERROR_SEVERITY:
            diagnostics.append(Diagnostic.parse(ctypes.string_at(text, length).decode()))

    with _sessions.session(flags + _linker_flags(backend)) as session:
        invocation = session.invocation()
        try:
            _enable_callback_diagnostics()(invocation._inv_p, 0, collect, None)
            is_text = not source.startswith(BYTECODE_MAGIC)
            buffer = source + b"\0" if is_text else source
            is_good = invocation.parse_source(Source.wrap_buffer(session, buffer))
            if not is_good or not invocation.execute():
                return None, diagnostics
            return _bytecode(session, invocation), diagnostics
        finally:
            invocation.close()


def _bytecode(session: Session, invocation: Invocation) -> bytes:
    # Only a context that Python owns can outlive what Python holds of the module.
    assert session.context is not None
    lowered = invocation.export_module()
    repair_branches(lowered)
    invocation.import_module(lowered)
    output = Output.open_membuffer()
    invocation.output_vm_bytecode(output)
    return bytes(output.map_memory())


# --- the linker ---------------------------------------------------------------------------------


@cache
def _linker_flags(backend: str) -> tuple[str, ...]:
    """Names the linker: the system's `ld` (0.15 s per program), else the wheel's (0.19 s)."""
    if backend != "cpu":
        return ()
    linker = shutil.which("ld") or str(_bundled_linker())
    return (f"--iree-llvmcpu-system-linker-path={linker}",)


def _bundled_linker() -> Path:
    """Writes a script that runs the wheel's linker the way IREE calls a system linker."""
    program = Path(ctypes_dl._probe_iree_compiler_dylib()).with_name("iree-lld")
    text = f'#!/bin/sh\nexec "{program}" -flavor gnu "$@"\n'
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    for folder in (cache_directory(), Path(tempfile.gettempdir()) / f"axir-{os.getuid()}"):
        script = folder / f"linker-{digest}.sh"
        try:
            if not (script.exists() and script.read_text() == text):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                temporary = folder / f"linker-{os.getpid()}.temporary"
                temporary.write_text(text)
                temporary.chmod(stat.S_IRWXU)
                temporary.replace(script)
            return script
        except OSError as error:
            _LOGGER.info("no linker script in %s: %s", folder, error)
    return program


# --- files for people ---------------------------------------------------------------------------


def _dump(folder: Path, name: str, source: bytes, flags: Sequence[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    suffix = ".mlirbc" if source.startswith(BYTECODE_MAGIC) else ".mlir"
    file = folder / f"{name}{suffix}"
    file.write_bytes(source)
    command = compile_command(flags, file.name, f"{name}.vmfb")
    (folder / f"{name}.command.txt").write_text(command + "\n")
    return file


def _save_reproducer(source: bytes, flags: Sequence[str], name: str) -> Path | None:
    folders = [cache_directory() / "failures", Path(tempfile.gettempdir()) / "axir-failures"]
    if config.axir_dump_dir:
        folders.insert(0, Path(config.axir_dump_dir))
    for folder in folders:
        try:
            return _dump(folder, f"failed-{name}", source, flags)
        except OSError as error:
            _LOGGER.info("no reproducer in %s: %s", folder, error)
    return None
