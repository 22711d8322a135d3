"""Operations that are named, not written out: custom calls, composites, generators of random bits.

Here: `stablehlo.custom_call` and `stablehlo.composite`, StableHLO's generator of bits, and calls of
JAX's GPU generators.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.ops.random.bit_generators import RandomAlgorithm, rng_bit_generator
from axir.dialect.ops.random.random_bits import threefry2x32
from axir.dialect.program.rules import Value
from axir.passes.raising.dimensions.attributes import optional_integers, text, word

from .chlo import COMPOSITES
from .shapes import known
from .table import (
    CUSTOM_CALLS,
    Raised,
    RaisingContext,
    raises,
    raises_calls_of,
    refusal,
    result_dtype,
    result_type,
)

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


_ALGORITHMS = {
    "DEFAULT": RandomAlgorithm.RNG_DEFAULT,
    "THREE_FRY": RandomAlgorithm.RNG_THREE_FRY,
    "PHILOX": RandomAlgorithm.RNG_PHILOX,
}


@raises("stablehlo.rng_bit_generator")
def _bits(context: RaisingContext, operation: ir.Operation, state: Value) -> Sequence[Value]:
    algorithm = _ALGORITHMS[word(operation.attributes["rng_algorithm"])]
    wanted = result_type(operation, 1)
    return rng_bit_generator(state, wanted.shape, wanted.dtype, algorithm)


@raises_calls_of("stablehlo.dynamic_rng_bit_generator")
def _open_bits(
    context: RaisingContext, operation: ir.Operation, state: Value, shape: Value
) -> Sequence[Value]:
    algorithm = _ALGORITHMS[word(operation.attributes["rng_algorithm"])]
    extents = known(context, operation, 1).reshape(-1).tolist()
    return rng_bit_generator(state, extents, result_dtype(operation, 1), algorithm)


@raises("stablehlo.rng")
def _rng(context: RaisingContext, operation: ir.Operation, *values: Value) -> Value:
    raise refusal(
        "stablehlo.rng draws numbers without a key: the same program gives others each time.",
        "Give the program a key, and draw with jax.random or stablehlo.rng_bit_generator.",
    )


@raises_calls_of("cu_threefry2x32", "cu_threefry2x32_ffi", "hip_threefry2x32_ffi", "ThreeFry")
def _threefry(context: RaisingContext, operation: ir.Operation, *values: Value) -> Sequence[Value]:
    return threefry2x32(*values[:4])
