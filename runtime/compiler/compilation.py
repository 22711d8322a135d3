"""Compiles StableHLO with IREE: `compile_module(module, target) -> bytes`.

Results go through the disk cache (`cache.py`); threads that want the same program share one run of
the compiler. Elsewhere: reading the module (`analysis.py`), the choice of flags (`target.py`), the
compiler itself (`invocation/`) and its processes (`helpers.py`), loading and running
(`runtime/calls/executable.py`).
"""

from __future__ import annotations

import hashlib
import logging
import marshal
import shlex
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from iree.compiler import ir, version

from axir.dialect.core.annotations import Foreign
from axir.dialect.core.config import config
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.single_flight import single_flight
from axir.dialect.core.timeline import (
    CACHE_HIT,
    CACHE_MISS,
    COMPILED,
    REQUEST,
    RETRIEVED,
    span,
    tell_duration,
    tell_event,
    timed,
    timeline,
)
from axir.dialect.text.parsing import set_trial
from axir.runtime.compiler.invocation.stream_passes import UNPROVEN, WrongMemoryError
from axir.runtime.device.process_state import abandon, call_in_forked_child
from axir.runtime.errors import CompileError, WrongMemoryOrderError

from .analysis import analyze
from .binaries import linker_flags
from .cache import (
    ProgramCache,
    cache_directory,
    code_fingerprint,
    invocation_fingerprint,
    program_cache,
)
from .diagnostics import CompilerEndedError, Diagnostic, compile_error
from .helpers import HelperStartError, helpers
from .invocation.invoker import (
    BYTECODE_MAGIC,
    KEEP_COPIES,
    MARK,
    Invoker,
    RejectedFlagsError,
)
from .target import PROCESS_FLAGS, Target, needs_own_process, process_flags
from .waiting import announced_if_slow, passes_imported_meanwhile

_LOGGER = logging.getLogger(__name__)
# Part of IREE's message if it has lost a reader of an array that several parts of a program share.
_LOST_READER = "expected to be in an execution region"
# The result of a run of the compiler: a program, or a program and an object file.
_Binary = TypeVar("_Binary", bytes, tuple[bytes, bytes])
_Report: TypeAlias = Callable[[str], None]
_Run: TypeAlias = Callable[[tuple[str, ...], _Report], _Binary | None]
COMPILER_VERSION = str(version.VERSION)


def compile_module(module: ir.Module | str | bytes, target: Target, name: str = "main") -> bytes:
    """Compiles a StableHLO module, which may be text or bytecode, to an IREE binary (`.vmfb`).

    A result in the disk cache is returned instead; its key is the module without source locations,
    the compiler's version, the flags and the CPU. When the optimizing flags make the compiler fail,
    it is asked once more without them.

    Args:
        module: the module; its public functions become the binary's functions.
        target: what to compile for.
        name: the program's name in logs and in the file names of `axir_dump_dir`.

    Raises:
        CompileError: the compiler rejects the module or fails. The text has the first diagnostics,
            the user's line, and the place of a reproducer.
    """
    return _prepared(module.encode() if isinstance(module, str) else module, target, name)[0]()


def text_of(module: ir.Module) -> str:
    """Returns a module's text without source locations."""
    return module.operation.get_asm(enable_debug_info=False, assume_verified=True)


def compile_legalized(
    module: ir.Module,
    target: Target,
    name: str,
    legalize: Callable[[ir.Module], None],
    text: str | None = None,
) -> bytes:
    """Legalizes and compiles a module, unless the cache has the program of an equal module.

    Args:
        module: as for `compile_module`, before it is fit for IREE.
        target: as for `compile_module`.
        name: as for `compile_module`.
        legalize: legalizes the module in place; its result depends only on the module, the target
            and axir's code.
        text: the module's text before any legalization, if `legalize` continues one that has begun.

    Raises:
        CompileError: as for `compile_module`.
    """
    text = text_of(module) if text is None else text
    known = find_legalized(text, target, name)
    return begin_legalized(module, target, name, legalize, text)() if known is None else known


