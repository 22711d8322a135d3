"""Bundles on the command line: the choice of function and rows, and modules of functions.

Elsewhere: bundles in general (`frontend/_bundles/`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import click

from axir._arguments.symbolic_shapes import sizes_in
from axir._bundles.bundle import Bundle, open_bundle
from axir._bundles.calls import in_rows
from axir._bundles.captures import reordered, with_captures, without_parameters
from axir._bundles.exported import Exported
from axir._bundles.manifest import FunctionEntry, Key
from axir._bundles.module_functions import functions_of_module
from axir._bundles.open_sizes import for_sizes, in_sizes, open_of
from axir._bundles.programs import flat_signature, instances
from axir._bundles.saving import is_function_name, module_of
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import ParameterError
from axir.dialect.program.function import Function
from axir.dialect.program.module_writer import embed_captures, write_module
from axir.dialect.text.file_kinds import is_bundle
from axir.dialect.text.module_reader import read_module
from axir.dialect.text.resources import write_out
from axir.dialect.text.signature import Signature, annotate, has_open_dimensions, signatures
from axir.runtime import devices

from .group import read_input
from .inputs import normal_name, shape_of_input

BUNDLE = ".axir"


def shape_option(command: UserObject) -> UserObject:
    """Gives a verb the option of filling open shapes."""

    def read(
        context: click.Context, option: click.Parameter, texts: Sequence[str]
    ) -> dict[str, tuple[int | str, ...]]:
        found: dict[str, tuple[int | str, ...]] = {}
        for text in texts:
            name, _, extents = text.rpartition("=")
            words = extents.removesuffix(",").split("," if "," in extents else "x")
            if not name or not all(word.isdecimal() or is_function_name(word) for word in words):
                raise click.UsageError(
                    f"--shape {text}: write the shape as NAME=8x64, or NAME=bx64 with a name for "
                    "what stays open. Names are like Python's variables; where one has an x in "
                    "it, write commas: NAME=max_length,64."
                )
            found[name] = tuple([int(word) if word.isdecimal() else word for word in words])
        return found

    return click.option(
        "--shape",
        "shapes",
        multiple=True,
        callback=read,
        metavar="NAME=8x64",
        help="Shape of an argument of StableHLO that is open there. Names in it stay open: they "
        "are like Python's variables, and where one has an x in it, write NAME=max_length,64.",
    )(command)


def size_option(command: UserObject) -> UserObject:
    """Gives a verb the option of naming sizes of open dimensions."""

    def read(
        context: click.Context, option: click.Parameter, texts: Sequence[str]
    ) -> list[dict[str, int]]:
        found = []
        for text in texts:
            pairs = [word.partition("=") for word in text.split(",") if word.strip()]
            if not pairs or not all(n.strip() and s.strip().isdecimal() for n, _, s in pairs):
                raise click.UsageError(f"--size {text}: write sizes as b=8,t=128.")
            found.append({name.strip(): int(size) for name, _, size in pairs})
        return found

    return click.option(
        "--size",
        "sizes",
        multiple=True,
        callback=read,
        metavar="NAME=N,...",
        help="Sizes of open dimensions: b=8,t=128; once for each combination.",
    )(command)


def open_functions(
    file: Path, shapes: Mapping[str, tuple[int | str, ...]] = MappingProxyType({})
) -> Bundle:
    """Opens a bundle, or a module as its public functions; StableHLO is raised.

    Args:
        file: The file to open; `-` is a module from stdin.
        shapes: Shapes of arguments that StableHLO leaves open.

    Raises:
        ParseError: if it is a module of another dialect.
        RaisingError: if StableHLO has an operation without a counterpart in the jaxpr dialect.
        ShapeError: if a shape does not fit.
        WeightsError: if weights of a module are missing or damaged.
    """
    if is_bundle(file):
        refuse_shapes(file, shapes)
        return open_bundle(file)
    return Bundle(functions_of_module(*read_input(file), str(file), shapes))


def refuse_shapes(file: Path, shapes: Mapping[str, tuple[int | str, ...]]) -> None:
    """Refuses shapes for files that have fixed shapes."""
    if shapes:
        raise click.UsageError(f"--shape is for modules of StableHLO, which {file} is not.")


def read_filled(
    file: Path,
    shapes: Mapping[str, tuple[int | str, ...]],
    sizes: Sequence[Mapping[str, int]] = (),
) -> tuple[UserObject, str]:
    """Reads a module, and fills open shapes, by arguments or by names; returns it and its dialect.

    Raises:
        ParameterError: if several combinations of sizes are given, or the names differ from the
            open dimensions.
    """
    if not shapes and not sizes:
        return read_input(file)
    if len(sizes) > 1:
        raise ParameterError(
            "A program of a module is for one combination of sizes.",
            "Name --size once; bundles (.axir) and C++ take several.",
            where="",
        )
    functions: Mapping[str, Exported] = open_functions(file, shapes)
    if sizes:
        chosen_sizes = for_sizes(functions, (), sizes)
        functions = {
            name: fixed for name, each in chosen_sizes.items() for _, fixed in instances(name, each)
        }
    return annotated_module(functions), "jaxpr"


def raised_if_open(file: Path, module: object, dialect: str) -> tuple[UserObject, str]:
    """Returns a module and its dialect: of jaxpr if it is StableHLO with open extents."""
    if dialect != "stablehlo" or not has_open_dimensions(module):
        return module, dialect
    return annotated_module(functions_of_module(module, dialect, str(file))), "jaxpr"


def annotated_module(functions: Mapping[str, Exported]) -> UserObject:
    """Returns a module of functions, with their parameters as constants."""
    module = module_of({name: embed_captures(each.function) for name, each in functions.items()})
    for name, each in functions.items():
        annotate(module, name, each.signature)
    return module


def chosen(functions: Mapping[str, object], name: str | None) -> str:
    """Returns the name of the function that is meant: the named one, the only one, or `main`.

    Raises:
        ParameterError: if the function is absent, or there are several and no name is given.
    """
    if name is None and len(functions) == 1:
        return next(iter(functions))
    found = "main" if name is None else name
    if found not in functions:
        said = f"There is no function {found!r}." if name else "There are several functions."
        raise ParameterError(
            said, f"The functions are {', '.join(functions)}; --function names one.", where=""
        )
    return found


def sized(exported: Exported, inputs: Sequence[str]) -> tuple[Signature, Key]:
    """Returns a function's signature for the number of rows, or the sizes, of inputs.

    Args:
        exported: The function.
        inputs: As for `read_inputs`.

    Returns:
        The signature, and the number of rows or the sizes, 1 if no input tells; 0 if nothing is
        open.
    """
    batch, signature = exported.batch, exported.signature
    if exported.open is not None:
        return _of_inputs(exported, inputs)
    if batch is None:
        return signature, 0
    names = [normal_name(name) for name in exported.argument_names]
    is_open = dict(zip(names, batch.arguments, strict=True))
    count = 1
    for number, text in enumerate(inputs):
        for name, shape in shape_of_input(text, names, number):
            if is_open.get(name) and shape:
                count = shape[0]
    arguments = in_rows(signature.arguments, batch.arguments, count)
    results = in_rows(signature.results, batch.results, count)
    return Signature(arguments, results, is_named=True), count


def _of_inputs(exported: Exported, inputs: Sequence[str]) -> tuple[Signature, Key]:
    """Returns the signature for dimensions that follow from the inputs; others are 1."""
    assert exported.open is not None
    signature = exported.signature
    names = [normal_name(name) for name in exported.argument_names]
    wanted = dict(zip(names, [value.type.shape for value in signature.arguments], strict=True))
    shapes = [
        (wanted[name], shape)
        for number, text in enumerate(inputs)
        for name, shape in shape_of_input(text, names, number)
        if name in wanted and len(shape) == len(wanted[name])
    ]
    sizes = dict.fromkeys(exported.open.symbols, 1)
    sizes.update(sizes_in([w for w, _ in shapes], [found for _, found in shapes]))
    key = tuple(sorted(sizes.items()))
    arguments, results = in_sizes(signature.arguments, key), in_sizes(signature.results, key)
    return Signature(arguments, results, is_named=True), key


class BundleProgram:
    """The functions of a bundle, to be run from the command line.

    Args:
        bundle: The bundle.
        inputs: The inputs of the command line, which determine the number of rows.
        device: The platform to run on; by default the default device's.
        is_eager: Whether to evaluate functions op by op.
    """

    def __init__(
        self, bundle: Bundle, inputs: Sequence[str], device: str | None, is_eager: bool = False
    ):
        self.signatures = {name: sized(each, inputs)[0] for name, each in bundle.items()}
        self._keys = {name: sized(each, inputs)[1] for name, each in bundle.items()}
        self._bundle = bundle
        self._device = devices(device)[0] if device else None
        self._is_eager = is_eager

    def signature(self, name: str) -> Signature:
        """Returns a function's signature, with as many rows as the inputs have."""
        return self.signatures[name]

    def run(self, values: Sequence[ConcreteArray], name: str) -> list[ConcreteArray]:
        """Calls a function with arrays of the types that it takes."""
        exported = self._bundle[name]
        if self._is_eager:
            return exported.function_of(self._keys[name]).evaluate(*values)
        if self._device is not None:
            values = [ConcreteArray(x.type, x.host(), device=self._device) for x in values]
        return exported.run_flat(list(values))


