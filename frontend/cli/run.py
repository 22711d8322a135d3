"""`axir run`: calling a saved module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import click

from axir._bundles.bundle import Bundle
from axir._bundles.module_functions import functions_of_module
from axir._programs.compiled_modules import Program, compile_program, open_program
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.text.file_kinds import is_bundle, is_program
from axir.dialect.text.signature import has_open_dimensions

from .bundles import (
    BundleProgram,
    chosen,
    open_functions,
    read_filled,
    shape_option,
)
from .group import Verb, module_argument, verbose_option
from .inputs import read_inputs
from .outputs import check_outputs, print_json, print_results, save_results


def program_options(command: UserObject) -> UserObject:
    """Gives a verb the options of choosing a function and a device."""
    command = click.option(
        "--function", metavar="NAME", help="Function to call, by default the only one or main."
    )(command)
    command = shape_option(command)
    return click.option(
        "--device", type=click.Choice(["cpu", "vulkan", "cuda"]), help="Where to run."
    )(command)


@click.command(cls=Verb)
@module_argument
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@program_options
@click.option(
    "--out",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="File for a result (.npy, once for each), or for all of them (.npz).",
)
@click.option("--json", "as_json", is_flag=True, help="Print results as JSON.")
@click.option("--eager", is_flag=True, help="Evaluate a module op by op, without compiling.")
@verbose_option
def run(
    file: Path,
    inputs: tuple[str, ...],
    function: str | None,
    device: str | None,
    shapes: dict[str, tuple[int | str, ...]],
    outputs: tuple[Path, ...],
    as_json: bool,
    eager: bool,
) -> None:
    """Call the module in FILE (.axir, .mlir, .mlirbc, .vmfb, -) and print or save its results.

    Without a file name, for -, a module is read from stdin.

    An INPUT is NAME=VALUE, or VALUE for the next argument. A VALUE is
      @x.npy          a file; @inputs.npz gives all arguments by name
      2x3xf32=1,2,3   a type and its elements, or one element for all
      zeros:2x3xf32   a filled array; also ones: and random:
      1.5             only elements, in the type of the argument

    Examples:
      axir run model.mlir x=@x.npy --out y.npy
      axir run model.vmfb x=2x2xf32=1,2,3,4 "params['w']=@w.npy"
      axir run model.mlir @inputs.npz --out results.npz
      axir run model.mlir zeros:3xf32 --eager --json
      axir run model.axir --function predict x=@rows.npy
    """
    program = open_for_running(file, device, inputs, eager, shapes=shapes)
    name = chosen(program.signatures, function)
    signature = program.signature(name)
    check_outputs(outputs, len(signature.results))
    values = read_inputs(inputs, signature, name)
    results = [words_of(x.host()) for x in program.run(values, name)]
    if outputs:
        save_results(results, signature, outputs)
    elif as_json:
        print_json(results, signature)
    else:
        print_results(results, signature)


def open_for_running(
    file: Path,
    device: str | None,
    inputs: Sequence[str] = (),
    is_eager: bool = False,
    marks_dispatches: bool = False,
    shapes: Mapping[str, tuple[int | str, ...]] = MappingProxyType({}),
) -> Program | BundleProgram:
    """Opens a module, a compiled program or a bundle; `-` is a module from stdin.

    Args:
        file: What to open.
        device: The platform to run on.
        inputs: The inputs on the command line; they determine the number of rows.
        is_eager: Whether functions are evaluated op by op.
        marks_dispatches: Whether a program reports its dispatches; a bundle's program does so if a
            timeline is requested.
        shapes: Shapes of arguments that StableHLO leaves open.
    """
    if is_bundle(file) or is_eager:
        return BundleProgram(open_functions(file, shapes), inputs, device, is_eager)
    if is_program(file):
        return open_program(file, device, marks_dispatches=marks_dispatches)
    module, dialect = read_filled(file, shapes)
    if has_open_dimensions(module):
        functions = functions_of_module(module, dialect, str(file))
        return BundleProgram(Bundle(functions), inputs, device)
    name = "stdin" if str(file) == "-" else file.name
    return compile_program(module, dialect, name, device, marks_dispatches=marks_dispatches)
