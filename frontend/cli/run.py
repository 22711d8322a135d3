"""`axir run`: calling a saved module."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from axir._programs.compiled_modules import Program, compile_program, open_program
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.text.module_reader import read_module
from axir.dialect.text.signature import Signature, signatures

from .group import Verb, module_argument, read_input, verbose_option
from .inputs import read_inputs
from .outputs import check_outputs, print_results, save_results


def program_options(command: UserObject) -> UserObject:
    """Gives a verb the options of choosing a function and a device."""
    command = click.option(
        "--function", default="main", show_default=True, metavar="NAME", help="Function to call."
    )(command)
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
@click.option("--eager", is_flag=True, help="Evaluate a jaxpr module op by op, without compiling.")
@verbose_option
def run(
    file: Path,
    inputs: tuple[str, ...],
    function: str,
    device: str | None,
    outputs: tuple[Path, ...],
    eager: bool,
) -> None:
    """Call the module in FILE (.mlir, .mlirbc, .vmfb, - for stdin) and print or save its results.

    An INPUT is NAME=VALUE, or VALUE for the next argument. A VALUE is
      @x.npy          a file; @inputs.npz gives all arguments by name
      2x3xf32=1,2,3   a type and its elements, or one element for all
      zeros:2x3xf32   a filled array; also ones: and random:
      1.5             elements alone, in the type of the argument

    Examples:
      axir run model.mlir x=@x.npy --out y.npy
      axir run model.vmfb x=2x2xf32=1,2,3,4 "params['w']=@w.npy"
      axir run model.mlir @inputs.npz --out results.npz
      axir run model.mlir zeros:3xf32 --eager
    """
    if eager:
        signature, call = _open_eager(file, function)
    else:
        program = open_for_running(file, device)
        signature = program.signature(function)

        def call(values: Sequence[ConcreteArray]) -> Sequence[ConcreteArray]:
            return program.run(values, function)

    check_outputs(outputs, len(signature.results))
    values = read_inputs(inputs, signature, function)
    results = [words_of(x.host()) for x in call(values)]
    if outputs:
        save_results(results, signature, outputs)
    else:
        print_results(results, signature)


def open_for_running(file: Path, device: str | None) -> Program:
    """Opens a module or a compiled program; `-` is a module from stdin."""
    if str(file) != "-":
        return open_program(file, device)
    module, dialect = read_input(file)
    return compile_program(module, dialect, "stdin", device)


def _open_eager(file: Path, function: str) -> tuple[Signature, UserObject]:
    module, _ = read_input(file)
    functions, found = read_module(module), signatures(module)
    if function not in found:
        raise ParameterError(
            f"There is no function {function!r}.", f"The functions are {', '.join(found)}.", ""
        )
    return found[function], lambda values: functions[function].evaluate(*values)
