"""`axir compile`: from a saved module to a program that runs without axir's compiler."""

from __future__ import annotations

import time
from pathlib import Path

import click

from axir.cli.group import JobError, Verb, module_argument, note, read_input, verbose_option
from axir.files import write_file
from axir.programs import TargetWithFlags, compile_saved
from axir.runtime import compile_command


@click.command("compile", cls=Verb)
@module_argument
@click.argument("flags", nargs=-1, type=click.UNPROCESSED, metavar="[-- FLAGS]")
@click.option(
    "--target", type=click.Choice(["cpu", "vulkan", "cuda"]), default="cpu", show_default=True
)
@click.option(
    "--target-cpu",
    default="generic",
    show_default=True,
    metavar="host|generic|NAME",
    help="CPU to compile for: this one, any of its architecture, or one that LLVM knows.",
)
@click.option("--target-gpu", metavar="NAME", help="GPU as IREE calls it: sm_80, ampere, rdna3.")
@click.option(
    "-O", "opt_level", type=click.IntRange(0, 3), default=2, show_default=True, help="Optimization."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write (.vmfb).")
@verbose_option
def compile_(
    file: Path,
    flags: tuple[str, ...],
    target: str,
    target_cpu: str,
    target_gpu: str | None,
    opt_level: int,
    output: Path | None,
) -> None:
    """Compile the module in FILE, of jaxpr or StableHLO, to an IREE program (.vmfb).

    The program keeps the names of its arguments. Flags after -- go to iree-compile; -v prints
    the whole iree-compile command.

    Examples:
      axir compile model.mlir -o model.vmfb
      axir compile model.mlir --target-cpu host -O3 -o model.vmfb
      axir compile model.mlir --target vulkan --target-gpu rdna3 -o model.vmfb
      axir compile model.mlir -o model.vmfb -- --iree-llvmcpu-enable-ukernels=all
    """
    if output is None:
        if str(file) == "-":
            raise click.UsageError("A module from stdin needs -o FILE.")
        output = Path(file.stem).with_suffix(".vmfb")
    if output.suffix != ".vmfb":
        raise click.UsageError(f"-o {output}: a compiled program is a .vmfb file.")
    module, dialect = read_input(file)
    if dialect not in ("jaxpr", "stablehlo"):
        raise JobError(f"{file} is a module of {dialect}; only jaxpr and StableHLO are compiled.")
    chosen = TargetWithFlags(target, target_cpu, opt_level, None, target_gpu, flags)
    start = time.perf_counter()
    binary = compile_saved(module, dialect, chosen, output.stem)
    note(compile_command(chosen.flags(), "MODULE.mlir", str(output)))
    write_file(output, binary)
    seconds = time.perf_counter() - start
    note(f"wrote {output}: {len(binary):,} bytes for {target}, {seconds:.2f} s")
