"""`axir opt`: passes over saved modules, in any order."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import ClassVar

import click

from axir._bundles.bundle import Bundle
from axir._bundles.saving import module_of
from axir._programs.compiled_modules import verify_module
from axir._programs.files import write_file, write_module_file
from axir.dialect.core.annotations import UserObject
from axir.dialect.text.file_kinds import is_bundle
from axir.dialect.text.signature import annotate, has_open_dimensions, signatures
from axir.dialect.text.summary import summarize
from axir.passes.framework.base import Pass
from axir.passes.framework.module_functions import linear_arguments, swap_with_main
from axir.passes.framework.naming import signatures_after
from axir.passes.framework.pipeline import Pipeline
from axir.passes.framework.registry import takes_jaxpr

from .bundles import (
    BUNDLE,
    changed_bundle,
    chosen,
    module_of_function,
    open_functions,
    raised_if_open,
    read_filled,
    shape_option,
)
from .group import JobError, Verb, module_argument, note, verbose_option
from .outputs import is_stream, write_stream

_LOWERING = "lower-to-stablehlo"
_RAISING = "raise-stablehlo"


@dataclasses.dataclass(frozen=True)
class _Stage(Pass):
    """Runs a pass, keeps the names of arguments, and prints the pass's result."""

    name: ClassVar[str] = "stage"
    stage: Pass
    is_printed: bool

    def run(self, module: object) -> None:
        before = signatures(module)
        marked = {}
        if self.stage.name == "transpose":
            marked = {symbol: linear_arguments(module, symbol) for symbol in before}
        self.stage.run(module)
        # StableHLO does not say which dimensions are open in its types, and none changes.
        is_open = self.stage.name == _LOWERING and has_open_dimensions(module)
        after = before if is_open else signatures(module)
        named = signatures_after(self.stage, before, after, marked)
        for symbol, signature in named.items():
            annotate(module, symbol, signature)
        if self.is_printed:
            click.echo(f"// -----// IR after {self.stage} //----- //\n{module}", err=True)


@click.command(cls=Verb)
@module_argument
@click.option(
    "-p",
    "--pass-pipeline",
    "pipelines",
    multiple=True,
    metavar="PASS,PASS{OPTION=VALUE}",
    help="Passes to run, in this order; `axir passes` lists them.",
)
@click.option(
    "--to", "target", type=click.Choice(["jaxpr", "stablehlo"]), help="Dialect to end in."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write (.mlir, .mlirbc, .axir).",
)
@click.option(
    "--function", metavar="NAME", help="Function to transform, by default the only one or main."
)
@shape_option
@click.option("--verify-only", is_flag=True, help="Check the module and print nothing.")
@click.option(
    "--print-ir-after-all", is_flag=True, help="Print the module after each pass (stderr)."
)
@click.option(
    "--print-ir-after", "printed", multiple=True, metavar="PASS", help="The same after one pass."
)
@click.option("--timing", is_flag=True, help="Print how long each pass takes (stderr).")
@click.option("--generic", is_flag=True, help="Print ops in MLIR's generic form.")
@click.option(
    "--debug-info/--no-debug-info",
    default=None,
    help="Print locations: the user's lines. By default with -o only.",
)
@verbose_option
def opt(
    file: Path,
    pipelines: tuple[str, ...],
    target: str | None,
    output: Path | None,
    function: str | None,
    shapes: dict[str, tuple[int | str, ...]],
    verify_only: bool,
    print_ir_after_all: bool,
    printed: tuple[str, ...],
    timing: bool,
    generic: bool,
    debug_info: bool | None,
) -> None:
    """Transform the module in FILE (- for stdin) and print it.

    A module is verified before the first pass and after the last one. Of a bundle (.axir) one
    function is transformed; as a module it takes the parameters after its arguments. StableHLO is
    raised to jaxpr (by the pass raise-stablehlo) for passes that want that.

    Examples:
      axir opt model.mlir -p jvp
      axir opt model.mlir -p 'vmap{axis_size=5,in_axes=0},jvp,simplify' -o out.mlir
      axir opt model.mlir --to stablehlo > model.stablehlo.mlir
      axir opt from_jax.mlir --to jaxpr -o raised.mlir
      axir opt model.mlir --verify-only
      axir opt model.axir --function loss -p simplify -o simplified.axir
      cat model.mlir | axir opt - -p linearize --print-ir-after-all
    """
    pipeline = Pipeline.parse(",".join(pipelines)) if pipelines else Pipeline(())
    _check_printed(printed, pipeline)
    source = _Source(file, function, shapes, pipeline, target, output)
    verify_module(source.module, source.dialect)
    if verify_only:
        return
    stages = _raised(source.dialect, pipeline.passes, target)
    names = [stage.name for stage in stages]
    if target == "stablehlo" and source.dialect == "jaxpr" and _LOWERING not in names:
        stages += Pipeline.parse(_LOWERING).passes
    source.run(stages, print_ir_after_all, printed, timing)
    dialect = summarize(source.module).dialect
    verify_module(source.module, dialect)
    if target == "jaxpr" and dialect != "jaxpr":
        raise JobError(f"The result is a module of {dialect}, which cannot become one of jaxpr.")
    if output is not None and output.suffix == BUNDLE:
        source.write_bundle(dialect, output)
    else:
        write_module(source.module, output, generic, debug_info)


