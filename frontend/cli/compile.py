"""`axir compile`: from a saved module to a program that runs without axir's compiler, or to C++."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from axir._bundles.bundle import open_bundle
from axir._bundles.open_sizes import for_sizes
from axir._cpp.writing import CppOptions, write_cpp
from axir._programs.compiled_modules import TargetWithFlags, compile_saved
from axir._programs.files import write_file
from axir.dialect.text.file_kinds import is_bundle
from axir.runtime import Target, compile_command
from axir.runtime.compiler.target import BACKENDS
from axir.runtime.cpp.emitting.names import identifier

from .bundles import (
    BUNDLE,
    open_functions,
    raised_if_open,
    read_filled,
    refuse_shapes,
    shape_option,
    size_option,
)
from .group import JobError, Verb, module_argument, note, verbose_option
from .outputs import is_stream, progress, timed_steps, write_stream


def emit_cpp(
    file: Path,
    directory: Path,
    rows: Sequence[int],
    shapes: Mapping[str, tuple[int | str, ...]],
    sizes: Sequence[Mapping[str, int]],
    options: CppOptions,
) -> None:
    """Writes functions as the methods of a C++ model: all of a bundle, the public ones of a module.

    Args:
        file: A bundle, or a module of jaxpr or StableHLO.
        directory: The folder to write.
        rows: Sizes of the leading dimension, where it is open.
        shapes: Shapes of arguments that StableHLO leaves open.
        sizes: Combinations of sizes of open dimensions.
        options: As for `axir.export.to_cpp`.
    """
    start = time.perf_counter()
    functions = for_sizes(open_functions(file, shapes), rows, sizes)
    with progress(f"compiling {', '.join(functions)} as C++"):
        files = write_cpp(functions, directory, options)
    size = sum(path.stat().st_size for path in files)
    seconds = time.perf_counter() - start
    note(f"wrote {directory}: {len(files)} files of {size:,} bytes, {seconds:.2f} s")


# C++ ----------------------------------------------------------------------------------------------


# The compiler does not survive the name of a machine that it does not know.
_PROBE = """
import sys
from axir._programs.compiled_modules import TargetWithFlags
from axir.runtime import compile_module
backend, cpu, gpu, triple, *flags = sys.argv[1:]
text = '''func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}'''
try:
    machine = {"triple": triple or None, "extra": tuple(flags)}
    target = TargetWithFlags(backend, cpu, 0, None, gpu or None, **machine)
    compile_module(text, target, "probe")
except Exception as error:  # others are reported where the module itself is compiled
    sys.exit("missing GPU target" in str(error))
