"""Programs of a bundle: its functions compiled for machines, and the choice among them.

A program for CPUs is for a level of x86-64, for any CPU of an architecture (`generic`), or for CPUs
with all features of the CPU that it was compiled on (`host`). IREE's binaries are readable only by
the version that wrote them; for another version, functions are compiled from the module again.
Elsewhere: compiling in general (`axir.runtime`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import TypeVar

from axir._programs.compiled_modules import RUNS_ON, Program, TargetWithFlags
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import ParameterError
from axir.dialect.program.function import Function
from axir.dialect.program.module_writer import embed_captures
from axir.dialect.text.signature import Argument, Signature, attach_reflection
from axir.passes.transforms.lower_to_stablehlo import lower_functions
from axir.passes.transforms.simplify import simplify_function
from axir.runtime import LoadError, Target, check_binary, check_machine, compile_module
from axir.runtime.compiler.architectures import host_architecture, host_cpu_flags
from axir.runtime.compiler.function_compilation import prepare_for_target
from axir.runtime.cpp.emitting.names import unique_names

from .captures import without_parameters
from .manifest import ExportedFunction, Key, ProgramEntry
from .open_sizes import name_of_sizes

_LOGGER = logging.getLogger(__name__)
# The features of x86-64's levels that compiled code may use, by Linux's names:
# https://gitlab.com/x86-psABIs/x86-64-ABI
_LEVEL_2 = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
_LEVEL_3 = f"{_LEVEL_2} avx avx2 bmi1 bmi2 f16c fma abm movbe"
_LEVEL_4 = f"{_LEVEL_3} avx512f avx512bw avx512cd avx512dq avx512vl"
_FEATURES = {
    "generic": "",
    "x86-64": "",
    "x86-64-v2": _LEVEL_2,
    "x86-64-v3": _LEVEL_3,
    "x86-64-v4": _LEVEL_4,
}
# Beginnings of the names of features that compiled code uses; the CPU's features among them are
# recorded.
_USED = tuple(
    "sse ssse pni avx fma f16c bmi abm popcnt movbe amx cx16 lahf_lm vaes vpclmul aes pclmul gfni "
    "sha_ni adx".split()
)
# Other flags give another cache key, because the cache's key ignores lines.
_WITHOUT_LINES = (
    "--iree-vm-bytecode-module-strip-source-map=true",
    "--iree-llvmcpu-debug-symbols=false",
)


_Exported = TypeVar("_Exported", bound=ExportedFunction)


def target_of(target: Target) -> dict[str, str]:
    """Returns the manifest's description of a target.

    Raises:
        ParameterError: if it is a CPU with features that are not known here.
    """
    described = {"platform": target.backend, "iree": metadata.version("iree-base-compiler")}
    if target.backend != "cpu":
        return {**described, "gpu": target.gpu_architecture or ""}
    if target.cpu == "host":
        used = sorted(flag for flag in host_cpu_flags() if flag.startswith(_USED))
        features = " ".join(used)
    elif target.cpu == "generic" or (target.cpu in _FEATURES and target.architecture == "x86_64"):
        features = _FEATURES[target.cpu]
    else:
        raise ParameterError(
            f"A bundle cannot have a program for the CPU {target.cpu!r}: where it would run is not "
            "known when the bundle is opened.",
            f"Choose host or one of {', '.join(_FEATURES)} (of other architectures, generic), or "
            "compile the function to a .vmfb.",
            where="",
        )
    machine = target.architecture
    return {**described, "cpu": target.cpu, "machine": machine, "features": features}


def compile_functions(
    functions: Mapping[str, ExportedFunction], target: Target, file: str, debug_info: bool = True
) -> tuple[ProgramEntry, bytes]:
    """Compiles functions, all into one program; those with open rows for the numbers of rows named.

    Args:
        functions: By name.
        target: The target of compilation.
        file: The program's name in the bundle.
        debug_info: Whether the program holds the lines of the source.

    Raises:
        ParameterError: if a function has open dimensions, and no sizes of them are named.
        CompileError: if IREE cannot compile one.
    """
    described = target_of(target)
    whole: dict[str, Function] = {}
    signatures: dict[str, Signature] = {}
    symbols: dict[str, dict[Key, str]] = {}
    for name, exported in functions.items():
        for key, fixed in instances(name, exported):
            symbol = name
            if key:  # a function of fixed sizes may have another function's name
                [symbol] = unique_names([_symbol(name, key)], {*functions, *whole})
            symbols.setdefault(name, {})[key] = symbol
            whole[symbol] = _closed(fixed)
            signatures[symbol] = flat_signature(fixed)
    module = lower_functions(whole, target.backend)
    prepare_for_target(module, target)
    attach_reflection(module, signatures, target.backend)
    if not debug_info:
        target = TargetWithFlags(**vars(target), extra=_WITHOUT_LINES)
    binary = compile_module(module if debug_info else str(module), target, next(iter(functions)))
    return ProgramEntry(file, described, symbols), binary


def instances(name: str, exported: _Exported) -> Iterator[tuple[Key, _Exported]]:
    """Yields each number of rows or sizes to compile for, and the function for it.

    Raises:
        ParameterError: if a dimension is open, and no sizes are given.
    """
    if exported.batch is not None:
        if not exported.batch.sizes:
            raise ParameterError(
                f"The number of rows of {name!r} is open.",
                "Say for which to compile: --batch 1,8,64, or exported.with_rows(1, 8, 64).",
                where="",
            )
        for count in exported.batch.sizes:
            yield count, exported.of_rows(count)
    elif exported.open is not None:
        if not exported.open.sizes:
            some = ",".join(f"{symbol}=8" for symbol in exported.open.symbols)
            raise ParameterError(
                f"The dimensions {', '.join(exported.open.symbols)} of {name!r} are open.",
                f"Say for which sizes to compile: --size {some}, or "
                f"exported.with_sizes({some.replace(',', ', ')}).",
                where="",
            )
        for sizes in exported.open.sizes:
            yield sizes, exported.of_sizes(**dict(sizes))
    else:
        yield 0, exported


def _symbol(name: str, key: Key) -> str:
    return f"{name}_rows{key}" if isinstance(key, int) else name_of_sizes(name, key)


def flat_signature(exported: ExportedFunction) -> Signature:
    """Returns the operands of the module's function: the arguments, then the parameters."""
    entry = exported.entry
    parameters = (Argument(name, exported.parameters[name].type) for name in entry.parameters)
    arguments = (*entry.signature.arguments, *parameters)
    return Signature(arguments, entry.signature.results, None, None, True)


