"""Common parts of both importers: required packages, and functions from their text."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from axir._bundles.captures import reordered
from axir._bundles.exported import Exported
from axir._bundles.module_functions import functions_of_module
from axir._bundles.saving import check_names
from axir._trees import text as tree_text
from axir._trees import tree
from axir.dialect.core.annotations import Extent, HostArray, UserObject
from axir.dialect.core.context import name_location
from axir.dialect.core.errors import AxirError
from axir.dialect.text.module_reader import parse_module
from axir.dialect.text.resources import name_constants
from axir.dialect.text.signature import Signature, replace_name
from axir.dialect.text.summary import summarize

WITHOUT_IT = "That is what torch-mlir says: export the model without what it names."
"""What to do about what torch-mlir does not know."""

# The longest part of another package's message that is repeated.
_LONGEST = 300
# Resources of more bytes are not printed: they are passed as arrays.
_PRINTED = 1


class ModelImportError(AxirError, ValueError):
    """A model of another program cannot be imported, or a package that reads it is missing."""


def needed(module: str, extra: str) -> UserObject:
    """Returns a module of a package that axir needs only here.

    Args:
        module: Its name.
        extra: The extra of axir that installs it.

    Raises:
        ModelImportError: if it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0].replace("_", "-")
        raise ModelImportError(
            f"Models of {'PyTorch' if extra == 'torch' else 'ONNX'} are read by {package}, which "
            f"cannot be imported: {error}.",
            f"Install it: pip install 'axir[{extra}]'.",
        ) from None


def told(
    what: str, way_out: str, read: Callable[[], UserObject], said: Sequence[str] = ()
) -> UserObject:
    """Returns the result of another package's reader; its failures become errors about the model.

    Args:
        what: The beginning of the error's sentence.
        way_out: The advice in the error.
        read: Calls the reader.
        said: The messages that the package has printed, if its exceptions do not hold the reason.

    Raises:
        ModelImportError: if it fails.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of other packages about each other
            return read()
    except AxirError:
        raise
    except Exception as error:  # the other packages raise any exception
        lines = [line for line in (*said, *str(error).splitlines()) if line.strip()]
        reason = next((line for line in lines if "error:" in line), lines[0] if lines else "")
        raise ModelImportError(
            f"{what}: {type(error).__name__}: {reason.strip()[:_LONGEST]}.",
            way_out,
        ) from error


def text_of(module: UserObject) -> str:
    """Returns the text of a module of torch-mlir's, without its weights."""
    text: str = module.operation.get_asm(
        large_resource_limit=_PRINTED, enable_debug_info=True, print_generic_op_form=False
    )
    return text


class Names(NamedTuple):
    """Names in a model: of the function, and of its arguments and results.

    Attributes:
        function: The function's name.
        arguments: Names of its arguments.
        results: Names of its results; empty if they have no names.
    """

    function: str
    arguments: Sequence[str]
    results: Sequence[str] = ()


def imported(
    text: str,
    where: str,
    weights: Mapping[str, HostArray],
    names: Names,
    shapes: Mapping[str, Sequence[Extent]],
    unnamed: Sequence[str] | None = None,
    trees: tuple[object, object] | None = None,
) -> Exported:
    """Returns the function of a module, under other names.

    Args:
        text: A module of StableHLO.
        where: The model's name in errors.
        weights: Its weights by name.
        names: The names of the function, its arguments and its results.
        shapes: Shapes of arguments that are open, by these names.
        unnamed: Weights that are constants without names in the model, if the module does not tell
            which is which; None if it does.
        trees: A tree like `(args, kwargs)`, of the numbers of arguments, and one like the result,
            of the numbers of results. A tree that axir cannot represent is replaced by a flat one.

    Raises:
        ShapeError: if a shape does not fit, or its argument does not exist.
        RaisingError, WeightsError: see `functions_of_module`.
    """
    module = parse_module(text, where, weights=weights)
    if unnamed is not None:
        name_constants(module, weights, unnamed)
    _name_arguments(module, names.arguments)
    read = functions_of_module(module, summarize(module).dialect, where, shapes)
    found = next(iter(read.values()))
    results = names.results or found.result_names
    signature = found.signature.renamed(names.arguments, results)
    function, in_tree, out_tree = found.function, found.in_tree, found.out_tree
    if trees is not None:
        order, in_tree, in_text = _structured(trees[0], len(signature.arguments), in_tree)
        places, out_tree, out_text = _structured(trees[1], len(signature.results), out_tree)
        function = reordered(function, order, places)
        taken = tuple(signature.arguments[number] for number in order)
        given = tuple(signature.results[number] for number in places)
        if out_text is not None:
            paths = [f"result{path}" for path in tree.paths(trees[1])]
            given = tuple(map(replace_name, given, paths))
        signature = Signature(taken, given, in_text, out_text, True)
    entry = replace(found.entry, name=names.function, signature=signature)
    made = Exported(entry, function, found.parameters, in_tree, out_tree)
    check_names({names.function: made})
    return made


def _name_arguments(module: UserObject, names: Sequence[str]) -> None:
    """Names the arguments of a module's only function, as JAX does."""
    block = module.body.operations[0].operation.regions[0].blocks[0]
    for argument, name in zip(block.arguments, names, strict=True):
        argument.set_location(name_location(name))


def _structured(
    numbers: object, count: int, flat: tree.TreeDef
) -> tuple[list[int], tree.TreeDef, str | None]:
    """Returns the order of values in a tree of their numbers, its structure and its notation.

    Args:
        numbers: The tree.
        count: How many values there are.
        flat: The structure if axir cannot represent the tree; it has no notation then.
    """
    order = tree.leaves(numbers)
    if sorted(map(str, order)) != sorted(map(str, range(count))):
        return list(range(count)), flat, None
    structure = tree.structure(numbers)
    return order, structure, tree_text.write(structure)
