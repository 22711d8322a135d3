"""`axir import`: models of PyTorch, ONNX and others as bundles."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import click

from axir._bundles.bundle import Bundle
from axir._foreign.onnx_models import from_onnx
from axir._foreign.torch_programs import read_torch

from .bundles import BUNDLE, open_functions, shape_option
from .group import Verb, note, verbose_option


@click.command("import", cls=Verb)
@click.argument("file", metavar="MODEL", type=click.Path(path_type=Path))
@click.option("--name", metavar="NAME", help="What to call the function.")
@shape_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Bundle to write (.axir); by default MODEL's name.",
)
@verbose_option
def import_(
    file: Path, name: str | None, shapes: dict[str, tuple[int | str, ...]], output: Path | None
) -> None:
    """Make a bundle of a model of another program.

    MODEL is a program of torch.export (.pt2), a model of ONNX (.onnx), or StableHLO as text,
    bytecode, a portable artifact or what jax.export serializes. Weights become parameters of the
    bundle, and inputs and outputs keep their names. PyTorch's programs need the packages of
    `pip install axir[torch]`, ONNX models need `pip install axir[onnx]`.

    Examples:
      axir import model.pt2 -o model.axir
      axir import model.onnx --shape x=1x3x224x224
      axir import exported.bin --name predict -o model.axir
    """
    if output is None and str(file) == "-":
        raise click.UsageError("A module from stdin needs -o FILE.")
    output = output or Path(file.stem + BUNDLE)
    if output.suffix != BUNDLE:
        raise click.UsageError(f"-o {output}: what is imported is a bundle, a .axir file.")
    if str(file) != "-" and not file.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))
    if file.suffix == ".pt2":
        exported = read_torch(file, name or "forward", shapes)
        bundle = Bundle({exported.fun_name: exported})
    elif file.suffix == ".onnx":
        exported = from_onnx(file, name=name or "main", shapes=shapes)
        bundle = Bundle({exported.fun_name: exported})
    else:
        bundle = open_functions(file, shapes)
        if name is not None and len(bundle) > 1:
            raise click.UsageError(f"--name {name}: {file} has the functions {', '.join(bundle)}.")
        bundle = Bundle({name or each: function for each, function in bundle.items()})
    bundle.save(output)
    functions = ", ".join(map(repr, bundle.values()))
    note(f"wrote {output}: {functions}")
