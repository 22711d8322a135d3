"""Random numbers: StableHLO's generator of bits, and calls of JAX's GPU generators."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.ops.random.bit_generators import RandomAlgorithm, rng_bit_generator
from axir.dialect.ops.random.random_bits import threefry2x32
from axir.dialect.program.rules import Value

from .attributes import word
from .dynamic_shapes import known
from .table import (
    RaisingContext,
    raises,
    raises_calls_of,
    refusal,
    result_dtype,
    result_type,
)

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