def _closed(exported: ExportedFunction) -> Function:
    """Returns a function of the arguments and the parameters, without captures."""
    whole = without_parameters(exported.function, len(exported.parameters))
    return embed_captures(simplify_function(whole, is_final=True))


class Programs:
    """The programs of a bundle, loaded when they are first called.

    Args:
        entries: Their entries in the manifest.
        read: Returns the content of a file of the bundle, checked.
    """

    def __init__(self, entries: Sequence[ProgramEntry], read: Callable[[str], bytes | memoryview]):
        self.entries = tuple(entries)
        self._read = read
        self._lock = threading.Lock()
        self._loaded: dict[tuple[str, UserObject], Program | None] = {}
        # By function, number of rows or sizes, and device.
        self._chosen: dict[tuple[str, Key, UserObject], tuple[Program, str] | None] = {}

    def only(self, names: Container[str]) -> Programs:
        """Returns the programs, only for these functions."""
        kept = []
        for entry in self.entries:
            functions = {n: sizes for n, sizes in entry.functions.items() if n in names}
            if functions:
                kept.append(replace(entry, functions=functions))
        return Programs(kept, self._read)

    def content(self) -> tuple[tuple[ProgramEntry, bytes | memoryview], ...]:
        """Returns the programs with their entries in the manifest."""
        return tuple((entry, self._read(entry.file)) for entry in self.entries)

    def run(
        self, name: str, count: Key, device: object, values: Sequence[ConcreteArray]
    ) -> list[ConcreteArray] | None:
        """Runs a function on arguments and parameters; returns None if no program fits.

        Args:
            name: The function's name.
            count: Its number of rows, or its sizes; 0 if nothing is open.
            device: Where to run.
            values: The arguments, then the parameters.
        """
        key = (name, count, device)
        if key not in self._chosen:
            self._chosen[key] = self._choose(*key)
        chosen = self._chosen[key]
        return None if chosen is None else chosen[0].run(values, chosen[1])

    def _choose(self, name: str, count: Key, device: UserObject) -> tuple[Program, str] | None:
        """Returns the program for a function, and the function's name in it."""
        fitting = [
            entry
            for entry in self.entries
            if count in entry.functions.get(name, ()) and fits(entry.target, device.platform)
        ]
        # The one that asks most of the machine is the fastest.
        for entry in sorted(fitting, key=_demand, reverse=True):
            program = self._program(entry, device)
            if program is not None:
                return program, entry.functions[name][count]
        return None

    def _program(self, entry: ProgramEntry, device: object) -> Program | None:
        key = (entry.file, device)
        with self._lock:
            if key not in self._loaded:
                self._loaded[key] = self._load(entry, device)
            return self._loaded[key]

    def _load(self, entry: ProgramEntry, device: object) -> Program | None:
        binary = bytes(self._read(entry.file))
        try:
            check_binary(binary, entry.file)
            check_machine(binary, entry.file)
            return Program(binary, None, device)
        except LoadError as error:
            _LOGGER.info("%s is compiled again: %s", entry.file, error.message)
            return None


def _demand(entry: ProgramEntry) -> int:
    if entry.target["platform"] in RUNS_ON:
        return -1
    return len(entry.target.get("features", "").split())


def fits(target: Mapping[str, str], on: str) -> bool:
    """Tells whether a program for a target runs here, on a platform.

    >>> here = {"platform": "cpu", "machine": host_architecture(), "features": ""}
    >>> version = metadata.version("iree-base-runtime")
    >>> fits({**here, "iree": version}, "cpu"), fits({**here, "iree": "0.1"}, "cpu")
    (True, False)
    """
    platform = target.get("platform", "")
    if RUNS_ON.get(platform, platform) != on or target.get("iree") != metadata.version(
        "iree-base-runtime"
    ):
        return False
    if platform != "cpu":
        return True
    is_same = target.get("machine") == host_architecture()
    return is_same and set(target.get("features", "").split()) <= host_cpu_flags()
