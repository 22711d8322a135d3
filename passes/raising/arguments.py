"""Arguments of a module's functions: their types, with open dimensions, and checks of shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.core.annotations import Extent
from axir.dialect.core.errors import AxirError, ShapeError
from axir.dialect.core.quantized_types import is_quantized
from axir.dialect.core.symbolic_dims import SymbolicDim, names_of
from axir.dialect.core.types import ShapedArray, numpy_dtype
from axir.dialect.text.foreign_signatures import argument_names
from axir.passes.raising.dimensions.open_dimensions import (
    Learned,
    filled,
    open_shape,
    plain_name,
    written_shape,
)

from .refusals import refusal_at
from .table import raised_type

Shapes: TypeAlias = Mapping[str, Sequence[Extent]]
"""Shapes of arguments by name: of numbers, and of names of dimensions that stay open."""


class Arguments:
    """The arguments of a module's functions.

    Attributes:
        module: The module.
        shapes: The given shapes of arguments.
        learned: Known facts about open dimensions.
    """

    def __init__(self, module: ir.Module, shapes: Shapes, learned: Learned):
        self.module, self.shapes, self.learned = module, shapes, learned

    def types(self, op: ir.Operation) -> list[ShapedArray]:
        """Returns the types of the arguments of a function with a body."""
        block = op.regions[0].blocks[0]
        names = argument_names(op)
        return [self._type(op, x, name) for x, name in zip(block.arguments, names, strict=True)]

    def _type(self, op: ir.Operation, argument: ir.Value, name: str) -> ShapedArray:
        kind = argument.type
        if isinstance(kind, ir.RankedTensorType) and not kind.has_static_shape:
            given = self.shapes.get(name)
            if given is not None:
                wanted = filled(kind, given, name)
            else:
                wanted = written_shape(op, argument) or open_shape(kind, name)
            extents = [self.learned.extent(extent) for extent in wanted]
            return ShapedArray(extents, numpy_dtype(kind.element_type))
        if str(kind) == "!stablehlo.token":
            raise refusal_at(
                self.module,
                op,
                f"The argument {name!r} is a token, which orders infeeds, outfeeds, sends and "
                "receives of several programs.",
                "Functions of axir take arrays: export the program without these.",
            )
        try:
            return raised_type(kind)
        except AxirError as error:
            message = f"Argument {argument.arg_number}: {error.message}"
            raise refusal_at(self.module, op, message, error.way_out, is_quantized(kind)) from None

    def dimension(self, name: str) -> Extent | None:
        """Returns the dimension that an argument is, of a given name; None for others."""
        is_dimension = name in self.learned.arguments
        return self.learned.extent(SymbolicDim(plain_name(name))) if is_dimension else None

    def check_shapes(self, ops: Iterable[ir.Operation]) -> None:
        """Raises if a shape was given for a name that is no argument of the functions."""
        names = [name for op in ops if op.regions[0].blocks for name in argument_names(op)]
        unknown = [name for name in self.shapes if name not in names]
        if unknown:
            raise ShapeError(
                f"There is no argument {unknown[0]!r}, whose shape is given.",
                f"The arguments are {', '.join(names)}.",
            )

    def check_dimensions(self, op: ir.Operation) -> None:
        """Raises if no array of a function has a dimension that it takes as an argument."""
        known = {n for kind in self.types(op) for extent in kind.shape for n in names_of(extent)}
        for name in argument_names(op):
            extent = self.dimension(name)
            if extent is not None and not known.issuperset(names_of(extent)):
                raise refusal_at(
                    self.module,
                    op,
                    f"The argument {name!r} is a dimension, and nothing says which one of the "
                    "arrays has it.",
                    f"Say so: --shape x={name}x3, load(path, shapes={{'x': ({name!r}, 3)}}).",
                )