class _Source:
    """The input of the passes: a module, or a function of a bundle as a module.

    A module that becomes a bundle is a bundle from the beginning, so that its weights are
    parameters.

    Args:
        file: The file.
        function: The name of the function, if one is named.
        shapes: Shapes of arguments that StableHLO leaves open.
        pipeline: The passes that the user named.
        target: The dialect to end in, if it is named.
        output: The file to write.

    Attributes:
        module: The module, which passes change.
        dialect: The dialect it was in.
    """

    def __init__(
        self,
        file: Path,
        function: str | None,
        shapes: dict[str, tuple[int | str, ...]],
        pipeline: Pipeline,
        target: str | None,
        output: Path | None,
    ):
        self._bundle: Bundle | None = None
        self._name: str | None = function
        becomes_bundle = output is not None and output.suffix == BUNDLE
        if not is_bundle(file) and not (becomes_bundle and target != "stablehlo"):
            self.module, self.dialect = read_filled(file, shapes)
            if any(takes_jaxpr(stage.name) for stage in pipeline.passes):
                self.module, self.dialect = raised_if_open(file, self.module, self.dialect)
            return
        self._bundle, self.dialect = open_functions(file, shapes), "jaxpr"
        if not is_bundle(file) and function is None and not pipeline.passes:
            self._name = None
            self.module = module_of({name: each.function for name, each in self._bundle.items()})
            return
        self._name = chosen(self._bundle, function)
        self.module = module_of_function(self._bundle[self._name])

    def run(
        self, stages: tuple[Pass, ...], prints_all: bool, printed: tuple[str, ...], timing: bool
    ) -> None:
        """Runs passes on `main`; the chosen function has that name meanwhile."""
        name = self._name
        if self._bundle is None and any(takes_jaxpr(stage.name) for stage in stages):
            public = signatures(self.module)
            if name is not None or (len(public) == 1 and "main" not in public):
                name = chosen(public, name)
        is_called_otherwise = self._bundle is None and name not in (None, "main")
        if is_called_otherwise:
            swap_with_main(self.module, str(name))
        run_stages(self.module, stages, prints_all, printed, timing)
        if is_called_otherwise:
            swap_with_main(self.module, str(name))

    def write_bundle(self, dialect: str, output: Path) -> None:
        """Writes a bundle with the result of the passes."""
        if dialect != "jaxpr" or self._bundle is None:
            raise JobError(f"{output}: a bundle holds a module of jaxpr, not of {dialect}.")
        made = self._bundle
        if self._name is not None:
            made = changed_bundle(made, self._name, self.module)
        made.save(output)
        note(f"wrote {output}")


def _raised(dialect: str, stages: tuple[Pass, ...], target: str | None) -> tuple[Pass, ...]:
    """Returns the passes, after one that raises StableHLO if they, or the user, want jaxpr."""
    is_wanted = takes_jaxpr(stages[0].name) if stages else target == "jaxpr"
    if dialect == "stablehlo" and is_wanted:
        return (*Pipeline.parse(_RAISING).passes, *stages)
    return stages


def _check_printed(printed: tuple[str, ...], pipeline: Pipeline) -> None:
    names = [stage.name for stage in pipeline.passes]
    for name in printed:
        if name not in names:
            raise click.UsageError(
                f"--print-ir-after {name}: the pipeline has no such pass; it is "
                f"{str(pipeline) or 'empty'}."
            )


def run_stages(
    module: object,
    stages: tuple[Pass, ...],
    prints_all: bool = False,
    printed: tuple[str, ...] = (),
    timing: bool = False,
) -> None:
    """Runs passes, which keep the names of arguments; prints the results of the named ones."""
    wrapped = [_Stage(stage, prints_all or stage.name in printed) for stage in stages]
    for stage in wrapped:
        # MLIR's report names a pass by this.
        object.__setattr__(stage, "name", stage.stage.name)
    Pipeline(tuple(wrapped)).run(module, timing=timing)


def write_module(
    module: UserObject,
    output: Path | None,
    generic: bool = False,
    debug_info: bool | None = None,
) -> None:
    """Writes a module to a file, or prints it; `-` is stdout."""
    if output is not None and is_stream(output):
        text = module.operation.get_asm(
            enable_debug_info=bool(debug_info), print_generic_op_form=generic
        )
        write_stream(output, f"{text.rstrip()}\n".encode())
        return
    is_located = debug_info if debug_info is not None else output is not None
    if output is not None and (not generic or output.suffix != ".mlir"):
        if generic:
            raise click.UsageError(f"-o {output}: MLIR's generic form is text, saved as .mlir.")
        write_module_file(module, output, is_located)
        note(f"wrote {output}")
        return
    text = module.operation.get_asm(enable_debug_info=is_located, print_generic_op_form=generic)
    if output is None:
        click.echo(text.rstrip("\n"))
    else:
        write_file(output, text.encode())
