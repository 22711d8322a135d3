"""`axir inspect`: shows the content of a file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from axir._bundles.bundle import open_bundle
from axir._bundles.manifest import key_text
from axir._programs.compiled_modules import binary_signatures, binary_target
from axir.dialect.core.annotations import Options
from axir.dialect.core.symbolic_dims import is_symbolic_dim
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.costs import arithmetic_operations, temporary_bytes
from axir.dialect.program.function import Function
from axir.dialect.text.file_kinds import is_bundle, is_program
from axir.dialect.text.foreign_signatures import open_types, quantized_types
from axir.dialect.text.module_reader import read_module
from axir.dialect.text.signature import Argument, Signature, signatures
from axir.dialect.text.summary import summarize
from axir.passes.partition.layout_text import communications, read_layouts, read_mesh, write_layouts
from axir.passes.partition.partition import Partition, partition_function
from axir.runtime import Program as LoadedProgram
from axir.runtime import devices

from .group import Verb, module_argument, read_input, verbose_option


@click.command(cls=Verb)
@module_argument
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--mesh", help="Partition a jaxpr module for this mesh, such as data=4,model=2.")
@click.option("--inputs", help="How its arguments are cut, such as 'data,-; -,model; ?'.")
@click.option("--outputs", help="How its results are cut, likewise.")
@verbose_option
def inspect(
    file: Path, as_json: bool, mesh: str | None, inputs: str | None, outputs: str | None
) -> None:
    """Show functions, their arguments, ops, costs, constants and weights of FILE.

    FILE is a bundle (.axir; its checksums are verified), a module (.mlir, .mlirbc, - for stdin)
    of any dialect, or a compiled program (.vmfb). Costs of a function are the arithmetic
    operations of a call, and the bytes of its arguments, results, parameters and intermediate
    arrays, op by op. With open rows they are the costs of one row.

    With --mesh, functions of a jaxpr module are partitioned for the devices of a mesh. The output
    then shows how arguments and results are cut, the collectives and the bytes that they move, and
    the ops that are not cut, with the reason.

    Examples:
      axir inspect model.axir
      axir inspect model.mlir
      axir inspect model.vmfb --json
      axir inspect model.mlir --mesh data=4 --inputs "data,-; -,-"
    """
    if is_bundle(file):
        description = _describe_bundle(file)
    elif is_program(file):
        description = _describe_binary(file)
    else:
        description = _describe_module(file)
    if mesh is not None:
        _add_partition(description, file, Partition(mesh, inputs, outputs))
    if as_json:
        click.echo(json.dumps(description, indent=2))
    else:
        _print(description)


def _describe_module(file: Path) -> dict[str, object]:
    module, dialect = read_input(file)
    summary = summarize(module)
    lines = {place: size for place, size in summary.constants.most_common() if size}
    weights = [
        {**_row(Argument(name, kind)), "bytes": kind.size * kind.dtype.itemsize}
        for name, kind in summary.weights.items()
    ]
    functions: dict[str, Options] = {} if dialect == "jaxpr" else open_types(module)
    if not functions:
        functions = {name: _rows(found) for name, found in signatures(module).items()}
    if summary.is_quantized:
        _add_quantizations(functions, quantized_types(module))
    if dialect == "jaxpr":
        read = read_module(module)
        for name, described in functions.items():
            if not any(v.type.is_open for v in read[name].inputs):
                described["costs"] = _costs(read[name])
    return {
        "file": str(file),
        "kind": dialect,
        "functions": functions,
        "operations": dict(summary.operations.most_common()),
        "constants": {"bytes": sum(lines.values()), "lines": lines},
        "parameters": weights,
    }


def _add_quantizations(
    functions: dict[str, Options], found: Mapping[str, Mapping[str, Sequence[str | None]]]
) -> None:
    """Adds the meaning of quantized integers in arguments and results."""
    for name, groups in found.items():
        for role, kinds in groups.items():
            for row, kind in zip(functions[name][role], kinds, strict=True):
                if kind is not None:
                    row["quantized"] = kind


def _add_partition(description: dict[str, Options], file: Path, options: Partition) -> None:
    """Adds how the functions of a module are partitioned."""
    if description["kind"] != "jaxpr":
        raise click.UsageError(f"--mesh: {file} is no module of the jaxpr dialect.")
    axes = read_mesh(options.mesh)
    ins, outs = read_layouts(options.inputs), read_layouts(options.outputs)
    module = read_module(read_input(file)[0])
    for name, described in description["functions"].items():
        parts = partition_function(module[name], axes, ins, outs)
        described["partition"] = {
            "inputs": write_layouts(parts.in_layouts),
            "outputs": write_layouts(parts.out_layouts),
            "communications": [asdict(each) for each in communications(parts.local, axes)],
            "notes": [note._asdict() for note in parts.notes],
        }


def _describe_bundle(file: Path) -> dict[str, Options]:
    bundle = open_bundle(file)
    bundle.verify()
    functions: dict[str, Options] = {}
    for name, each in bundle.items():
        described = functions[name] = _rows(each.signature)
        if each.batch is not None:
            for group, is_open in (
                ("arguments", each.batch.arguments),
                ("results", each.batch.results),
            ):
                for row, rows in zip(described[group], is_open, strict=True):
                    if rows:
                        row["shape"].insert(0, each.batch.symbol)
                        row["type"] = f"{each.batch.symbol}x{row['type']}"
            described["rows"] = {"symbol": each.batch.symbol, "sizes": list(each.batch.sizes)}
        if each.open is not None:
            described["open"] = {
                "symbols": list(each.open.symbols),
                "constraints": list(each.open.constraints),
                "sizes": [dict(sizes) for sizes in each.open.sizes],
            }
        else:
            described["costs"] = _costs(each.function)
        described["parameters"] = list(each.parameters)
        described["operations"] = dict(operations(each.function).most_common())
    return {
        "file": str(file),
        "kind": "bundle",
        "bytes": file.stat().st_size,
        "written_by": dict(bundle.versions),
        "functions": functions,
        "parameters": [
            {**_row(Argument(name, x.type)), "bytes": x.nbytes}
            for name, x in bundle.parameters.items()
        ],
        "programs": [
            {
                "file": entry.file,
                "target": dict(entry.target),
                "functions": {
                    name: {key_text(key): symbol for key, symbol in keys.items()}
                    for name, keys in entry.functions.items()
                },
            }
            for entry in bundle.programs
        ],
    }


def operations(function: Function) -> Counter[str]:
    """Counts the ops of a function and of the functions that it calls."""
    found: Counter[str] = Counter(f"jaxpr.{e.primitive.name}" for e in function.equations)
    for callee in function.callees():
        found += operations(callee)
    return found


def _costs(function: Function) -> dict[str, Options]:
    """Returns the arithmetic operations of a call, and the bytes that it works on."""

    def size(types: Iterable[ShapedArray]) -> int:
        return sum(t.size * t.dtype.itemsize for t in types)

    return {
        "flops": arithmetic_operations(function),
        "bytes": {
            "arguments": size(function.input_types),
            "results": size(function.output_types),
            "parameters": size(v.type for v in function.captures),
            "temporaries": temporary_bytes(function),
        },
    }


def _describe_binary(file: Path) -> dict[str, object]:
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
    return {
        "arguments": [_row(value) for value in signature.arguments],
        "results": [_row(value) for value in signature.results],
    }


def _row(value: Argument) -> dict[str, Options]:
    return {
        "name": value.name,
        "type": value.text,
        "dtype": str(value.type.dtype),
        "shape": [str(x) if is_symbolic_dim(x) else x for x in value.type.shape],
    }


_KINDS = {
    "bundle": "bundle",
    "vmfb": "compiled program",
    "jaxpr": "jaxpr module",
    "stablehlo": "StableHLO module",
}


def _print(description: dict[str, Options]) -> None:
    kind = _KINDS.get(description["kind"], f"module of {description['kind']}")
    where = f" for {description['platform']}" if description.get("platform") else ""
    size = f", {description['bytes']:,} bytes" if "bytes" in description else ""
    click.echo(f"{description['file']}: {kind}{where}{size}")
    for name, function in description["functions"].items():
        _print_function(name, function)
    if "operations" in description:
        _print_operations(description["operations"])
        constants = description["constants"]
        click.echo(f"\nconstants: {constants['bytes']:,} bytes")
        for place, count in constants["lines"].items():
            click.echo(f"  {count:>10,}  {place}")
    if description["kind"] == "bundle" or description.get("parameters"):
        _print_parameters(description["parameters"])
    if description["kind"] == "bundle":
        _print_programs(description["programs"])


def _print_function(name: str, function: dict[str, Options]) -> None:
    click.echo(f"\n@{name}")
    rows = [("argument", v) for v in function["arguments"]]
    rows += [("result", v) for v in function["results"]]
    width = max((len(v["name"]) for _, v in rows), default=0)
    for role, value in rows:
        quantized = f"  quantized: {value['quantized']}" if "quantized" in value else ""
        click.echo(f"  {role:<8}  {value['name']:<{width}}  {value['type']}{quantized}")
    if "rows" in function:
        sizes = ", ".join(map(str, function["rows"]["sizes"])) or "any number"
        click.echo(f"  rows      {function['rows']['symbol']}: {sizes}")
    if "open" in function:
        _print_open(function["open"])
    if "costs" in function:
        costs = function["costs"]
        memory = ", ".join(f"{size:,} of {role}" for role, size in costs["bytes"].items() if size)
        click.echo(f"  costs     {costs['flops']:,} operations; bytes: {memory or 'none'}")
    if "partition" in function:
        _print_partition(function["partition"])
    if function.get("parameters"):
        click.echo(f"  takes     {', '.join(function['parameters'])}")
    if "operations" in function:
        _print_operations(function["operations"])


def _print_open(found: dict[str, Options]) -> None:
    where = f", where {', '.join(found['constraints'])}" if found["constraints"] else ""
    sizes = "; ".join(",".join(f"{n}={x}" for n, x in each.items()) for each in found["sizes"])
    click.echo(f"  open      {', '.join(found['symbols'])}{where}: {sizes or 'any size'}")


def _print_partition(partition: dict[str, Options]) -> None:
    click.echo(f"  inputs    {partition['inputs']}")
    click.echo(f"  outputs   {partition['outputs']}")
    for each in partition["communications"]:
        times = f" {each['times']} times" if each["times"] != 1 else ""
        click.echo(
            f"  {each['op']:<14}  {', '.join(map(str, each['axes']))}: {each['operand']}, "
            f"{each['received']:,} bytes{times}  {each['line'] or ''}".rstrip()
        )
    for note in partition["notes"]:
        click.echo(f"  note      {note['op']} {note['text']}  {note['line'] or ''}".rstrip())


def _print_operations(operations: dict[str, int]) -> None:
    click.echo(f"\nops: {sum(operations.values())}")
    for name, count in operations.items():
        click.echo(f"  {count:>6}  {name}")


def _print_parameters(parameters: list[dict[str, Options]]) -> None:
    click.echo(f"\nparameters: {sum(row['bytes'] for row in parameters):,} bytes")
    width = max((len(row["name"]) for row in parameters), default=0)
    for row in parameters:
        click.echo(f"  {row['bytes']:>10,}  {row['name']:<{width}}  {row['type']}")


def _told_keys(keys: Iterable[str]) -> str:
    told = "; ".join(keys) if any("=" in key for key in keys) else f"{', '.join(keys)} rows"
    return f" ({told})"


def _print_programs(programs: list[dict[str, Options]]) -> None:
    click.echo(f"\nprograms: {len(programs)}")
    for program in programs:
        target = program["target"]
        machine = " ".join(target[key] for key in ("platform", "cpu", "machine") if key in target)
        functions = ", ".join(
            name + ("" if "0" in sizes else _told_keys(sizes))
            for name, sizes in program["functions"].items()
        )
        click.echo(f"  {program['file']}  {machine}  {functions}")
