"""`axir inspect`: what is in a file."""

from __future__ import annotations

import json
from pathlib import Path

import click

from axir._programs.compiled_modules import binary_signatures, binary_target
from axir.dialect.core.annotations import Options
from axir.dialect.text.signature import Argument, Signature, signatures
from axir.dialect.text.summary import summarize
from axir.runtime import Program as LoadedProgram
from axir.runtime import devices

from .group import Verb, module_argument, read_input, verbose_option


@click.command(cls=Verb)
@module_argument
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@verbose_option
def inspect(file: Path, as_json: bool) -> None:
    """Show functions, their arguments, ops and constants of FILE.

    FILE is a module (.mlir, .mlirbc, - for stdin) of any dialect, or a compiled program (.vmfb).

    Examples:
      axir inspect model.mlir
      axir inspect model.vmfb --json
    """
    description = _describe_binary(file) if file.suffix == ".vmfb" else _describe_module(file)
    if as_json:
        click.echo(json.dumps(description, indent=2))
    else:
        _print(description)


def _describe_module(file: Path) -> dict[str, Options]:
    module, dialect = read_input(file)
    summary = summarize(module)
    lines = {place: size for place, size in summary.constants.most_common() if size}
    return {
        "file": str(file),
        "kind": dialect,
        "functions": {name: _rows(found) for name, found in signatures(module).items()},
        "operations": dict(summary.operations.most_common()),
        "constants": {"bytes": sum(lines.values()), "lines": lines},
    }


def _describe_binary(file: Path) -> dict[str, Options]:
    binary = file.read_bytes()
    loaded = LoadedProgram(binary, devices("cpu")[0])
    return {
        "file": str(file),
        "kind": "vmfb",
        "platform": binary_target(loaded),
        "bytes": len(binary),
        "functions": {name: _rows(found) for name, found in binary_signatures(loaded).items()},
    }


def _rows(signature: Signature) -> dict[str, Options]:
    def row(value: Argument) -> dict[str, Options]:
        return {
            "name": value.name,
            "type": value.text,
            "dtype": str(value.type.dtype),
            "shape": list(value.type.shape),
        }

    return {
        "arguments": [row(value) for value in signature.arguments],
        "results": [row(value) for value in signature.results],
    }


def _print(description: dict[str, Options]) -> None:
    kinds = {"vmfb": "compiled program", "jaxpr": "jaxpr module", "stablehlo": "StableHLO module"}
    kind = kinds.get(description["kind"], f"module of {description['kind']}")
    where = f" for {description['platform']}" if description.get("platform") else ""
    size = f", {description['bytes']:,} bytes" if "bytes" in description else ""
    click.echo(f"{description['file']}: {kind}{where}{size}")
    for name, function in description["functions"].items():
        click.echo(f"\n@{name}")
        rows = [("argument", v) for v in function["arguments"]]
        rows += [("result", v) for v in function["results"]]
        width = max((len(v["name"]) for _, v in rows), default=0)
        for role, value in rows:
            click.echo(f"  {role:<8}  {value['name']:<{width}}  {value['type']}")
    if "operations" in description:
        click.echo(f"\nops: {sum(description['operations'].values())}")
        for name, count in description["operations"].items():
            click.echo(f"  {count:>6}  {name}")
        constants = description["constants"]
        click.echo(f"\nconstants: {constants['bytes']:,} bytes")
        for place, count in constants["lines"].items():
            click.echo(f"  {count:>10,}  {place}")
