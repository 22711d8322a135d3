"""`Application`: the inferred results of a primitive for operand types and parameters."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from iree.compiler import ir

from axir.dialect.core.annotations import Params
from axir.dialect.core.attributes import encode
from axir.dialect.core.types import ShapedArray

from .rules import ResultTypes


class Application:
    """Result types of a primitive for operand types and parameters.

    Attributes:
        results: The result type, or a list of them for a primitive with multiple results.
        mlir_types: The same as MLIR types; None until first recorded.
        attributes: The parameters as MLIR attributes; None until first recorded.
        is_widened: Whether the primitive computes with wide forms of the operands' elements, or
            returns wide forms of its results' elements (`narrow_elements.py`); or is open.
        is_open: Whether extents of its results are symbolic dimensions: it can only be recorded.
        missing: For each operand the named axes along which its type must vary first, so that all
            operands agree; None if they do.
    """

    __slots__ = ("attributes", "is_open", "is_widened", "missing", "mlir_types", "results")

    def __init__(
        self,
        results: ResultTypes,
        is_widened: bool = False,
        missing: Sequence[tuple[Hashable, ...]] | None = None,
    ):
        self.results = results
        types = [results] if type(results) is ShapedArray else results
        self.is_open = any([t.is_open for t in types])
        self.is_widened = is_widened or self.is_open
        self.missing = missing
        self.mlir_types: list[ir.Type] | None = None
        self.attributes: dict[str, ir.Attribute] | None = None

    def materialize(self, params: Params) -> None:
        """Makes the MLIR types and attributes."""
        results = self.results
        types = [results] if type(results) is ShapedArray else results
        self.mlir_types = [t.mlir for t in types]
        self.attributes = {name: encode(value) for name, value in params.items()}
