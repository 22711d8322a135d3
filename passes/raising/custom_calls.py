"""`stablehlo.custom_call` and `stablehlo.composite`: operations that are named, not written out."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.program.rules import Value

from .attributes import optional_integers, text
from .chlo import COMPOSITES
from .table import CUSTOM_CALLS, Raised, RaisingContext, raises, raises_calls_of, refusal

# Operands with the shapes of results, which follow from those of the other operands.
_SHAPES = "indices_of_shape_operands"
_PREFIXES = ("chlo.", "mhlo.")


@raises("stablehlo.custom_call")
def _custom_call(context: RaisingContext, operation: ir.Operation, *values: Value) -> Raised:
    target = text(operation, "call_target_name")
    rule = CUSTOM_CALLS.get(target)
    if rule is not None:
        shapes = optional_integers(operation, _SHAPES) or ()
        given = (value for number, value in enumerate(values) if number not in shapes)
        return rule(context, operation, *given)
    composite = _composite_of(target)
    if composite is not None and "mhlo.attributes" in operation.attributes:
        return COMPOSITES[composite](operation.attributes["mhlo.attributes"], *values)
    near = difflib.get_close_matches(target, CUSTOM_CALLS, n=1, cutoff=0.85)
    raise refusal(
        f"stablehlo.custom_call calls {target!r}, a function of the program that wrote the module.",
        _WAYS_OUT.get(target)
        or (f"Calls of {near[0]!r} can be raised: export the program again, with a JAX of today."
            if near else "Export the program without it, or for the CPU."),
    )  # fmt: skip


_WAYS_OUT = {
    name: "Callbacks call Python, which no module holds: export the program without them."
    for name in (
        "xla_python_cpu_callback",
        "xla_ffi_python_cpu_callback",
        "xla_ffi_partitioned_python_cpu_callback",
        "xla_python_gpu_callback",
        "xla_ffi_python_gpu_callback",
    )
}


def _composite_of(name: str) -> str | None:
    for prefix in _PREFIXES:
        short = name.removeprefix(prefix)
        if short != name:
            short = {"topk": "top_k"}.get(short, short)
            return short if short in COMPOSITES else None
    return None


@raises("stablehlo.composite", "sdy.composite")
def _composite(context: RaisingContext, operation: ir.Operation, *values: Value) -> Raised:
    known = _composite_of(text(operation, "name"))
    if known is not None:
        attributes = operation.attributes
        found = attributes["composite_attributes"] if "composite_attributes" in attributes else {}
        return COMPOSITES[known](found, *values)
    return context.call(text(operation, "decomposition"), values)


@raises_calls_of(
    "Sharding",
    "annotate_device_placement",
    "xla.sdy.FuncResultSharding",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
)
def _placement(context: RaisingContext, operation: ir.Operation, *values: Value) -> Sequence[Value]:
    return values


@raises_calls_of("shape_assertion")
def _assertion(context: RaisingContext, operation: ir.Operation, *values: Value) -> Sequence[Value]:
    context.assume(operation.operands[0])
    return []
