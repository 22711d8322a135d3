"""`axir opt`: passes over saved modules, in any order."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import ClassVar

import click

from axir._bundles.bundle import Bundle, open_bundle
from axir._programs.compiled_modules import verify_module
from axir._programs.files import write_file, write_module_file
from axir.dialect.core.annotations import UserObject
from axir.dialect.text.signature import annotate, signatures
from axir.dialect.text.summary import summarize
from axir.passes.framework.base import Pass
from axir.passes.framework.module_functions import linear_arguments
from axir.passes.framework.naming import signatures_after
from axir.passes.framework.pipeline import Pipeline
from axir.passes.framework.registry import takes_jaxpr

from .bundles import BUNDLE, bundle_of_module, changed_bundle, chosen, module_of_function
from .group import JobError, Verb, module_argument, note, read_input, verbose_option

_LOWERING = "lower-to-stablehlo"
_RAISING = "raise-stablehlo"


@dataclasses.dataclass(frozen=True)
class _Stage(Pass):
    """Runs a pass, keeps the names of arguments, and prints what the pass has made."""

    name: ClassVar[str] = "stage"
    stage: Pass
    is_printed: bool

    def run(self, module: UserObject) -> None:
        before = signatures(module)
        marked = {}
        if self.stage.name == "transpose":
            marked = {symbol: linear_arguments(module, symbol) for symbol in before}
        self.stage.run(module)
        named = signatures_after(self.stage, before, signatures(module), marked)
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
    "--function", metavar="NAME", help="Function of a bundle, by default the only one or main."
)
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
    bundle, module, dialect = _read(file, function)
    verify_module(module, dialect)
    if verify_only:
        return
    stages = _raised(dialect, pipeline.passes, target)
    if target == "stablehlo" and dialect == "jaxpr" and _LOWERING not in [s.name for s in stages]:
        stages += Pipeline.parse(_LOWERING).passes
    run_stages(module, stages, print_ir_after_all, printed, timing)
    dialect = summarize(module).dialect
    verify_module(module, dialect)
    if target == "jaxpr" and dialect != "jaxpr":
        raise JobError(f"The result is a module of {dialect}, which cannot become one of jaxpr.")
    if output is not None and output.suffix == BUNDLE:
        _write_bundle(bundle, function, module, dialect, output)
    else:
        write_module(module, output, generic, debug_info)


def _read(file: Path, function: str | None) -> tuple[Bundle | None, UserObject, str]:
    """Returns the bundle in a file, if it is one, and the module to transform with its dialect."""
    if file.suffix != BUNDLE:
        if function is not None:
            raise click.UsageError("--function is for bundles: passes work on main.")
        return None, *read_input(file)
    bundle = open_bundle(file)
    return bundle, module_of_function(bundle[chosen(bundle, function)]), "jaxpr"


def _write_bundle(
    bundle: Bundle | None, function: str | None, module: UserObject, dialect: str, output: Path
) -> None:
    if dialect != "jaxpr":
        raise JobError(f"{output}: a bundle holds a module of jaxpr, not of {dialect}.")
    if bundle is None:
        bundle = bundle_of_module(module, str(output))
    else:
        bundle = changed_bundle(bundle, chosen(bundle, function), module)
    bundle.save(output)
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
    module: UserObject,
    stages: tuple[Pass, ...],
    prints_all: bool = False,
    printed: tuple[str, ...] = (),
    timing: bool = False,
) -> None:
    """Runs passes, which keep the names of arguments; prints what those named have made."""
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
    """Writes a module to a file, or prints it."""
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