def find_legalized(text: str, target: Target, name: str) -> bytes | None:
    """Returns the program that `compile_legalized` made of a module, if the cache has it.

    Args:
        text: The module's text before it is legalized.
        target: As for `compile_legalized`.
        name: See there.
    """
    if not may_skip_passes():
        return None
    cache = program_cache()
    program_key = (cache.get(_key_before(text, target)) or b"").decode()
    if not program_key or not cache.path(program_key).exists():
        return None
    with timed(COMPILED, name):
        return look_up(cache, program_key)


def begin_legalized(
    module: ir.Module,
    target: Target,
    name: str,
    legalize: Callable[[ir.Module], None],
    text: str,
) -> Callable[[], bytes]:
    """Reads a module for `compile_legalized`, with the same arguments.

    Returns:
        A function that compiles the program. Any thread may call it, and the caller may change the
        module meanwhile.
    """
    legalize(module)
    compile_it, program_key = _prepared(module, target, name)
    cache = program_cache()

    def compile_and_keep() -> bytes:
        binary = compile_it()
        if may_skip_passes() and cache.path(program_key).exists():
            cache.put(_key_before(text, target), program_key.encode())
        return binary

    return compile_and_keep


def _key_before(text: str, target: Target) -> str:
    """Returns the cache key of a module that is not legalized yet."""
    parts = (COMPILER_VERSION, code_fingerprint(), *_changes(target), repr(target), target.machine)
    return hashlib.sha256("\0".join((*parts, text)).encode()).hexdigest()


def may_skip_passes() -> bool:
    """Tells whether passes may be skipped: no dump, timeline or log asks for their results."""
    passes = logging.getLogger("axir.passes")
    return not config.axir_dump_dir and not timeline.is_on and not passes.isEnabledFor(logging.INFO)


def _prepared(
    source: ir.Module | bytes, target: Target, name: str
) -> tuple[Callable[[], bytes], str]:
    """Reads a module; returns a function that compiles it, and the binary's key in the cache."""
    fingerprint, is_tiled = analyze(source, target)
    flags = target.flags(is_tiled)
    parts = (COMPILER_VERSION, *_changes(target), *process_flags(flags), *flags, target.machine)
    key = hashlib.sha256("\0".join(parts).encode() + b"\0" + fingerprint).hexdigest()
    if config.axir_dump_dir:
        _dump(Path(config.axir_dump_dir), f"{name}-{key[:12]}", _written(source), target, flags)
    cache = program_cache()
    text = _written(source)

    def binary() -> bytes:
        with timed(COMPILED, name):
            known = look_up(cache, key)
            if known is None:
                option = MARK if target.marks_dispatches else target.checks_arguments

                def run(flags: tuple[str, ...], report: _Report) -> bytes | None:
                    return _invoke("compile", text, flags, report, option)

                start = time.perf_counter()
                with announced_if_slow(name, text), span("IREE's compiler", "compiler"):
                    known = _compile(text, target, flags, f"{name}-{key[:12]}", run)
                if is_worth_keeping(known, time.perf_counter() - start):
                    with span("store in the cache", "cache", bytes=len(known)):
                        cache.put(key, known)
        return known

    return lambda: single_flight(("program", key), binary)[0], key


def expect_compilation() -> None:
    """Starts a helper ahead of a compilation, while a function is being traced."""
    if config.axir_isolate_compiler != "never":
        helpers.prepare()


def compile_object(
    module: ir.Module, target: Target, prefix: str, name: str = "main"
) -> tuple[str, bytes]:
    """Compiles a StableHLO module for a CPU to an object file, and the program that calls it.

    Cached and repeated without optimizations as by `compile_module`.

    Args:
        module: the module; its public functions become the program's functions.
        target: what to compile for, with the linkage "object".
        prefix: the prefix of the object file's symbols.
        name: as for `compile_module`.

    Returns:
        The program as text of IREE's phase `executable-targets`, without the code of its kernels,
        and the object file, which is empty if the program has no kernels.

    Raises:
        CompileError: as for `compile_module`.
    """
    is_tiled = analyze(module, target)[1]
    flags = target.flags(is_tiled)
    kind = "object without lines"
    parts = (
        COMPILER_VERSION,
        invocation_fingerprint(),
        kind,
        prefix,
        *process_flags(flags),
        *flags,
        target.machine,
    )
    text = _written(module)  # with locations, because the program contains them
    key = hashlib.sha256("\0".join(parts).encode() + b"\0" + text).hexdigest()
    if config.axir_dump_dir:
        _dump(Path(config.axir_dump_dir), f"{name}-{key[:12]}", text, target, flags)
    cache = program_cache()

    def compiled() -> tuple[bytes, bytes]:
        known = look_up(cache, key)
        if known is not None:
            return marshal.loads(known)

        def run(flags: tuple[str, ...], report: _Report) -> tuple[bytes, bytes] | None:
            return _invoke("compile_object", text, flags, report, prefix)

        with announced_if_slow(name, text), timed(COMPILED, name):
            made = _compile(text, target, flags, f"{name}-{key[:12]}", run)
        cache.put(key, marshal.dumps(made))
        return made

    program, content = single_flight(("object", key), compiled)[0]
    return program.decode(), content