# Modules of functions, and back -------------------------------------------------------------------


def module_of_function(exported: Exported) -> UserObject:
    """Returns a module of one function, `main`, which takes the parameters after its arguments."""
    whole = without_parameters(exported.function, len(exported.parameters))
    module = write_module({"main": embed_captures(whole)})
    write_out(module.operation)
    annotate(
        module, "main", flat_signature(exported) if exported.parameters else exported.signature
    )
    return module


def changed_bundle(
    bundle: Bundle, name: str, module: object, new_name: str | None = None
) -> Bundle:
    """Returns a bundle with the passes' result for a function.

    Args:
        bundle: The bundle.
        name: The function.
        new_name: The name of the result; by default the function's name, which it replaces.
        module: The result of `module_of_function`, changed by passes. `main` is the function;
            others are added to the bundle. Arguments with the names and types of parameters are
            parameters.
    """
    functions, found = read_module(module), signatures(module)
    made: dict[str, Exported] = {}
    for symbol, signature in found.items():
        own = (new_name or name) if symbol == "main" else symbol
        made[own] = bound_to(functions[symbol], signature, own, bundle.parameters)
    made[new_name or name] = _like(bundle[name], made[new_name or name])
    return bundle.changed(made)


def _like(before: Exported, after: Exported) -> Exported:
    """Returns a function with the trees, and open rows, that passes have kept."""
    old, new = before.signature, after.signature
    in_tree, in_text = after.in_tree, new.in_tree
    out_tree, out_text = after.out_tree, new.out_tree
    if before.argument_names == after.argument_names:
        in_tree, in_text = before.in_tree, old.in_tree
    if before.result_names == after.result_names:
        out_tree, out_text = before.out_tree, old.out_tree
    is_same = (old.arguments, old.results) == (new.arguments, new.results)
    entry = replace(
        after.entry,
        signature=replace(new, in_tree=in_text, out_tree=out_text),
        batch=before.batch if is_same else None,
        open=before.open if is_same else after.open,
        updates=before.entry.updates if before.result_names == after.result_names else (),
    )
    return Exported(entry, after.function, after.parameters, in_tree, out_tree)


def bound_to(
    function: Function, signature: Signature, name: str, parameters: Mapping[str, ConcreteArray]
) -> Exported:
    """Returns a function with those arguments bound that are parameters, by name and type."""
    is_bound = [
        a.name in parameters and parameters[a.name].type.shape == a.type.shape
        for a in signature.arguments
    ]
    if not any(is_bound):
        return Exported.of_signature(name, signature, function)
    order = [n for n, bound in enumerate(is_bound) if not bound]
    order += [n for n, bound in enumerate(is_bound) if bound]
    count = is_bound.count(False)
    named = [signature.arguments[n].name for n in order[count:]]
    captured = {each: parameters[each] for each in named}
    taken = tuple(signature.arguments[n] for n in order[:count])
    rest = Signature(taken, signature.results, None, signature.out_tree, True)
    whole = embed_captures(reordered(function, order))
    made = with_captures(whole, count, list(captured.values()))
    entry = FunctionEntry(name, rest, tuple(named), open=open_of(made, rest))
    fresh = Exported.of_signature(name, rest, made)
    return Exported(entry, made, captured, fresh.in_tree, fresh.out_tree)
