"""Calls the compiler: StableHLO in, bytecode of IREE's virtual machine out.

Elsewhere: the choice of flags (`compilation.py`).
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from iree.compiler import ir

from .branch_operands import repair_branches
from .compiler_library import (
    HOST_PHASE,
    Invocation,
    Output,
    Session,
    Source,
    ctypes_dl,
    remove_kernels,
    remove_locations,
    rename_executables,
    set_phases,
)
from .dispatch_marks import mark_dispatches
from .equal_results import NUMBERS_PHASE, part_equal_results
from .kernel_code import freeze_conversions, keep_functions
from .own_reads import give_own_reads
from .passed_buffers import keep_passed_buffers, remove_argument_checks
from .program_order import FLOW_PHASE, keep_order
from .roundings import round_products
from .stream_passes import STREAM_PHASE, give_memory

BYTECODE_MAGIC = b"ML\xefR"

# A session holds uniqued types and attributes until it ends; a fresh one costs 3 ms.
_COMPILATIONS_PER_SESSION = 200
_ERROR_SEVERITY = 2
MARK = "mark"
# A flag of the tool `iree-compile`, not of a session: the C API sets it by a function.
UNVERIFIED = "--verify=false"
# A flag of this folder: each operation that works in place works on a copy.
KEEP_COPIES = "--axir-keep-copies"
# The compiler stops after these. In the second to last, executables are translated to machine code,
# side by side.
_PHASES = (NUMBERS_PHASE, "dispatch-creation", FLOW_PHASE, "executable-sources", HOST_PHASE, "end")
_PARALLEL_PHASE = _PHASES[-2]
_DIAGNOSTIC_CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_void_p
)


class RejectedFlagsError(ValueError):
    """The compiler does not know a flag, or not its value."""


@cache
def _enable_callback_diagnostics() -> ctypes._NamedFuncPointer:
    # The wheel's Python API prints diagnostics; the C API hands them over.
    function = ctypes_dl._dylib.ireeCompilerInvocationEnableCallbackDiagnostics
    function.restype = None
    function.argtypes = [ctypes.c_void_p, ctypes.c_int, _DIAGNOSTIC_CALLBACK, ctypes.c_void_p]
    return function


@cache
def _set_verification() -> ctypes._NamedFuncPointer:
    function = ctypes_dl._dylib.ireeCompilerInvocationSetVerifyIR
    function.restype = None
    function.argtypes = [ctypes.c_void_p, ctypes.c_bool]
    return function


_process_flags_lock = threading.Lock()


@cache
def _set_process_flags(flags: tuple[str, ...]) -> None:
    # These are not a session's to set, and the compiler accepts them only once.
    ctypes_dl._initializeGlobalCL("axir", *flags)


class Invoker:
    """Compiles in this process; threads may compile at the same time, each in a separate session.

    Args:
        process_flags: flags that the compiler takes once for the whole process.
    """

    def __init__(self, process_flags: tuple[str, ...]) -> None:
        self._process_flags = process_flags
        # Idle sessions by their flags. A session compiles one module at a time.
        self._idle: dict[tuple[str, ...], list[tuple[Session, int]]] = {}

    def compile(
        self,
        source: bytes,
        flags: tuple[str, ...],
        report: Callable[[str], None],
        option: bool | str = True,
    ) -> bytes | None:
        """Compiles a module, as text or bytecode; releases the interpreter lock meanwhile.

        Args:
            source: the module.
            flags: the session's flags, and perhaps `UNVERIFIED`.
            report: called with each error that the compiler diagnoses; also with the reason
                (`UNPROVEN`) if it cannot be proven which memory the program reads.
            option: whether the program checks its arguments; or `MARK`, if it marks the begin and
                end of its dispatches, and checks them.

        Returns:
            The binary; None if there are errors.

        Raises:
            RejectedFlagsError: the flags are not legal.
            WrongMemoryError: the program would read memory with wrong contents.
        """
        verifies, keeps_copies, flags = _own_flags(flags)
        with (
            self._session(flags) as session,
            _invocation(session, source, report, verifies) as invocation,
        ):
            try:
                if invocation is None or not _execute(
                    session,
                    invocation,
                    _Ways(option == MARK, verifies, keeps_copies, report),
                ):
                    return None
                return _bytecode(invocation, checks_arguments=bool(option))
            except (ir.MLIRError, ValueError, RuntimeError) as error:
                # A pass made illegal IR, or the bytecode cannot be written.
                report(str(error))
                return None

    def compile_object(
        self, source: bytes, flags: tuple[str, ...], report: Callable[[str], None], prefix: str
    ) -> tuple[bytes, bytes] | None:
        """Compiles a module's kernels to an object file, which the caller links.

        Args:
            source: the module.
            flags: the session's flags, with a path for the object file.
            report: called with each error that the compiler diagnoses.
            prefix: the prefix of the object file's symbols.

        Returns:
            The program that calls the kernels, as text of the phase `executable-targets` without
            their code, and the object file; None if there are errors.

        Raises:
            RejectedFlagsError: the flags are not legal.
            WrongMemoryError: the program would read memory with wrong contents.
        """
        import tempfile  # late: takes 5 ms, and few programs are object files

        with tempfile.TemporaryDirectory(prefix="axir-") as folder:
            path = os.path.join(folder, "kernels.o")
            # Who builds a model waits for a C++ compiler, too: each pass is looked at.
            _, keeps_copies, flags = _own_flags(flags)
            session = self._new_session(
                (*flags, f"--iree-llvmcpu-static-library-output-path={path}")
            )
            with _invocation(session, source, report, verifies=True) as invocation:
                if invocation is None:
                    return None
                ways = _Ways(False, True, keeps_copies, report)
                start = None
                for phase in (NUMBERS_PHASE, FLOW_PHASE, HOST_PHASE):
                    set_phases(invocation, start=start, to=phase)
                    if not invocation.execute():
                        return None
                    lowered = invocation.export_module()
                    start = _mend(lowered, phase, ways)
                    if phase != HOST_PHASE:
                        invocation.import_module(lowered)
                rename_executables(lowered, prefix)
                program = remove_kernels(lowered)
                remove_locations(lowered)
                invocation.import_module(lowered)
                set_phases(invocation, start=HOST_PHASE, to="end")
                if not invocation.execute():
                    return None
            if not os.path.exists(path):  # a program without kernels
                return program, b""
            with open(path, "rb") as file:
                return program, file.read()

    @contextmanager
    def _session(self, flags: tuple[str, ...]) -> Iterator[Session]:
        """Lends a session with these flags."""
        try:
            session, count = self._idle.setdefault(flags, []).pop()
        except IndexError:
            session, count = self._new_session(flags), 0
        yield session
        if count + 1 < _COMPILATIONS_PER_SESSION:
            self._idle.setdefault(flags, []).append((session, count + 1))

    def _new_session(self, flags: tuple[str, ...]) -> Session:
        with _process_flags_lock:
            _set_process_flags(self._process_flags)
        session = Session()
        try:
            session.set_flags(*flags)
        except ValueError as error:
            raise RejectedFlagsError(str(error)) from None
        return session


def _own_flags(flags: tuple[str, ...]) -> tuple[bool, bool, tuple[str, ...]]:
    """Splits flags: whether to verify the passes' results, to keep copies, the session's."""
    rest = tuple(flag for flag in flags if flag not in (UNVERIFIED, KEEP_COPIES))
    return UNVERIFIED not in flags, KEEP_COPIES in flags, rest


@contextmanager
def _invocation(
    session: Session, source: bytes, report: Callable[[str], None], verifies: bool
) -> Iterator[Invocation | None]:
    """Yields an invocation that has read a module; None if it cannot be read."""

    @_DIAGNOSTIC_CALLBACK
    def collect(severity: int, text: ctypes.c_void_p, length: int, _: object) -> None:
        if severity >= _ERROR_SEVERITY:
            report(ctypes.string_at(text, length).decode(errors="replace"))

    invocation = session.invocation()
    try:
        _enable_callback_diagnostics()(invocation._inv_p, 0, collect, None)
        is_text = not source.startswith(BYTECODE_MAGIC)
        buffer = source + b"\0" if is_text else source
        is_good = invocation.parse_source(Source.wrap_buffer(session, buffer))
        _set_verification()(invocation._inv_p, verifies)  # the parsed module is verified always
        yield invocation if is_good else None
    finally:
        invocation.close()


class _Ways(NamedTuple):
    """How to compile: see `Invoker.compile`."""

    marks_dispatches: bool
    verifies: bool
    keeps_copies: bool
    report: Callable[[str], None]


def _execute(session: Session, invocation: Invocation, ways: _Ways) -> bool:
    """Compiles to a VM module; tells whether that went well.

    Threads help where many executables are translated. The passes before and after see one module
    and a function or two: spread over threads, they take 15% more processor time and the same
    wall-clock time.

    Raises:
        ir.MLIRError: a pass made illegal IR, although each pass succeeded: only the last result of
            a phase was verified.
        WrongMemoryError: the program would read memory with wrong contents.
    """
    start = None
    for phase in _PHASES:
        if not _compile_between(session, invocation, start, phase):
            return False
        # Only a context that Python owns can outlive Python's references to the module.
        assert session.context is not None
        module = invocation.export_module()
        if not ways.verifies:
            module.verify()
        start = _mend(module, phase, ways)
        invocation.import_module(module)
    return True


def _mend(module: ir.Operation, phase: str, ways: _Ways) -> str:
    """Mends the result of a phase in place; returns the phase to continue from.

    Raises:
        WrongMemoryError: the program would read memory with wrong contents.
    """
    if phase == NUMBERS_PHASE:
        part_equal_results(module)
    elif phase == FLOW_PHASE:
        give_own_reads(module)
        keep_order(module)
        if ways.marks_dispatches:
            mark_dispatches(module)
        give_memory(module, ways.verifies, ways.keeps_copies, ways.report)
        return STREAM_PHASE
    elif phase == HOST_PHASE:
        round_products(module)
        freeze_conversions(module)
        keep_functions(module)
    return phase


def _compile_between(
    session: Session,
    invocation: Invocation,
    start: str | None,
    end: str,
) -> bool:
    assert session.context is not None
    session.context.enable_multithreading(end == _PARALLEL_PHASE)
    set_phases(invocation, start=start, to=end)
    return invocation.execute()


def _bytecode(invocation: Invocation, checks_arguments: bool) -> bytes:
    lowered = invocation.export_module()
    repair_branches(lowered)
    keep_passed_buffers(lowered)
    if not checks_arguments:
        remove_argument_checks(lowered)
    invocation.import_module(lowered)
    output = Output.open_membuffer()
    invocation.output_vm_bytecode(output)
    return bytes(output.map_memory())
