"""Compiled modules: makes callable programs from saved modules and `.vmfb` files.

The command line uses it, and modules without a jaxpr: StableHLO of other programs, and programs
compiled ahead of time. Elsewhere: modules that can be transformed (`frontend/export.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from axir._arguments.arguments import to_value
from axir._trees import text as tree_text
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import DTypeError, ParameterError, ParseError, ShapeError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.program.rules import Value
from axir.dialect.text.file_kinds import is_program
from axir.dialect.text.module_reader import parse_module, read_file, read_module
from axir.dialect.text.parsing import refuse_other_kinds, verify_operations
from axir.dialect.text.portable_artifacts import is_portable_artifact, to_stablehlo
from axir.dialect.text.resources import write_out
from axir.dialect.text.signature import (
    Argument,
    Signature,
    attach_reflection,
    reflected_signature,
    reflected_target,
    signatures,
)
from axir.dialect.text.summary import summarize
from axir.passes.framework.pipeline import run_passes
from axir.passes.transforms.lower_to_stablehlo import check_sizes_known
from axir.runtime import (
    Executable,
    LoadError,
    Target,
    check_binary,
    check_machine,
    compile_module,
    default_device,
    devices,
)
from axir.runtime import Program as LoadedProgram
from axir.runtime.calls.arguments import buffer_of
from axir.runtime.compiler.function_compilation import prepare_for_target


def conform(value: object, argument: Argument) -> UserObject:
    """Returns a value as an array or tracer of the type that a saved function takes.

    Python scalars take the required dtype; other values must have it.

    Raises:
        ShapeError, DTypeError: if the value has another shape or dtype.
    """
    wanted = argument.type
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype == wanted.dtype:
        value = ConcreteArray(ShapedArray(value.shape, value.dtype), np.asarray(value))
    else:
        value = to_value(value, lambda: f"Argument {argument.name!r}")
    if value.type.shape != wanted.shape:
        raise ShapeError(
            f"Argument {argument.name!r} must have shape {wanted.shape}, not {value.type.shape}.",
            "A saved function takes the shapes it was exported for: export it again for others, "
            "or vectorize it with vmap.",
        )
    if value.type.dtype == wanted.dtype:
        return value
    if (
        value.type.weak_type
        and dtypes.promote([(value.type.dtype, True), (wanted.dtype, False)])[0] == wanted.dtype
    ):
        return convert_element_type(value, wanted.dtype)
    is_narrowed = dtypes.canonicalize_dtype(wanted.dtype) != wanted.dtype
    raise DTypeError(
        f"Argument {argument.name!r} must have dtype {wanted.dtype}, not {value.type.dtype}.",
        "Arrays of 64 bits need the option jax_enable_x64: JAX_ENABLE_X64=1, or "
        "axir.config.update('jax_enable_x64', True) at the beginning."
        if is_narrowed
        else f"Convert it: {argument.name}.astype({str(wanted.dtype)!r}).",
    )


# Arguments ----------------------------------------------------------------------------------------


# The devices that programs for other targets run on.
RUNS_ON = {"vmvx": "cpu"}
# Targets that run only on other machines, with their names in IREE's runtime.
ELSEWHERE = {"rocm": "hip", "metal": "metal"}


@dataclass(frozen=True)
class TargetWithFlags(Target):
    """A target with further flags of `iree-compile`.

    Attributes:
        extra: The flags; they come after the target's own.
    """

    extra: tuple[str, ...] = ()

    def flags(self, wants_data_tiling: bool = False) -> tuple[str, ...]:
        """Returns the flags of `iree-compile`."""
        return (*Target.flags(self, wants_data_tiling), *self.extra)


def open_module(path: str | Path, text: bytes | None = None) -> tuple[UserObject, str]:
    """Reads a module.

    Args:
        path: The file, or its name if its content is given.
        text: The content.

    Returns:
        The module, and the name of its dialect: `jaxpr`, `stablehlo` or another one.

    Raises:
        OSError: if the file cannot be read.
        ParseError: if the content is not a module.
    """
    if text is None:
        module = read_file(path)
    elif text.strip():
        refuse_other_kinds(text, str(path))
        module = parse_module(text, str(path))
    else:
        raise ParseError(f"{path} is empty.", "Give it the text of a module.", where="")
    if is_portable_artifact(module):
        module = to_stablehlo(module)
    return module, summarize(module).dialect


def verify_module(module: object, dialect: str) -> None:
    """Verifies a module: one of the jaxpr dialect by its rules, any other by MLIR's.

    Raises:
        UnknownOpError, VerificationError: with the line that the wrong op comes from.
        ParseError: if the notation of its arguments' tree cannot be read.
    """
    if dialect == "jaxpr":
        read_module(module)
        for name, found in signatures(module).items():
            tree_text.structure(found.in_tree, len(found.arguments), f"@{name}")
            tree_text.structure(found.out_tree, len(found.results), f"@{name}")
    else:
        verify_operations(module, "the module")


def _check_dialect(dialect: str, name: str) -> None:
    if dialect not in ("jaxpr", "stablehlo"):
        raise ParseError(
            f"{name} is a module of {dialect}; only jaxpr and StableHLO are compiled.",
            "Lower it to StableHLO with the program that wrote it.",
            where="",
        )


def raise_module(module: object, dialect: str) -> str:
    """Raises a module of StableHLO, which is changed, into the jaxpr dialect; returns its dialect.

    Raises:
        RaisingError: if it has an operation without a counterpart in the jaxpr dialect.
    """
    if dialect != "stablehlo":
        return dialect
    run_passes(module, "raise-stablehlo")
    return "jaxpr"


def compile_saved(module: UserObject, dialect: str, target: Target, name: str) -> bytes:
    """Compiles a module, which is changed; the program carries the signatures of its functions.

    Args:
        module: All its public functions can be called in the program.
        dialect: `jaxpr` or `stablehlo`.
        target: The target of compilation.
        name: The program's name in messages.

    Raises:
        CompileError: if IREE cannot compile it.
        VerificationError: if it is not valid.
        RaisingError: if it calls functions of the program that wrote it.
        ParseError: if it is of another dialect, or has no public function.
        ParameterError: if the target has flags that `iree-compile` does not know.
    """
    _check_dialect(dialect, name)
    verify_module(module, dialect)
    if summarize(module).needs_raising:
        dialect = raise_module(module, dialect)
    found = signatures(module)
    if not found:
        raise ParseError(f"{name} has no public function.", "Make one public.", where="")
    for symbol, signature in found.items():
        check_sizes_known(symbol, [argument.type for argument in signature.arguments])
    if dialect == "jaxpr":
        run_passes(module, f"lower-to-stablehlo{{platform={target.backend}}}")
    else:
        write_out(module.operation)
    prepare_for_target(module, target)
    attach_reflection(module, found, target.backend)
    try:
        return compile_module(module, target, name)
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        reason = " ".join(str(error).split())
        raise ParameterError(
            f"iree-compile does not accept the flags: {reason}.",
            "`iree-compile --help` lists them.",
            where="",
        ) from None


class Program:
    """A compiled module on a device; calling it calls its only function, or `main`.

    Attributes:
        signatures: The signatures of its functions, by name.
        device: Its device.
    """

    def __init__(
        self,
        binary: bytes,
        found: Mapping[str, Signature] | None,
        device: UserObject,
        is_marked: bool = False,
    ):
        self.device = device
        self._loaded = LoadedProgram(binary, device, is_marked=is_marked)
        self.signatures = dict(found or binary_signatures(self._loaded))
        self._executables: dict[str, Executable] = {}

    @property
    def main(self) -> str:
        """The default function: the only one, or `main`."""
        return next(iter(self.signatures)) if len(self.signatures) == 1 else "main"

    def signature(self, name: str | None = None) -> Signature:
        """Returns the signature of a function.

        Raises:
            ParameterError: if the function does not exist.
        """
        wanted = name or self.main
        if wanted not in self.signatures:
            raise ParameterError(
                f"There is no function {wanted!r}.",
                f"The functions are {', '.join(self.signatures)}.",
                where="",
            )
        return self.signatures[wanted]

    def run(self, values: Sequence[ConcreteArray], name: str | None = None) -> list[ConcreteArray]:
        """Calls a function with arrays of the types that it takes."""
        name = name or self.main
        results = self.signature(name).results
        if not results:
            return []
        executable = self._executables.get(name)
        if executable is None:
            executable = self._executables[name] = self._loaded.function(name)
        buffers: Sequence[UserObject] = executable([buffer_of(x, self.device) for x in values])
        return [ConcreteArray(r.type, None, b) for r, b in zip(results, buffers, strict=True)]

    def __call__(self, *arguments: Value) -> UserObject:
        """Calls the only function, or `main`; several results are returned as a tuple.

        Raises:
            ParameterError: if the number of arguments is wrong.
            ShapeError, DTypeError: if an argument has another shape or dtype.
        """
        expected = self.signature().arguments
        if len(arguments) != len(expected):
            raise ParameterError(
                f"{self.main} takes {len(expected)} arguments, but got {len(arguments)}.",
                f"They are {', '.join(f'{a.name}: {a.type}' for a in expected)}.",
            )
        results = self.run(list(map(conform, arguments, expected)))
        return results[0] if len(results) == 1 else tuple(results)

    def __repr__(self) -> str:
        return f"<Program of {', '.join(self.signatures)} on {self.device}>"


def binary_signatures(loaded: LoadedProgram) -> dict[str, Signature]:
    """Returns the signatures of a compiled program's functions."""
    return {
        name: reflected_signature(dict(loaded.lookup(name).reflection))
        for name in loaded.function_names
    }


