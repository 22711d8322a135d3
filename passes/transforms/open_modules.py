"""StableHLO with open dimensions, as `jax.export` writes it: sizes follow from arguments.

The public function computes the sizes of the names from the shapes of its arguments, asserts their
constraints, and calls a private function. All private functions take the sizes as their first
arguments; types of values are `tensor<?xf32>`, and operations take extents as operands. Elsewhere:
the rules of ops (`dialect/ops`), operations that take extents (`dialect/builders/stablehlo`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.stablehlo.extents import EXTENT
from axir.dialect.core.annotations import Extent
from axir.dialect.core.symbolic.terms import SymbolicDimError
from axir.dialect.core.symbolic.texts import Constraint, SymbolicScope, write_extent
from axir.dialect.core.symbolic_dims import SymbolicDim, is_symbolic_dim, names_of, value_of
from axir.dialect.core.types import ShapedArray

# Attributes for shape refinement: the mark of a module, and the dimension that an argument is.
_USES = "jax.uses_shape_polymorphism"
GLOBAL = "jax.global_constant"
DIMENSIONS = "axir.dims"
"""Attribute of an argument: the extents that are open in its type, as texts."""

_DIRECTIONS = {">=": "GE", "<=": "LE", ">": "GT", "<": "LT", "==": "EQ"}


def size_attributes(names: Sequence[str]) -> list[ir.Attribute]:
    """Returns the attributes of arguments that are the sizes of names."""
    return [ir.DictAttr.get({GLOBAL: ir.StringAttr.get(name)}) for name in names]


def open_attribute(kind: ShapedArray) -> dict[str, ir.Attribute]:
    """Returns the attribute of an argument with open extents."""
    texts = [write_extent(extent) for extent in kind.shape if is_symbolic_dim(extent)]
    if not texts:
        return {}
    return {DIMENSIONS: ir.ArrayAttr.get(list(map(ir.StringAttr.get, texts)))}


def write_entry(
    names: Sequence[str], kinds: Sequence[ShapedArray], arguments: Sequence[ir.Value]
) -> list[ir.Value]:
    """Computes the sizes of names at the beginning of a public function, and asserts the rest.

    1. Take an extent that is linear in a single name without a value, and solve it for that name.
       Repeat this as long as such an extent exists.
    2. Assert that all names are at least 1, that extents are what their texts say, and that
       constraints hold.

    Returns:
        The sizes, of rank 0.

    Raises:
        SymbolicDimError: if a name does not follow from the shapes of arguments.
    """
    found = [
        (extent, _extent_of(argument, axis))
        for kind, argument in zip(kinds, arguments, strict=True)
        for axis, extent in _open_extents(kind)
    ]
    values = hlo.ExtentValues()
    given = set()
    while (solved := _solution(found, values)) is not None:
        name, number, size = solved
        values.define(name, size)
        given.add(number)
    for name in names:
        if name not in values.names:
            raise SymbolicDimError(
                f"The dimension {name} does not follow from the shapes of arguments.",
                "Let it stand alone, or with a factor, in the shape of some argument.",
            )
        _assert(values, SymbolicDim(name), 1, ">=", f"the dimension {name} is {{0}}")
    for number, (extent, size) in enumerate(found):
        if not (number in given and extent.is_name):
            message = f"{extent} is {{0}}, but an argument has extent {{1}}"
            _check(hlo.compared(values.of(extent), size, "EQ"), message, values.of(extent), size)
    for each in _constraints(kinds):
        text = f"the constraint {each.text} does not hold"
        _assert(values, each.left, each.right, each.sign, text)
    return [values.names[name] for name in names]


def _open_extents(kind: ShapedArray) -> Iterator[tuple[int, SymbolicDim]]:
    """Yields the axes with open extents, and the extents."""
    extents: list[Extent] = [*kind.shape]
    for axis, extent in enumerate(extents):
        if isinstance(extent, SymbolicDim):
            yield axis, extent


def _extent_of(argument: ir.Value, axis: int) -> ir.Value:
    operation = ir.Operation.create(
        "stablehlo.get_dimension_size",
        results=[hlo.tensor_type((), np.int32)],
        operands=[argument],
        attributes={"dimension": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)},
    )
    return hlo.convert(operation.result, EXTENT)


def _solution(
    found: Sequence[tuple[SymbolicDim, ir.Value]], values: hlo.ExtentValues
) -> tuple[str, int, ir.Value] | None:
    """Returns a name, the number of the extent that determines it, and its value; else None."""
    for number, (extent, size) in enumerate(found):
        unknown = set(names_of(extent)) - set(values.names)
        if len(unknown) != 1:
            continue
        (name,) = unknown
        within = [p for p in extent.terms if name in SymbolicDim(terms={p: 1}).names()]
        if any(p.count(name) != 1 or not all(isinstance(x, str) for x in p) for p in within):
            continue
        start, following = (value_of(extent, {name: n}) for n in (0, 1))
        slope = following - start
        if is_symbolic_dim(start) or start:
            size = hlo.subtract(size, values.of(start))
        if is_symbolic_dim(slope) or slope != 1:
            size = hlo.divide(size, values.of(slope))
        return name, number, size
    return None


def _constraints(kinds: Sequence[ShapedArray]) -> Iterator[Constraint]:
    extents = chain.from_iterable(map(_open_extents, kinds))
    scopes = [x.scope for _, x in extents if isinstance(x.scope, SymbolicScope)]
    yield from dict.fromkeys(chain.from_iterable(scope.constraints for scope in scopes))


def _assert(values: hlo.ExtentValues, left: Extent, right: Extent, sign: str, message: str) -> None:
    operands = values.of(left), values.of(right)
    _check(hlo.compared(*operands, _DIRECTIONS[sign]), message, *operands)


def _check(condition: ir.Value, message: str, *values: ir.Value) -> None:
    """Writes an assertion with a message about values, which stops shape refinement if it fails."""
    ir.Operation.create(
        "stablehlo.custom_call",
        operands=[condition, *values],
        attributes={
            "call_target_name": ir.StringAttr.get("shape_assertion"),
            "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 2),
            "has_side_effect": ir.BoolAttr.get(True),
            "error_message": ir.StringAttr.get(f"The shapes of arguments do not fit: {message}."),
        },
    )


def finish(module: ir.Module) -> None:
    """Removes the encodings of open extents from types, and marks the module as polymorphic."""
    module.operation.attributes[_USES] = ir.BoolAttr.get(True)
    for view in module.body.operations:
        op = view.operation
        kind = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        plain = ir.FunctionType.get(list(map(_plain, kind.inputs)), list(map(_plain, kind.results)))
        op.attributes["function_type"] = ir.TypeAttr.get(plain)
        _make_plain(op)


def _make_plain(op: ir.Operation) -> None:
    for result in op.results:
        result.set_type(_plain(result.type))
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                argument.set_type(_plain(argument.type))
            for view in block.operations:
                _make_plain(view.operation)


def _plain(kind: ir.Type) -> ir.Type:
    if not isinstance(kind, ir.RankedTensorType) or kind.has_static_shape:
        return kind
    return ir.RankedTensorType.get(list(kind.shape), kind.element_type)