def look_up(cache: ProgramCache, key: str) -> bytes | None:
    """Returns the cache's entry for a key; tells listeners whether the cache had it."""
    tell_event(REQUEST)
    start = time.perf_counter()
    with span("look up in the cache", "cache"):
        known = cache.get(key)
    tell_event(CACHE_MISS if known is None else CACHE_HIT)
    if known is not None:
        helpers.dismiss()
        tell_duration(RETRIEVED, time.perf_counter() - start)
    return known


def is_worth_keeping(binary: bytes, seconds: float) -> bool:
    """Tells whether a program is large enough, and took long enough to compile, to be cached."""
    least = config.jax_persistent_cache_min_compile_time_secs
    return seconds >= least and len(binary) >= config.jax_persistent_cache_min_entry_size_bytes


def _changes(target: Target) -> tuple[str, ...]:
    """Names axir's changes to the compiler's result, as a part of the program's key."""
    if target.marks_dispatches:
        return (invocation_fingerprint(), "marked")
    return (invocation_fingerprint(), "checked" if target.checks_arguments else "unchecked")


def _written(source: ir.Module | bytes) -> bytes:
    """Returns the module as the compiler takes it, with source locations."""
    if isinstance(source, bytes):
        return source
    return source.operation.get_asm(enable_debug_info=True).encode()


def compile_command(flags: Sequence[str], source: str, output: str) -> str:
    """Returns the command line that compiles a file as `compile_module` compiles a module."""
    return shlex.join(["iree-compile", *process_flags(tuple(flags)), *flags, source, "-o", output])


def _compile(
    source: bytes,
    target: Target,
    flags: tuple[str, ...],
    name: str,
    run: _Run[_Binary],
) -> _Binary:
    outcome = _run_proven(run, flags, target, name)
    if outcome.binary is not None:
        return outcome.binary
    plain_flags = target.plain.flags()
    if plain_flags != flags:
        plain = _run_proven(run, plain_flags, target, name)
        if plain.binary is not None:
            reason = outcome.crash or outcome.diagnostics[:1]
            _LOGGER.info("%s compiles without optimizations only: %s", name, reason)
            return plain.binary
    reproducer = _save_reproducer(source, target, flags, name)
    if outcome.wrong:
        raise _wrong_memory_error(outcome.wrong, reproducer)
    raise compile_error(outcome.diagnostics, reproducer, outcome.crash)


def _wrong_memory_error(text: str, reproducer: Path | None) -> WrongMemoryOrderError:
    where = "nowhere, for no folder can be written" if reproducer is None else str(reproducer)
    return WrongMemoryOrderError(
        "IREE's compiler made a program that would read memory which holds something else than is "
        f"meant, with copies and without: {text}.",
        "Evaluate the function without jit (`disable_jit`, or "
        "axir_on_compile_failure='evaluate'), and report it with the module, which is saved as "
        f"{where}.",
    )


# --- running the compiler -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Outcome(Generic[_Binary]):
    """The result of a run of the compiler: a binary, or its diagnostics, or its crash."""

    binary: _Binary | None
    diagnostics: list[Diagnostic]
    crash: CompilerEndedError | None = None
    wrong: str = ""