def binary_target(loaded: LoadedProgram) -> str | None:
    """Returns the platform that a program was compiled for, if it is recorded."""
    for name in loaded.function_names:
        return reflected_target(dict(loaded.lookup(name).reflection))
    return None


def open_program(
    path: str | Path,
    device: str | None = None,
    opt_level: int = 2,
    marks_dispatches: bool = False,
) -> Program:
    """Opens a saved module or a compiled program, compiling it if need be.

    Args:
        path: A `.mlir`, `.mlirbc` or `.vmfb` file.
        device: Platform to run on; by default the one that a `.vmfb` was compiled for, else the
            default device's.
        opt_level: The optimization level of a compilation here.
        marks_dispatches: Whether the program marks its dispatches; see `axir.profiler`.

    Raises:
        OSError: if the file cannot be read.
        ParameterError: if dispatches of a program that is compiled already should be marked.
        LoadError: if a `.vmfb` is damaged, or made for another device.
        ParseError, VerificationError, CompileError: as for `compile_saved`.
    """
    path = Path(path)
    if is_program(path):
        if marks_dispatches:
            raise ParameterError(
                f"{path} is compiled already, and does not tell of its dispatches.",
                "Give the module that it was compiled from, or its bundle.",
                where="",
            )
        binary = path.read_bytes()
        check_binary(binary, str(path))
        check_machine(binary, str(path))
        platform = device or binary_target(LoadedProgram(binary, devices("cpu")[0]))
        if platform in ELSEWHERE:
            raise LoadError(
                f"{path} is for {platform}, whose devices axir compiles for and does not use.",
                f"Run it with IREE's runtime: iree-run-module --device={ELSEWHERE[platform]}.",
            )
        platform = RUNS_ON.get(platform, platform) if platform else None
        return Program(binary, None, devices(platform)[0] if platform else default_device())
    module, dialect = open_module(path)
    return compile_program(module, dialect, path.stem, device, opt_level, marks_dispatches)


def compile_program(
    module: object,
    dialect: str,
    name: str,
    device: str | None = None,
    opt_level: int = 2,
    marks_dispatches: bool = False,
) -> Program:
    """Compiles a module for a device of this machine; the module is changed."""
    _check_dialect(dialect, name)
    verify_module(module, dialect)
    if summarize(module).needs_raising:
        dialect = raise_module(module, dialect)
    chosen = devices(device)[0] if device else default_device()
    found = signatures(module)
    target = replace(Target.of_device(chosen, opt_level), marks_dispatches=marks_dispatches)
    binary = compile_saved(module, dialect, target, name)
    return Program(binary, found, chosen, marks_dispatches)
