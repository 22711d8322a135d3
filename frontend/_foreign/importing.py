"""What both ways of importing share: the packages that they need, and functions from their text."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from axir._bundles.exported import Exported
from axir._bundles.module_functions import functions_of_module
from axir._bundles.saving import check_names
from axir._trees import text as tree_text
from axir._trees import tree
from axir.dialect.core.annotations import HostArray, UserObject
from axir.dialect.core.context import name_location
from axir.dialect.core.errors import AxirError, ParameterError
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function
from axir.dialect.program.rules import Results, Value
from axir.dialect.program.tracer import Trace
from axir.dialect.text.module_reader import parse_module
from axir.dialect.text.resources import name_constants
from axir.dialect.text.signature import Argument, Signature
from axir.dialect.text.summary import summarize

WITHOUT_IT = "That is what torch-mlir says: export the model without what it names."
"""What to do about what torch-mlir does not know."""

# Resources above so many bytes are not printed: they are handed over as arrays.
_PRINTED = 1


class ModelImportError(AxirError, ValueError):
    """A model of another program cannot be imported, or a package that reads it is missing."""


def needed(module: str, extra: str) -> UserObject:
    """Returns a module of a package that axir does not need for anything else.

    Args:
        module: Its name.
        extra: The extra of axir's that installs it.

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


def told(what: str, way_out: str, read: Callable[[], UserObject]) -> UserObject:
    """Returns what a package reads; its failures are told as those of a model.

    Args:
        what: What has failed then.
        way_out: What to do about it.
        read: Reads it.

    Raises:
        ModelImportError: if it fails.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other packages among each other
            return read()
    except AxirError:
        raise
    except Exception as error:  # whatever other programs raise
        lines = [line for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in lines if "error:" in line), lines[0] if lines else "")
        raise ModelImportError(
            f"{what}: {type(error).__name__}: {reason.strip()[:300]}.",
            way_out,
        ) from error


def text_of(module: UserObject) -> str:
    """Returns the text of a module of torch-mlir's, without its weights."""
    text: str = module.operation.get_asm(
        large_resource_limit=_PRINTED, enable_debug_info=True, print_generic_op_form=False
    )
    return text


def imported(
    text: str,
    where: str,
    weights: Mapping[str, HostArray],
    name: str,
    arguments: Sequence[str],
    shapes: Mapping[str, Sequence[int]],
    forgets_names: bool = False,
) -> Exported:
    """Returns the function of a module, under a name, with names of its arguments.

    Args:
        text: A module of StableHLO.
        where: What the model is called in errors.
        weights: Its weights by name.
        name: What the function is called.
        arguments: Names of its arguments.
        shapes: Shapes of arguments that are open, by these names.
        forgets_names: Whether weights are constants without names.
    """
    unknown = [each for each in shapes if each not in arguments]
    if unknown:
        raise ParameterError(
            f"There is no argument {unknown[0]!r}, whose shape is given.",
            f"The arguments are {', '.join(arguments)}.",
        )
    module = parse_module(text, where, weights=weights)
    if forgets_names:
        name_constants(module, weights)
    _name_arguments(module, arguments)
    read = functions_of_module(module, summarize(module).dialect, where, shapes)
    found = next(iter(read.values()))
    results = [value.name for value in found.signature.results]
    signature = found.signature.renamed(arguments, results)
    entry = replace(found.entry, name=name, signature=signature)
    made = Exported(entry, found.function, found.parameters, found.in_tree, found.out_tree)
    check_names({name: made})
    return made


def _name_arguments(module: UserObject, names: Sequence[str]) -> None:
    """Names the arguments of a module's only function, as JAX does."""
    block = module.body.operations[0].operation.regions[0].blocks[0]
    for argument, name in zip(block.arguments, names, strict=True):
        argument.set_location(name_location(name))


def with_trees(exported: Exported, inputs: UserObject, outputs: UserObject) -> Exported:
    """Returns a function that takes and returns trees, whose leaves have another order perhaps.

    Args:
        exported: The function, flat.
        inputs: A tree like `(args, kwargs)`, of the numbers of arguments; they stay flat if it is
            none of axir's.
        outputs: A tree like the result, of the numbers of results, likewise.
    """
    signature = exported.signature
    taken, given = list(signature.arguments), list(signature.results)
    in_tree, out_tree = exported.in_tree, exported.out_tree
    order, places = tree.leaves(inputs), tree.leaves(outputs)
    in_text = out_text = None
    if sorted(map(str, order)) == sorted(map(str, range(len(taken)))):
        in_tree = tree.structure(inputs)
        in_text = tree_text.write(in_tree)
    else:
        order = list(range(len(taken)))
    if sorted(map(str, places)) == sorted(map(str, range(len(given)))):
        out_tree = tree.structure(outputs)
        out_text = tree_text.write(out_tree)
        given = [
            Argument(f"result{path}", given[number].type)
            for path, number in zip(tree.paths(outputs), places, strict=True)
        ]
    else:
        places = list(range(len(given)))
    arguments = tuple(taken[number] for number in order)
    changed = Signature(arguments, tuple(given), in_text, out_text, True)
    function = _rearranged(exported.function, order, places)
    entry = replace(exported.entry, signature=changed)
    return Exported(entry, function, exported.parameters, in_tree, out_tree)


def _rearranged(function: Function, order: Sequence[int], places: Sequence[int]) -> Function:
    """Returns a function with its arguments and results in another order."""
    with Trace(function.name) as trace:
        inputs = {number: trace.add_input(function.inputs[number].type) for number in order}
        captured: list[UserObject] = [trace.capture(x) for x in function.captured]

        def record(equation: Equation, operands: Sequence[Value]) -> Results:
            return trace.record(equation.primitive, operands, equation.params)

        values = [inputs[number] for number in range(len(order))]
        outputs = function.interpret([*values, *captured], record)
        return trace.finish([outputs[number] for number in places])
