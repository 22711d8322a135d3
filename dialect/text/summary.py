"""The contents of a module, counted without interpreting it, as shown by `axir inspect`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from iree.compiler import ir

from axir.dialect.core.context import describe_location
from axir.dialect.core.errors import AxirError
from axir.dialect.core.quantized_types import is_quantized
from axir.dialect.core.types import ShapedArray, numpy_dtype, type_of_mlir

from .resources import resource_name

_CONTAINERS = ("builtin.module", "func.func")
# Dialects that exporters write beside StableHLO, or only them if nothing else is left.
_BESIDE = ("arith", "builtin", "sdy", "shape", "tensor")
# Compiled as axir's own operations: legalizations of StableHLO do not know them.
_RAISED = ("arith.", "chlo.scan", "sdy.", "shape.", "stablehlo.composite", "tensor.")
OF_DEVICES = frozenset(
    f"stablehlo.{name}"
    for name in (
        "all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute",
        "collective_reduce", "cross-replica-sum", "partition_id", "reduce_scatter", "replica_id",
    )
)  # fmt: skip
"""Operations that communicate among devices or distinguish them."""
_NEUTRAL = (*_CONTAINERS, "func.return", "func.call")


@dataclass
class Summary:
    """Ops and constants of a module.

    Attributes:
        dialect: `jaxpr`, or the dialect that most ops belong to: `stablehlo`, ...
        operations: How often each op occurs.
        constants: Bytes of the constants, by the user's line that they come from.
        weights: Types of the constants that are weights with names.
        foreign_calls: Targets of `stablehlo.custom_call`: functions of another program.
        is_quantized: Whether values are quantized numbers.
    """

    dialect: str = "jaxpr"
    operations: Counter[str] = field(default_factory=Counter)
    constants: Counter[str] = field(default_factory=Counter)
    weights: dict[str, ShapedArray] = field(default_factory=dict)
    foreign_calls: set[str] = field(default_factory=set)
    is_quantized: bool = False

    @property
    def needs_raising(self) -> bool:
        """Whether a module of StableHLO can be compiled only if it can be raised.

        It calls functions of another program, of LAPACK for instance, which only lowering writes
        out. Or it holds quantized numbers, dialects that exporters write beside StableHLO, or
        communication among devices.
        """
        is_beside = any(x.startswith(_RAISED) or x in OF_DEVICES for x in self.operations)
        return bool(self.foreign_calls) or self.is_quantized or is_beside


def summarize(module: ir.Module) -> Summary:
    """Walks a module once and counts."""
    summary = Summary()

    def visit(op: ir.Operation) -> ir.WalkResult:
        name = op.name
        if name not in _CONTAINERS:
            summary.operations[name] += 1
        summary.is_quantized = summary.is_quantized or _holds_quantized(op)
        if name == "stablehlo.custom_call":
            summary.foreign_calls.add(ir.StringAttr(op.attributes["call_target_name"]).value)
        if name.endswith(".constant") and "value" in op.attributes:
            name = resource_name(op.attributes["value"])
            if name is not None:
                summary.weights[name] = type_of_mlir(op.results[0].type)
            else:
                place = describe_location(op.location) or "unknown"
                summary.constants[place] += _constant_bytes(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    dialects: Counter[str] = Counter()
    for name, count in summary.operations.items():
        if name not in _NEUTRAL:
            dialects[name.split(".")[0]] += count
    if dialects and "jaxpr" not in dialects:
        others = [name for name, _ in dialects.most_common() if name not in _BESIDE]
        is_stablehlo = not others or "stablehlo" in others or "chlo" in others
        summary.dialect = "stablehlo" if is_stablehlo else others[0]
    elif not dialects and _leaves_extents_open(module):
        summary.dialect = "stablehlo"
    return summary


def _holds_quantized(op: ir.Operation) -> bool:
    """Tells whether a result of an operation, or an argument of its body, is quantized."""
    arguments = [x for region in op.regions for block in region.blocks for x in block.arguments]
    return any(is_quantized(value.type) for value in (*op.results, *arguments))


def _leaves_extents_open(module: ir.Module) -> bool:
    """Tells whether arguments have types that do not give their open extents."""
    kinds = [
        kind
        for view in module.body.operations
        if view.operation.name == "func.func"
        for kind in ir.FunctionType(
            ir.TypeAttr(view.operation.attributes["function_type"]).value
        ).inputs
    ]
    return any(
        isinstance(kind, ir.RankedTensorType) and not kind.has_static_shape and not kind.encoding
        for kind in kinds
    )


def _constant_bytes(op: ir.Operation) -> int:
    result_type = op.results[0].type
    if not isinstance(result_type, ir.RankedTensorType) or not result_type.has_static_shape:
        return 0
    size = 1
    for extent in result_type.shape:
        size *= extent
    return size * _element_bytes(result_type.element_type)


def _element_bytes(element: ir.Type) -> int:
    if isinstance(element, ir.ComplexType):
        return 2 * _element_bytes(element.element_type)
    if isinstance(element, ir.OpaqueType):
        try:
            return numpy_dtype(element).itemsize
        except AxirError:  # a type of another project
            return 1
    width = getattr(element, "width", 8)
    return max(1, width // 8)
