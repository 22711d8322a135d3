"""The command `axir`: verbs for modules saved without their Python source.

Data goes to stdout, messages to stderr. Exit codes: 0 done, 1 the job failed, 2 wrong usage.
"""

from __future__ import annotations

from pathlib import Path

import click

from .group import Group, verbose_option

__all__ = ["cli", "main"]


VERBS = {
    "inspect": "inspect.inspect",
    "diff": "diff.diff",
    "import": "learning.import_",
    "opt": "opt.opt",
    "grad": "transforms.grad",
    "vmap": "transforms.vmap",
    "compile": "compile.compile_",
    "run": "run.run",
    "bench": "bench.bench",
    "info": "info.info",
    "cache": "info.cache",
    "passes": "info.passes",
    "completion": "info.completion",
}
"""The verbs, and where in this folder they are defined."""


@click.group(cls=Group, verbs=VERBS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="axir", prog_name="axir")
@click.option(
    "--cmake-dir",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, is_asked: _print_cmake_dir(context) if is_asked else None,
    help="Print the folder that find_package(axir) needs, as axir_DIR.",
)
@verbose_option
def cli() -> None:
    """Inspect, transform, compile and run saved modules.

    Examples:
      axir inspect model.axir
      axir grad model.axir --function loss --wrt params -o model.axir
      axir opt model.mlir -p 'vmap{axis_size=5,in_axes=0},jvp,simplify' -o out.mlir
      axir compile model.mlir --target cpu -o model.vmfb
      axir run model.vmfb x=@x.npy --out y.npy
    """


def _print_cmake_dir(context: click.Context) -> None:
    from axir.runtime import cpp  # late: only the verbs of C++ need it

    click.echo(Path(cpp.__file__).parent / "cmake")
    context.exit()


def main() -> None:
    """Runs the command line."""
    cli(prog_name="axir")
