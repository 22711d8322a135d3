"""The numbers that Fourier transforms need: factors of lengths, and tables of roots of unity.

All tables are computed in double precision; their users round them. Elsewhere: the operations
(`stages.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from axir.dialect.core.annotations import HostArray

MOST_DENSE = 32
"""Transforms up to this length are one matrix product."""

MOST_DENSE_PRIME = 64
"""Prime factors up to this size are one matrix product, larger ones a convolution."""

_MOST_RADIX = 16
# The cost of a stage's passes over memory, in rows of a matrix, in addition to its products.
_STAGE_COST = 12


def unit_roots(numerators: HostArray, denominator: int) -> HostArray:
    """exp(2 pi i numerator / denominator), exact where a part is 0, 1 or -1."""
    quarters, rest = np.divmod(4 * (numerators % denominator), denominator)
    angles = np.pi / 2 * (rest / denominator)
    return np.array([1, 1j, -1, -1j])[quarters] * (np.cos(angles) + 1j * np.sin(angles))


def dft_matrix(length: int, sign: int) -> HostArray:
    """Returns the matrix of the transform: exp(sign 2 pi i j k / length)."""
    places = np.arange(length)
    return unit_roots(sign * np.outer(places, places), length)


def on_parts(matrix: HostArray) -> HostArray:
    """Returns a complex matrix as the real one that acts on real parts followed by imaginary
    parts.
    """
    parts = np.block([[matrix.real, -matrix.imag], [matrix.imag, matrix.real]])
    return parts + 0.0  # without negative zeros


def halved_matrix(length: int) -> HostArray:
    """Returns the real matrix from real numbers to the parts of the first half of their
    transform.
    """
    matrix = dft_matrix(length, -1)[: length // 2 + 1]
    return np.concatenate([matrix.real, matrix.imag])


def unhalved_matrix(length: int) -> HostArray:
    """Returns the real matrix from the parts of half a spectrum to the real numbers it belongs
    to.
    """
    half = length // 2 + 1
    weights = np.full(half, 2.0)
    weights[0] = 1
    if length % 2 == 0:
        weights[-1] = 1
    matrix = dft_matrix(length, 1)[:, :half] * weights / length
    return np.concatenate([matrix.real, -matrix.imag], axis=1)


def chirp(length: int, sign: int) -> HostArray:
    """exp(sign pi i j^2 / length)."""
    places = np.arange(length, dtype=np.int64)
    return unit_roots(sign * (places * places), 2 * length)


def chirp_spectrum(length: int, sign: int, padded: int) -> HostArray:
    """Returns the transform of the conjugate chirp around 0, repeated after `padded` elements, over
    that.

    Multiplying spectra by it convolves with the conjugate chirp.
    """
    values = chirp(length, -sign)
    kernel = np.zeros(padded, np.complex128)
    kernel[:length] = values
    kernel[padded - length + 1 :] = values[:0:-1]
    return np.fft.fft(kernel) / padded


@functools.lru_cache(maxsize=1024)
def factors(length: int) -> tuple[int, ...]:
    """Returns the lengths of the stages of a transform; their product is `length`."""
    if length <= MOST_DENSE:
        return (length,)
    return tuple(sorted(_cheapest(length)[1], reverse=True))


@functools.lru_cache(maxsize=4096)
def _cheapest(length: int) -> tuple[int, tuple[int, ...]]:
    """Returns the cost of the best factors, and the factors."""
    if length == 1:
        return 0, ()
    radices = {r for r in range(2, _MOST_RADIX + 1) if length % r == 0} or {_least_prime(length)}
    candidates = []
    for radix in radices:
        cost, rest = _cheapest(length // radix)
        candidates.append((cost + _STAGE_COST + radix, (*rest, radix)))
    return min(candidates, key=lambda candidate: (candidate[0], max(candidate[1])))


def _least_prime(length: int) -> int:
    return next((r for r in range(2, math.isqrt(length) + 1) if length % r == 0), length)


def cost_of_stages(length: int) -> int:
    """Returns the cost of a transform by matrix products per number of a row."""
    return sum(_STAGE_COST + radix for radix in factors(length))


def padded_length(
    least: int,
    cost: Callable[[int], float] = cost_of_stages,
    odd: Sequence[int] = (1, 3, 5, 9, 15),
) -> int:
    """Returns a length of at least `least` with a cheap transform.

    Args:
        least: The least length.
        cost: The cost of a transform for each number of a row, by the length.
        odd: The odd factors of the lengths that are compared.
    """
    lengths = [q << max(0, math.ceil(math.log2(least / q))) for q in odd]
    return min(lengths, key=lambda length: length * cost(length))
