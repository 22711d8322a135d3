"""Functions with symbolic dimensions: the sizes in calls, and types with these sizes.

The function's program has expressions of the dimensions, which the pass `instantiate` replaces by
numbers. Elsewhere: dimensions that are rows (`batching.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from axir._arguments.symbolic_shapes import check_sizes, solved
from axir._devices.shape_dtype_struct import ShapeDtypeStruct
from axir.dialect.core.annotations import Extent, UserObject
from axir.dialect.core.array import Array
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.core.symbolic.texts import Constraint, scope_of, with_constraints
from axir.dialect.core.symbolic_dims import SymbolicDim, names_of
from axir.dialect.program.function import Function
from axir.dialect.text.signature import Argument, Signature
from axir.passes.transforms.instantiate import symbols_of, type_of_sizes

from .manifest import ExportedFunction, Open, Sizes

_Exported = TypeVar("_Exported", bound=ExportedFunction)

# A size that stands for any, to see which sizes follow from shapes.
_SOME = 7


def under(leaves: Sequence[object], constraints: tuple[str, ...]) -> list[UserObject]:
    """Returns the arguments with all their symbolic dimensions under the same constraints."""

    def one(x: object) -> UserObject:
        if not isinstance(x, ShapeDtypeStruct):
            return x
        return x.update(shape=tuple([with_constraints(extent, constraints) for extent in x.shape]))

    return list(map(one, leaves))


def open_of(function: Function, signature: Signature) -> Open | None:
    """Returns the manifest's entry for a function's symbolic dimensions; None without any.

    Raises:
        ShapeError: if one does not follow from the shapes of the arguments.
    """
    if not any(value.type.is_open for value in (*signature.arguments, *signature.results)):
        return None
    symbols = sorted(symbols_of(function))
    shapes = [value.type.shape for value in signature.arguments]
    some = dict.fromkeys(symbols, _SOME)
    found = [type_of_sizes(value.type, some).shape for value in signature.arguments]
    names = [value.name for value in signature.arguments]
    sizes = solved(function.name, names, shapes, found)
    for symbol in symbols:
        if symbol not in sizes:
            raise ShapeError(
                f"{function.name}: the dimension {symbol} is in no shape of an argument.",
                "Let it stand alone, or with a factor, in the shape of some argument.",
            )
    extents: list[Extent] = [extent for shape in shapes for extent in shape]
    constraints = [x.constraints for x in extents if isinstance(x, SymbolicDim)]
    made = Open(tuple(symbols), max(constraints, key=len, default=()))
    for each in constraints_of(made):
        if not each.names <= set(symbols):
            raise ShapeError(
                f"{function.name}: the constraint {each.text!r} names a dimension that is in no "
                "shape of an argument.",
                f"The dimensions are {', '.join(symbols)}: state it for functions that have all "
                "that it names.",
            )
    return made


def constraints_of(entry: Open) -> Sequence[Constraint]:
    """Returns the constraints on a function's dimensions."""
    scope = scope_of(entry.constraints)
    return scope.constraints if scope else ()


def sizes_of_call(
    name: str, arguments: Sequence[Argument], values: Sequence[UserObject], entry: Open
) -> Sizes:
    """Returns the sizes of the symbolic dimensions in a call.

    Raises:
        ShapeError: if shapes do not fit, or a constraint does not hold.
    """
    names = [value.name for value in arguments]
    wanted = [value.type.shape for value in arguments]
    found = [x.type.shape if isinstance(x, Array) else np.shape(x) for x in values]
    sizes = solved(name, names, wanted, found, constraints_of(entry))
    return tuple(sorted(sizes.items()))


def check_names(name: str, given: Collection[str], symbols: Collection[str]) -> None:
    """Raises a `ParameterError` if the given names are not the names of the open dimensions."""
    if set(given) != set(symbols):
        raise ParameterError(
            f"The open dimensions of {name!r} are {', '.join(symbols)}, not "
            f"{', '.join(given) or 'none'}.",
            "Give a size for each of them by its name.",
        )


def checked_sizes(name: str, sizes: Mapping[str, int], entry: Open) -> Sizes:
    """Returns sizes that were given by name.

    Raises:
        ParameterError: if the names are not the dimensions' names.
        ShapeError: if a constraint does not hold.
    """
    check_names(name, sizes, entry.symbols)
    if any(type(size) is not int for size in sizes.values()):
        raise ParameterError(f"{dict(sizes)} are no sizes.", "Sizes are positive integers.")
    check_sizes(name, sizes, constraints_of(entry))
    return tuple(sorted(sizes.items()))


def for_sizes(
    functions: Mapping[str, _Exported], rows: Sequence[int], sizes: Sequence[Mapping[str, int]]
) -> dict[str, _Exported]:
    """Returns functions fixed to the named sizes of open dimensions; others unchanged.

    Args:
        functions: By name.
        rows: Sizes of the leading dimension: numbers of rows, if rows are independent.
        sizes: Combinations of sizes by name; each function takes the sizes of its dimensions.

    Raises:
        ParameterError: if no function has a dimension of a name, or a function's dimension is
            missing.
        ShapeError: if a constraint does not hold.
    """
    known = {symbol for each in functions.values() for symbol in each.symbols}
    unknown = sorted({name for given in sizes for name in given} - known)
    if unknown:
        raise ParameterError(
            f"No function has an open dimension {unknown[0]!r}.",
            f"The open dimensions are {', '.join(sorted(known))}."
            if known
            else "All dimensions are numbers.",
            where="",
        )
    return {name: _for_sizes(each, rows, sizes) for name, each in functions.items()}


def _for_sizes(
    exported: _Exported, rows: Sequence[int], sizes: Sequence[Mapping[str, int]]
) -> _Exported:
    own = [{n: size for n, size in given.items() if n in exported.symbols} for given in sizes]
    own = [given for given in own if given]
    if not exported.symbols or not (rows or own):
        return exported
    leading = next(
        (
            name
            for value in exported.signature.arguments
            for name in names_of(next(iter(value.type.shape), 1))
        ),
        exported.symbols[0],
    )
    combined = [{**given, leading: count} for given in own or [{}] for count in rows]
    combined += [given for given in own if leading in given or not rows]
    return exported.with_combinations(combined)


def combinations(sizes: Mapping[str, int | Sequence[int]]) -> Iterator[dict[str, int]]:
    """Yields all combinations of sizes by name.

    >>> list(combinations({"b": (1, 8), "t": 3}))
    [{'b': 1, 't': 3}, {'b': 8, 't': 3}]
    """
    lists = {name: (x,) if isinstance(x, int) else tuple(x) for name, x in sizes.items()}
    for values in itertools.product(*lists.values()):
        yield dict(zip(lists, values, strict=True))


def in_sizes(
    values: Sequence[Argument], sizes: Sequence[tuple[str, Extent]]
) -> tuple[Argument, ...]:
    """Returns arguments or results with sizes for their symbolic dimensions."""
    by_name = dict(sizes)
    return tuple([Argument(v.name, type_of_sizes(v.type, by_name)) for v in values])


def name_of_sizes(name: str, sizes: Sizes) -> str:
    """Returns the name of a function of fixed sizes.

    >>> name_of_sizes("predict", (("b", 8), ("t", 128)))
    'predict_b8_t128'
    """
    return "_".join([name, *(f"{symbol}{size}" for symbol, size in sizes)])