"""
_KNOWN = re.compile(r"List of accepted CPUs: (.*)")


@click.command("compile", cls=Verb)
@module_argument
@click.argument("flags", nargs=-1, type=click.UNPROCESSED, metavar="[-- FLAGS]")
@click.option(
    "--target",
    type=click.Choice(BACKENDS),
    default="cpu",
    show_default=True,
    help="What to compile for; vmvx is IREE's virtual machine, for any CPU.",
)
@click.option(
    "--target-cpu",
    metavar="host|generic|NAME,...",
    help="CPU to compile for: this one, any of its architecture, or one that LLVM knows. For C++ "
    "and bundles also several: the fastest that fits is used. By default generic; for C++ on "
    "x86-64 x86-64,x86-64-v3,x86-64-v4.",
)
@click.option(
    "--target-triple",
    metavar="TRIPLE",
    help="Another kind of machine as LLVM calls it: aarch64-linux-gnu, riscv64-linux-gnu.",
)
@click.option("--target-gpu", metavar="NAME", help="GPU as IREE calls it: sm_80, ampere, rdna3.")
@click.option(
    "-O", "opt_level", type=click.IntRange(0, 3), default=2, show_default=True, help="Optimization."
)
@click.option(
    "--batch",
    "rows",
    metavar="N,...",
    help="Sizes of the leading dimension, where it is open: 1,8,64.",
)
@size_option
@shape_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write (.vmfb, .axir), or folder for C++.",
)
@click.option(
    "--emit",
    type=click.Choice(["program", "cpp"]),
    default="program",
    show_default=True,
    help="What to write: a program for IREE's runtime, or C++ that needs none.",
)
@click.option("--name", metavar="NAME", help="Name of the C++ model; by default that of FILE.")
@click.option(
    "--errors",
    type=click.Choice(["exceptions", "status"]),
    default="exceptions",
    show_default=True,
    help="How the C++ tells of failures.",
)
@click.option(
    "--embed-limit",
    type=click.IntRange(min=0),
    default=1 << 20,
    show_default=True,
    metavar="BYTES",
    help="Parameters of up to so many bytes become part of the C++ program.",
)
@click.option("--timing", is_flag=True, help="Print how long each step takes (stderr).")
@verbose_option
def compile_(
    file: Path,
    flags: tuple[str, ...],
    target: str,
    target_cpu: str | None,
    target_triple: str | None,
    target_gpu: str | None,
    opt_level: int,
    rows: str | None,
    sizes: list[dict[str, int]],
    shapes: dict[str, tuple[int | str, ...]],
    output: Path | None,
    emit: str,
    name: str | None,
    errors: str,
    embed_limit: int,
    timing: bool,
) -> None:
    """Compile the module in FILE, of jaxpr or StableHLO, to an IREE program (.vmfb).

    The program keeps the names of its arguments. Flags after -- go to iree-compile; -v prints
    the whole iree-compile command. Of a bundle (.axir) all functions are compiled, and the program
    becomes part of the bundle that is written, beside those for other machines; a call takes the
    one that fits. With --emit cpp a folder is written that has all that a C++ program needs:
    sources, kernels, parameters, CMakeLists.txt and an example.

    Examples:
      axir compile model.axir --target-cpu x86-64-v3 --batch 1,8,64 -o model.axir
      axir compile model.axir --size b=8,t=128 --size b=1,t=128 -o model.axir
      axir compile model.mlir -o model.vmfb
      axir compile model.mlir --target-cpu host -O3 -o model.vmfb
      axir compile model.mlir --target vulkan --target-gpu rdna3 -o model.vmfb
      axir compile model.mlir -o model.vmfb -- --iree-llvmcpu-enable-ukernels=all
      axir compile model.mlir --target-triple aarch64-linux-gnu -o model.vmfb
      axir compile model.axir --emit cpp --target-cpu x86-64,x86-64-v3 -o model_cpp/
    """
    if timing:
        click.get_current_context().call_on_close(timed_steps())
    named = [word.strip() for word in (target_cpu or "").split(",") if word.strip()]
    if target_cpu is not None and not named:
        raise click.UsageError("--target-cpu names no CPU.")
    if emit == "cpp":
        if target != "cpu" or flags:
            raise click.UsageError("--emit cpp takes --target cpu, and no flags of iree-compile.")
        if output is not None and output.suffix in (BUNDLE, ".vmfb", ".cpp", ".hpp", ".o"):
            raise click.UsageError(f"-o {output}: C++ is written to a folder; name one.")
        for cpu in named:
            _check_machine(TargetWithFlags("cpu", cpu, opt_level, triple=target_triple))
        model = name or identifier(file.stem, "model")
        options = CppOptions(model, errors, named or None, target_triple, opt_level, embed_limit)
        emit_cpp(file, output or Path(f"{model}_cpp"), _row_counts(rows), shapes, sizes, options)
        return
    cpus = named or ["generic"]
    if is_bundle(file):
        refuse_shapes(file, shapes)
        machines = [
            Target(target, cpu, opt_level, None, target_gpu, triple=target_triple) for cpu in cpus
        ]
        _compile_bundle(file, machines, _row_counts(rows), sizes, output or file, flags)
        return
    if len(cpus) > 1:
        raise click.UsageError("A .vmfb is for one CPU; bundles (.axir) and C++ take several.")
    if rows is not None:
        raise click.UsageError("--batch is for bundles (.axir); of a module, --size names sizes.")
    only = TargetWithFlags(
        target, cpus[0], opt_level, None, target_gpu, triple=target_triple, extra=flags
    )
    _compile_module(file, only, output, shapes, sizes)


def _compile_module(
    file: Path,
    target: TargetWithFlags,
    output: Path | None,
    shapes: dict[str, tuple[int | str, ...]],
    sizes: list[dict[str, int]],
) -> None:
    """Writes a program."""
    if output is None:
        if str(file) == "-":
            raise click.UsageError("A module from stdin needs -o FILE.")
        output = Path(file.stem + ".vmfb")
    is_shown = is_stream(output)
    if output.suffix != ".vmfb" and not is_shown:
        raise click.UsageError(f"-o {output}: a compiled program is a .vmfb file.")
    module, dialect = raised_if_open(file, *read_filled(file, shapes, sizes))
    if not is_shown and not output.parent.is_dir():
        raise JobError(f"There is no folder {output.parent}.")
    _check_machine(target)
    start = time.perf_counter()
    with progress(f"compiling {file.name} for {target.backend}"):
        binary = compile_saved(module, dialect, target, "stdin" if str(file) == "-" else file.name)
    note(compile_command(target.flags(), "MODULE.mlir", str(output)))
    if is_shown:
        write_stream(output, binary)
        return
    write_file(output, binary)
    seconds = time.perf_counter() - start
    note(f"wrote {output}: {len(binary):,} bytes for {target.backend}, {seconds:.2f} s")


def _compile_bundle(
    file: Path,
    targets: list[Target],
    rows: list[int],
    sizes: list[dict[str, int]],
    output: Path,
    flags: tuple[str, ...],
) -> None:
    """Adds programs to a bundle."""
    if output.suffix != BUNDLE:
        raise click.UsageError(
            f"-o {output}: the program of a bundle is part of a bundle, a .axir file."
        )
    if flags:
        raise click.UsageError("Flags after -- are for modules: a bundle would not keep them.")
    bundle = open_bundle(file)
    start = time.perf_counter()
    names = ", ".join(bundle)
    made = bundle.with_functions(for_sizes(bundle, rows, sizes))
    for target in targets:
        machine = target.cpu if target.backend == "cpu" else ""
        with progress(f"compiling {names} for {target.backend} {machine}".rstrip()):
            made = made.compile(target)
    made.save(output)
    seconds = time.perf_counter() - start
    note(f"wrote {output}: {len(made.programs)} programs of {names}, {seconds:.2f} s")


def _row_counts(rows: str | None) -> list[int]:
    counts = [word for word in (rows or "").split(",") if word.strip()]
    if not all(word.strip().isdecimal() and int(word) for word in counts):
        raise click.UsageError(f"--batch {rows}: write numbers of rows as 1,8,64.")
    return [int(word) for word in counts]


def _check_machine(target: TargetWithFlags) -> None:
    """Raises if the compiler does not know the machine; asked only where a machine is named."""
    is_named = target.gpu_architecture or target.cpu not in ("generic", "host")
    if not is_named and not any("target" in flag for flag in target.extra):
        return
    machine = [target.backend, target.cpu, target.gpu_architecture or "", target.triple or ""]
    probe = subprocess.run(
        [sys.executable, "-c", _PROBE, *machine, *target.extra],
        env={**os.environ, "AXIR_ISOLATE_COMPILER": "never"},  # its output is parsed, too
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode == 0 and "is not a recognized processor" not in probe.stderr:
        return
    name = target.gpu_architecture if target.backend != "cpu" else target.cpu
    known = _KNOWN.search(probe.stderr)
    names = known[1].split(", ") if known else []
    near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.4)
    ways_out = [f"Did you mean {' or '.join(near)}?"] if near else []
    ways_out.append(
        f"It knows {', '.join(names)}."
        if names
        else "GPUs are called sm_80, ampere, rdna3; `iree-compile --help` says more."
    )
    raise JobError(f"The compiler does not know the machine {name!r}.\n  {' '.join(ways_out)}")
