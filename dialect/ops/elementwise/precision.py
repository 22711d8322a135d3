"""`reduce_precision`: rounds to a float format of fewer bits, and keeps the dtype."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.errors import ParameterError
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import Operand, Value

from .family import FLOAT, as_value, unary
from .samples import edge_values


def _evaluate(x: np.ndarray, *, exponent_bits: int, mantissa_bits: int) -> np.ndarray:
    """Rounds the bits to the nearest (even) mantissa; exponents out of range give inf and 0."""
    info = ml_dtypes.finfo(x.dtype)
    unsigned = np.dtype(f"uint{x.dtype.itemsize * 8}")
    kind = unsigned.type
    bits = np.asarray(x).view(unsigned)
    sign = bits & kind(1 << (unsigned.itemsize * 8 - 1))
    magnitude = bits ^ sign
    infinity = kind(((1 << info.nexp) - 1) << info.nmant)
    dropped = info.nmant - mantissa_bits
    rounded = magnitude
    if dropped > 0:
        last = (magnitude >> kind(dropped)) & kind(1)
        rounded = magnitude + (kind((1 << (dropped - 1)) - 1) + last)
        rounded = rounded & ~kind((1 << dropped) - 1)
    if exponent_bits < info.nexp:
        exponent = (rounded >> kind(info.nmant)).astype(np.int64)
        bias, reduced_bias = (1 << (info.nexp - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        rounded = np.where(exponent > bias + reduced_bias, infinity, rounded)
        rounded = np.where(exponent <= bias - reduced_bias, kind(0), rounded)
    rounded = np.where(magnitude >= infinity, magnitude, rounded)
    return np.asarray(rounded | sign, unsigned).view(x.dtype)


def _linear(x: Value, exponent_bits: int, mantissa_bits: int) -> Value:
    return reduce_precision(x, exponent_bits, mantissa_bits)


_EDGES = (
    0.0, -0.0, 1.0, -1.0, 1.00390625, 1.01171875, 1 / 3, -1e-3, 6e-8, 65504.0, 65520.0, 3e38, 1e-38,
    np.inf, -np.inf, np.nan,
)  # fmt: skip


def _samples() -> list[Sample]:
    formats = [(5, 10), (8, 7), (4, 3), (11, 52), (11, 0), (5, 0)]
    samples = []
    for dtype in FLOAT:
        for exponent_bits, mantissa_bits in formats:
            params = {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits}
            x = edge_values(_EDGES, dtype)
            samples.append(Sample((x,), params, is_smooth=False))
    # As a step function it is smooth only where it changes nothing.
    params = {"exponent_bits": 11, "mantissa_bits": 52}
    for shape in [(), (2, 3), (0, 2), (1, 2, 1, 1, 3, 1)]:
        x = np.random.default_rng(0).uniform(-2, 2, shape)
        samples.append(Sample((np.asarray(x, np.float64),), params))
    return samples


_reduce_precision = unary(
    "reduce_precision",
    _evaluate,
    hlo.reduce_precision,
    FLOAT,
    parameters={"exponent_bits": int, "mantissa_bits": int},
    samples=_samples,
    # As in JAX its derivative is rounded in the same way.
    jvp=[lambda dx, out, x, **params: _linear(dx, **params)],
    transpose=[lambda ct, x, **params: _linear(ct, **params)],
)


def reduce_precision(operand: Operand, exponent_bits: int, mantissa_bits: int) -> Value:
    """Rounds to a float format with given exponent and mantissa bits; keeps the dtype.

    Ties go to the even mantissa. Values that are too large become infinite. Values below the normal
    numbers of a format with fewer exponent bits become zero.

    Args:
        operand: Array of floats.
        exponent_bits: At least 1.
        mantissa_bits: At least 0.

    Raises:
        ParameterError: for fewer bits.
    """
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ParameterError(
            f"reduce_precision: a float format has at least 1 exponent bit and 0 mantissa bits, "
            f"not {exponent_bits} and {mantissa_bits}."
        )
    return _reduce_precision.primitive.bind(
        as_value(operand), exponent_bits=int(exponent_bits), mantissa_bits=int(mantissa_bits)
    )