def _run_proven(
    run: _Run[_Binary], flags: tuple[str, ...], target: Target, name: str
) -> _Outcome[_Binary]:
    """Runs the compiler; again, with a copy of all that is worked on in place, if that is wrong.

    IREE also loses readers of an array filled with a number, and then refuses the program. The
    second run mends this as well, because it gives each part of the program separate fills.
    """
    outcome = _run_compiler(run, flags, target)
    if outcome.wrong:
        _LOGGER.warning(
            "%s is compiled again with a copy of each array that is updated in place, for IREE "
            "made a program that would compute something else: %s",
            name,
            outcome.wrong,
        )
    elif any(_LOST_READER in diagnostic.text for diagnostic in outcome.diagnostics):
        _LOGGER.info("%s is compiled again with separate fills: %s", name, _LOST_READER)
    else:
        return outcome
    return _run_compiler(run, (*flags, KEEP_COPIES), target)


def _run_compiler(run: _Run[_Binary], flags: tuple[str, ...], target: Target) -> _Outcome[_Binary]:
    diagnostics: list[Diagnostic] = []

    def report(text: str) -> None:
        if text.startswith(UNPROVEN):
            _LOGGER.info("what a program reads in memory is %s", text)
        else:
            diagnostics.append(Diagnostic.parse(text))

    try:
        binary = run(flags + (linker_flags() if target.uses_linker else ()), report)
    except CompilerEndedError as crash:
        return _Outcome(None, diagnostics, crash)
    except WrongMemoryError as error:
        return _Outcome(None, diagnostics, wrong=str(error))
    except RejectedFlagsError as error:
        raise ParameterError(
            f"iree-compile does not accept the flags: {' '.join(str(error).split())}.",
            "`iree-compile --help` lists them.",
            where="",
        ) from None
    return _Outcome(binary, diagnostics)


def _invoke(
    method: str,
    source: bytes,
    flags: tuple[str, ...],
    report: _Report,
    option: bool | str,
) -> Foreign:
    """Compiles in a helper or in this process, as the option `axir_isolate_compiler` says.

    `method` is one that helpers and `Invoker` have. Compilations that need other process-wide flags
    than the rest always run in a helper, since a process has one set of such flags.
    """
    choice = config.axir_isolate_compiler
    if choice != "never" or needs_own_process(flags):
        try:
            with passes_imported_meanwhile():
                return getattr(helpers, method)(source, flags, report, option)
        except HelperStartError as error:
            if helpers.is_closed:
                raise CompileError("Nothing is compiled while the interpreter ends.") from error
            if choice == "always" or needs_own_process(flags):
                raise CompileError(
                    f"The compiler's helper process does not start: {error}.",
                    "Set axir_isolate_compiler to 'auto' or 'never' to compile in this process, "
                    "which programs for Vulkan cannot be.",
                ) from error
            _LOGGER.warning("compiling in this process, for no helper process starts: %s", error)
    return getattr(_invoker(), method)(source, flags, report, option)


def _try_to_read(bytecode: bytes) -> str | None:
    """Reads bytecode in a helper; returns how that crashed, if it did."""
    if config.axir_isolate_compiler == "never":
        return None
    try:
        helpers.try_to_read(bytecode)
    except CompilerEndedError as crash:
        return crash.ending
    except HelperStartError as error:
        _LOGGER.warning("bytecode is read without a trial, for no helper starts: %s", error)
    return None


set_trial(_try_to_read)


@cache
def _invoker() -> Invoker:
    return Invoker(PROCESS_FLAGS)


def _forget_invoker() -> None:
    abandon(_invoker())
    _invoker.cache_clear()


call_in_forked_child(_forget_invoker)


# --- files for people ---------------------------------------------------------------------------


def _dump(folder: Path, name: str, source: bytes, target: Target, flags: Sequence[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    suffix = ".mlirbc" if source.startswith(BYTECODE_MAGIC) else ".mlir"
    file = folder / f"{name}{suffix}"
    file.write_bytes(source)
    command = compile_command(flags, file.name, f"{name}.vmfb")
    (folder / f"{name}.command.txt").write_text(command + "\n")
    return file


def _save_reproducer(source: bytes, target: Target, flags: Sequence[str], name: str) -> Path | None:
    folders = [cache_directory() / "failures", Path(tempfile.gettempdir()) / "axir-failures"]
    if config.axir_dump_dir:
        folders.insert(0, Path(config.axir_dump_dir))
    for folder in folders:
        try:
            return _dump(folder, f"failed-{name}", source, target, flags)
        except OSError as error:
            _LOGGER.info("no reproducer in %s: %s", folder, error)
    return None
