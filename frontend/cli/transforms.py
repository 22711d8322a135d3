"""`axir grad` and `axir vmap`: short forms of pass pipelines, with arguments by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from axir._bundles.exported import Exported
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.errors import ParameterError
from axir.dialect.text.file_kinds import is_bundle
from axir.dialect.text.signature import Argument, signatures
from axir.passes.framework.module_functions import swap_with_main
from axir.passes.framework.pipeline import Pipeline

from .bundles import (
    BUNDLE,
    changed_bundle,
    chosen,
    module_of_function,
    open_functions,
    shape_option,
)
from .group import JobError, Verb, module_argument, note, verbose_option
from .inputs import normal_name
from .opt import run_stages, write_module


def _transform_options(command: UserObject) -> UserObject:
    """Gives a verb the options for the function and the output."""
    for option in (
        click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write."),
        click.option("--name", metavar="NAME", help="What to call the new function."),
        click.option(
            "--function",
            metavar="NAME",
            help="Function to transform, by default the only one or main.",
        ),
    ):
        command = option(command)
    return shape_option(command)


@click.command(cls=Verb)
@module_argument
@click.option(
    "--wrt",
    "names",
    multiple=True,
    metavar="NAME",
    help="Arguments or parameters to differentiate in; all below a name, such as params.",
)
@click.option("--result", metavar="NAME", help="Result to differentiate, by default the first one.")
@click.option("--value", "with_value", is_flag=True, help="Return the results, too.")
@click.option(
    "--loss",
    type=click.Choice(["squared-error", "cross-entropy"]),
    help="Differentiate this loss of the result, which need be no scalar then: a further argument "
    "`target` has its type. Means over all elements, and over all rows (probabilities against "
    "logits of the last axis).",
)
@click.option(
    "--step",
    "is_step",
    is_flag=True,
    help="Write a step of gradient descent instead, FUNCTION_step: a further argument `rate` says "
    "how far, the parameters of the bundle change, and the results are returned.",
)
@_transform_options
@verbose_option
def grad(
    file: Path,
    names: tuple[str, ...],
    result: str | None,
    with_value: bool,
    loss: str | None,
    is_step: bool,
    function: str | None,
    name: str | None,
    output: Path | None,
    shapes: dict[str, tuple[int | str, ...]],
) -> None:
    """Differentiate a function of FILE (.axir, .mlir, .mlirbc, -), a real scalar.

    Without --wrt these are the parameters, or all arguments if it has no parameters. An output
    bundle has the gradient in addition to the functions of FILE, as FUNCTION_grad, and weights of a
    module as parameters. An output module has it in place of FUNCTION, and weights as constants.

    Examples:
      axir grad model.axir --function loss --wrt params -o model.axir
      axir grad loss.mlir --wrt w --value -o gradient.mlir
      axir grad classifier.axir --loss cross-entropy --step -o learner.axir
    """
    source = _Source(file, function, output, shapes)
    if loss is not None:
        source.take_loss(loss, result)
        result = None
    if is_step:
        source.write_step(output, names, result, name)
        return
    arguments = source.arguments
    if names:
        argnums = [n for wanted in names for n in _matching(wanted, arguments)]
    else:
        bound = range(len(arguments) - source.parameter_count, len(arguments))
        argnums = [n for n in bound or range(len(arguments)) if _is_real(arguments[n])]
    source.check_rows(argnums)
    number = 0 if result is None else _matching(result, source.results)[0]
    options = f"argnums={_tuple(sorted(set(argnums)))},result={number},with_value="
    source.run(f"grad{{{options}{str(with_value).lower()}}},simplify")
    source.write(output, name, "grad")


@click.command(cls=Verb)
@module_argument
@click.option("--size", type=click.IntRange(min=1), required=True, help="Extent of the new axis.")
@click.option(
    "--in",
    "names",
    multiple=True,
    metavar="NAME",
    help="Arguments that get the axis, in front; by default all, but no parameters.",
)
@_transform_options
@verbose_option
def vmap(
    file: Path,
    size: int,
    names: tuple[str, ...],
    function: str | None,
    name: str | None,
    output: Path | None,
    shapes: dict[str, tuple[int | str, ...]],
) -> None:
    """Vectorize a function of FILE (.axir, .mlir, .mlirbc, -) over a new leading axis.

    An output bundle has the vectorized function in addition to its functions, as FUNCTION_vmap; an
    output module has it in place of FUNCTION.

    Examples:
      axir vmap model.axir --size 8 -o batched.axir
      axir vmap model.mlir --size 8 --in x -o batched.mlir
    """
    source = _Source(file, function, output, shapes)
    if source.exported.batch is not None:
        raise JobError(
            f"@{source.name} takes any number of rows already.\n"
            "  `axir compile --batch 1,8,64` makes programs for some."
        )
    arguments = source.arguments
    mapped = set(range(len(arguments) - source.parameter_count))
    if names:
        mapped = {n for wanted in names for n in _matching(wanted, arguments)}
    axes = ["0" if n in mapped else "none" for n in range(len(arguments))]
    source.run(f"vmap{{axis_size={size},in_axes={_tuple(axes)}}},simplify")
    source.write(output, name, "vmap")


class _Source:
    """A function of a file, as the `main` of a module that passes change.

    Attributes:
        name: Its name.
        arguments: Its arguments, and its parameters after them.
        results: Its results.
        parameter_count: The number of arguments that are parameters, of a bundle or of a module
            that becomes a bundle.
        exported: The function.
    """

    def __init__(
        self,
        file: Path,
        function: str | None,
        output: Path | None,
        shapes: dict[str, tuple[int | str, ...]],
    ):
        self._is_bundle = is_bundle(file)
        self._bundle = open_functions(file, shapes)
        self.name = chosen(self._bundle, function)
        self._keeps_parameters = self._is_bundle or (output is not None and output.suffix == BUNDLE)
        self._take(self._bundle[self.name])

    def _take(self, exported: Exported) -> None:
        self.exported = exported
        if self._keeps_parameters:
            self.parameter_count = len(self.exported.parameters)
            self._module = module_of_function(self.exported)
        else:  # constants of a module stay constants
            self.parameter_count = 0
            self._module = self.exported.module()
        found = signatures(self._module)["main"]
        self.arguments, self.results = found.arguments, found.results

    def take_loss(self, kind: str, result: str | None) -> None:
        """Goes on with a loss of a result, against a target."""
        from .learning import loss_of  # late: most of axir

        number = 0 if result is None else _matching(result, self.results)[0]
        self._take(loss_of(self.exported, kind, number))

    def write_step(
        self, output: Path | None, names: Sequence[str], result: str | None, name: str | None
    ) -> None:
        """Writes the bundle with a step of gradient descent.

        Args:
            output: The file to write.
            names: The parameters that change; none for all.
            result: The result that is made smaller, by default the first one.
            name: What to call the step.
        """
        from .learning import step_of  # late: most of axir

        if output is None or output.suffix != BUNDLE:
            raise click.UsageError("--step: parameters change in a bundle. Write one: -o FILE.axir")
        first = len(self.arguments) - self.parameter_count
        wanted = [n for each in names for n in _matching(each, self.arguments[first:])]
        chosen_numbers = wanted or range(self.parameter_count)
        changed = [
            self.arguments[first + number].name
            for number in chosen_numbers
            if _is_real(self.arguments[first + number])
        ]
        number = 0 if result is None else _matching(result, self.results)[0]
        name = name or f"{self.name}_step"
        self._bundle.changed({name: step_of(self.exported, number, changed)}).save(output)
        note(f"wrote {output}: {name}")

    def check_rows(self, argnums: Sequence[int]) -> None:
        """Refuses gradients in values shared by all rows if the number of rows is open."""
        batch = self.exported.batch
        if batch is None:
            return
        for number in argnums:
            if number >= len(batch.arguments) or not batch.arguments[number]:
                raise JobError(
                    f"@{self.name} takes any number of rows, and all of them share "
                    f"{self.arguments[number].name}.\n"
                    "  Its gradient is a sum over rows: export the function for a number of rows."
                )

    def run(self, pipeline: str) -> None:
        """Runs passes."""
        run_stages(self._module, Pipeline.parse(pipeline).passes)

    def write(self, output: Path | None, name: str | None, addition: str) -> None:
        """Writes the module, or the bundle with the function under a new name.

        Args:
            output: The file to write.
            name: The new name, if the user gave one.
            addition: The suffix of the old name in a bundle without a new name.
        """
        if output is None or output.suffix != BUNDLE:
            if not self._is_bundle:
                swap_with_main(self._module, name or self.name)
            write_module(self._module, output)
            return
        name = name or f"{self.name}_{addition}"
        made = changed_bundle(self._bundle, self.name, self._module, name)
        if self.exported.batch is not None:
            batch = replace(self.exported.batch, results=(True,) * len(made[name].out_avals))
            made = made.changed({name: made[name].with_batch(batch)})
        made.save(output)
        note(f"wrote {output}: {name}")


def _matching(name: str, values: Sequence[Argument]) -> list[int]:
    """Returns the numbers of the values of a name, or of those below it."""
    if "," in name:
        return [n for part in name.split(",") if part.strip() for n in _matching(part, values)]
    wanted = normal_name(name.strip())
    found = [
        number
        for number, value in enumerate(values)
        if normal_name(value.name) == wanted or normal_name(value.name).startswith(f"{wanted}.")
    ]
    if not found:
        raise ParameterError(
            f"There is no argument, parameter or result {name!r} to choose from.",
            f"There are {', '.join(value.name for value in values)}.",
            where="",
        )
    return found


def _is_real(value: Argument) -> bool:
    return dtypes.is_inexact(value.type.dtype)


def _tuple(items: Sequence[object]) -> str:
    return f"({','.join(map(str, items))}{',' if len(items) == 1 else ''})"
