"""Errors of raising: with the place of the operation, and the way out."""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.core.context import describe_location
from axir.dialect.text.summary import summarize
from axir.dialect.text.text_positions import place_in_text
from axir.passes.framework.errors import QuantizationError, RaisingError

from .quantized_operations import touches_quantized


def refusal_at(
    module: ir.Module,
    op: ir.Operation,
    message: str,
    way_out: str | None,
    of_quantized: bool = False,
) -> RaisingError:
    """Returns the error of an operation, with its place in the module and in its program."""
    place = describe_location(op.location)
    in_text = place_in_text(module, op)
    if in_text is not None:
        place = f"{in_text}, which comes from {place}" if place else in_text
    of_quantized = of_quantized or touches_quantized(op)
    kind = QuantizationError if of_quantized else RaisingError
    return kind(message, way_out, place or f"op {op.name!r}")


def way_out_of(name: str, module: ir.Module) -> str:
    """Returns what to do about an operation without a rule."""
    dialect = name.partition(".")[0]
    if dialect == "jaxpr":
        return "The module is of the jaxpr dialect already, at least in part."
    if dialect not in ("stablehlo", "chlo"):
        return "Lower it to StableHLO with the program that wrote it."
    if summarize(module).needs_raising:
        return "Export the program without it."
    return "It can still be compiled: axir compile, axir.export.load(path, compiled=True)."
