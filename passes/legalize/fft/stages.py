"""Fourier transforms as matrix products and elementwise operations of StableHLO.

Complex numbers are represented by their parts: a tensor [2, length, batch] of real and imaginary
parts, which is transformed along `length`. For length n = r m, with j = j1 m + j2 and k = k1 + r
k2::

    X[k1 + r k2] = sum_j2 w_m^(j2 k2) * w_n^(j2 k1) * sum_j1 w_r^(j1 k1) x[j1 m + j2]

The inner sum is the product of an r x r matrix with x seen as [r, m batch]. The factors in the
middle (twiddles) are multiplied while [r, m, batch] is transposed to [m, r batch], leaving the
same problem for length m: its result [m, r batch], seen as [m r, batch], is in the right order
(Stockham's algorithm). A prime factor too large for a matrix is a convolution (Bluestein's one).

Elsewhere: the tables (`tables.py`); real numbers, several axes (`expand_fft.py`).
"""

from __future__ import annotations

import math

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.annotations import HostArray

from . import tables

Parts = tuple[ir.Value, ir.Value]

# Larger tables of twiddles are products of two smaller tables, computed when the program runs.
_MOST_TABLE = 1 << 14


# Parts of complex numbers ----------------------------------------------------------------------


def split(x: ir.Value) -> Parts:
    """Returns the real and the imaginary parts of [2, ...]."""
    shape = hlo.shape_of(x)
    rest = shape[1:]
    real, imag = (hlo.slice(x, (part, *[0] * len(rest)), (part + 1, *rest)) for part in (0, 1))
    return hlo.reshape(real, rest), hlo.reshape(imag, rest)


def join(parts: Parts) -> ir.Value:
    """Real and imaginary parts as one tensor [2, ...]."""
    shape = hlo.shape_of(parts[0])
    return hlo.concatenate([hlo.reshape(part, (1, *shape)) for part in parts], 0)


def times(x: Parts, y: Parts) -> Parts:
    """Returns the product of complex numbers."""
    (a, b), (c, d) = x, y
    real = hlo.subtract(hlo.multiply(a, c), hlo.multiply(b, d))
    return real, hlo.add(hlo.multiply(b, c), hlo.multiply(a, d))


def table(values: HostArray, like: ir.Value, dimensions: tuple[int, ...]) -> Parts:
    """Returns a complex table as two constants, repeated along the other dimensions of `like`."""
    element, shape = hlo.element_type_of(like), hlo.shape_of(like)
    constants = (hlo.constant(np.ascontiguousarray(p), element) for p in (values.real, values.imag))
    real, imag = (hlo.broadcast_in_dim(constant, shape, dimensions) for constant in constants)
    return real, imag


def apply_matrix(matrix: HostArray, x: ir.Value) -> ir.Value:
    """Returns a constant matrix times [n, batch], or, given a tensor [2, n, batch], times its 2n
    rows.
    """
    *rows, batch = hlo.shape_of(x)
    flat = hlo.reshape(x, (math.prod(rows), batch))
    constant = hlo.constant(np.ascontiguousarray(matrix), hlo.element_type_of(x))
    return hlo.dot_general(constant, flat, ((1,), (0,)), precision="HIGHEST")


# Transforms of [2, length, batch] ----------------------------------------------------------------


def transform(x: ir.Value, sign: int, scale: float = 1.0) -> ir.Value:
    """Returns the transform along the second dimension, with exp(sign 2 pi i j k / n), times
    `scale`.
    """
    _, length, batch = shape = hlo.shape_of(x)
    if length == 1:
        return x
    rest, columns = length, batch
    for radix in tables.factors(length):
        rest //= radix
        x = _one_factor(hlo.reshape(x, (2, radix, rest * columns)), sign, scale)
        scale = 1.0
        if rest > 1:
            x = _twist(hlo.reshape(x, (2, radix, rest, columns)), sign)
        columns *= radix
    return hlo.reshape(x, shape)


def _one_factor(x: ir.Value, sign: int, scale: float) -> ir.Value:
    _, length, batch = hlo.shape_of(x)
    if length > max(tables.MOST_DENSE, tables.MOST_DENSE_PRIME):
        return _convolve(x, sign, scale)
    matrix = tables.on_parts(tables.dft_matrix(length, sign)) * scale
    return hlo.reshape(apply_matrix(matrix, x), (2, length, batch))


def _twist(x: ir.Value, sign: int) -> ir.Value:
    """Multiplies by the twiddles and exchanges the two digits of the index."""
    _, radix, rest, batch = hlo.shape_of(x)
    real, imag = split(x)
    twisted = times((real, imag), _twiddles(real, radix, rest, sign))
    turned = tuple(hlo.transpose(part, (1, 0, 2)) for part in twisted)
    return hlo.reshape(join((turned[0], turned[1])), (2, rest, radix * batch))


def _twiddles(like: ir.Value, radix: int, rest: int, sign: int) -> Parts:
    """exp(sign 2 pi i k1 j2 / n) along the first two dimensions of `like`."""
    length = radix * rest
    digits, places = np.arange(radix), np.arange(rest)
    step = _divisor_near_root(rest)
    if length <= _MOST_TABLE or step == 1:
        return table(tables.unit_roots(sign * np.outer(digits, places), length), like, (0, 1))
    grid = hlo.tensor_type((radix, rest // step, step), hlo.element_type_of(like))
    empty = hlo.full(0, grid.shape, grid.element_type)
    coarse = tables.unit_roots(sign * np.outer(digits, places[::step]), length)
    fine = tables.unit_roots(sign * np.outer(digits, places[:step]), length)
    real, imag = (
        hlo.broadcast_in_dim(hlo.reshape(part, (radix, rest)), hlo.shape_of(like), (0, 1))
        for part in times(table(coarse, empty, (0, 1)), table(fine, empty, (0, 2)))
    )
    return real, imag


def _divisor_near_root(number: int) -> int:
    return next(d for d in range(math.isqrt(number), 0, -1) if number % d == 0)


def _convolve(x: ir.Value, sign: int, scale: float) -> ir.Value:
    """Bluestein's algorithm: j k = (j^2 + k^2 - (k - j)^2) / 2 makes the sum a convolution."""
    _, length, batch = hlo.shape_of(x)
    padded = tables.padded_length(2 * length - 1)
    chirp = tables.chirp(length, sign)
    parts = split(x)
    chirped = join(times(parts, table(chirp, parts[0], (0,))))
    zero = hlo.full(0, (), hlo.element_type_of(x))
    rows = hlo.pad(chirped, zero, (0, 0, 0), (0, padded - length, 0))
    parts = split(transform(rows, -1))
    kernel = tables.chirp_spectrum(length, sign, padded)
    convolved = transform(join(times(parts, table(kernel, parts[0], (0,)))), 1)
    parts = split(hlo.slice(convolved, (0, 0, 0), (2, length, batch)))
    return join(times(parts, table(chirp * scale, parts[0], (0,))))
