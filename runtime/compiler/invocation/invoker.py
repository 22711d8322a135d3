"""Calls the compiler: StableHLO in, bytecode of IREE's virtual machine out.

What does not live here: what is compiled with which flags (`compilation.py`).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from iree.compiler.api import Invocation, Output, Session, Source, ctypes_dl

from .argument_checks import remove_argument_checks
from .branch_operands import repair_branches

BYTECODE_MAGIC = b"ML\xefR"

# Sessions hold uniqued types and attributes for good; a fresh one costs 3 ms.
_COMPILATIONS_PER_SESSION = 200
_ERROR_SEVERITY = 2
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


_process_flags_lock = threading.Lock()


@cache
def _set_process_flags(flags: tuple[str, ...]) -> None:
    # These are not a session's to set, and the compiler accepts them only once.
    ctypes_dl._initializeGlobalCL("axir", *flags)


class Invoker:
    """Compiles in this process; threads may compile side by side, each in a session of its own.

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
        checks_arguments: bool = True,
    ) -> bytes | None:
        """Compiles a module, as text or bytecode; releases the interpreter lock meanwhile.

        Args:
            source: the module.
            flags: those of the session.
            report: called with each error that the compiler diagnoses.
            checks_arguments: whether the program looks at what it is called with.

        Returns:
            The binary; None if there are errors.

        Raises:
            RejectedFlagsError: the flags are not legal.
        """

        @_DIAGNOSTIC_CALLBACK
        def collect(severity: int, text: ctypes.c_void_p, length: int, _: object) -> None:
            if severity >= _ERROR_SEVERITY:
                report(ctypes.string_at(text, length).decode(errors="replace"))

        with self._session(flags) as session:
            invocation = session.invocation()
            try:
                _enable_callback_diagnostics()(invocation._inv_p, 0, collect, None)
                is_text = not source.startswith(BYTECODE_MAGIC)
                buffer = source + b"\0" if is_text else source
                is_good = invocation.parse_source(Source.wrap_buffer(session, buffer))
                if not is_good or not invocation.execute():
                    return None
                return _bytecode(session, invocation, checks_arguments)
            except (ValueError, RuntimeError) as error:  # the bytecode cannot be written
                report(str(error))
                return None
            finally:
                invocation.close()

    @contextmanager
    def _session(self, flags: tuple[str, ...]) -> Iterator[Session]:
        """Lends a session with these flags."""
        try:
            session, count = self._idle.setdefault(flags, []).pop()
        except IndexError:
            with _process_flags_lock:
                _set_process_flags(self._process_flags)
            session, count = Session(), 0
            try:
                session.set_flags(*flags)
            except ValueError as error:
                raise RejectedFlagsError(str(error)) from None
        yield session
        if count + 1 < _COMPILATIONS_PER_SESSION:
            self._idle.setdefault(flags, []).append((session, count + 1))


def _bytecode(session: Session, invocation: Invocation, checks_arguments: bool) -> bytes:
    # Only a context that Python owns can outlive what Python holds of the module.
    assert session.context is not None
    lowered = invocation.export_module()
    repair_branches(lowered)
    if not checks_arguments:
        remove_argument_checks(lowered)
    invocation.import_module(lowered)
    output = Output.open_membuffer()
    invocation.output_vm_bytecode(output)
    return bytes(output.map_memory())
