"""Transforms of all kinds as matrix products.

Elsewhere: the stages of one transform (`stages.py`), kernels (`axes.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo

from . import tables
from .stages import apply_matrix, join, split, table, times, transform


def by_products(x: ir.Value, axes: Sequence[int], sign: int) -> ir.Value:
    """Returns complex numbers transformed along axes; inverses are divided by the axes' size."""
    return _Grid.of_complex(x, len(x.type.shape) - 1).transformed(axes, sign).as_complex()


@dataclasses.dataclass(frozen=True)
class _Grid:
    """Complex numbers as their parts [2, ...]; the other dimensions may be permuted.

    Attributes:
        parts: The tensor.
        order: For each dimension but the first, its dimension in the original tensor.
    """

    parts: ir.Value
    order: tuple[int, ...]

    @classmethod
    def of_complex(cls, x: ir.Value, axis: int) -> _Grid:
        """Returns a complex tensor with an axis brought to the front."""
        order = _leading(range(len(x.type.shape)), axis)
        x = _permute(x, order)
        return cls(join((hlo.real(x), hlo.imag(x))), order)

    def as_complex(self) -> ir.Value:
        """Returns the complex tensor in its original order."""
        return _permute(hlo.complex(*split(self.parts)), _inverse(self.order))

    def led_by(self, axis: int) -> _Grid:
        """Returns the same numbers with an axis brought to the front."""
        order = _leading(self.order, axis)
        permutation = (0, *(1 + self.order.index(entry) for entry in order))
        return _Grid(_permute(self.parts, permutation), order)

    def transformed(self, axes: Sequence[int], sign: int) -> _Grid:
        """Returns the numbers transformed along axes, the last one first; inverses are divided by
        n.
        """
        grid = self
        for axis in reversed(axes):
            grid = grid.led_by(axis)
            shape = hlo.shape_of(grid.parts)
            scale = 1 / shape[1] if sign > 0 else 1.0
            parts = transform(_as_matrix(grid.parts, 2), sign, scale)
            grid = _Grid(hlo.reshape(parts, shape), grid.order)
        return grid


def _leading(order: Sequence[int], axis: int) -> tuple[int, ...]:
    return (axis, *(entry for entry in order if entry != axis))


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(place) for place in np.argsort(order))


def _permute(x: ir.Value, order: Sequence[int]) -> ir.Value:
    return x if list(order) == sorted(order) else hlo.transpose(x, order)


def _as_matrix(x: ir.Value, kept: int) -> ir.Value:
    """Merges all dimensions behind the first `kept` into one."""
    shape = hlo.shape_of(x)
    return hlo.reshape(x, (*shape[:kept], int(np.prod(shape[kept:], dtype=np.int64))))


# Real numbers ----------------------------------------------------------------------------------


def of_reals(x: ir.Value, lengths: Sequence[int]) -> ir.Value:
    """Returns the halves of the spectra of real numbers, over the last axes."""
    rank = len(x.type.shape)
    order = _leading(range(rank), rank - 1)
    turned = _permute(x, order)
    half = _half_spectrum(_as_matrix(turned, 1))
    parts = hlo.reshape(half, (2, lengths[-1] // 2 + 1, *hlo.shape_of(turned)[1:]))
    outer = range(rank - len(lengths), rank - 1)
    return _Grid(parts, order).transformed(outer, -1).as_complex()


def to_reals(x: ir.Value, lengths: Sequence[int]) -> ir.Value:
    """Returns the real numbers from the halves of their spectra, over the last axes."""
    rank = len(x.type.shape)
    outer = range(rank - len(lengths), rank - 1)
    grid = _Grid.of_complex(x, outer[-1] if outer else rank - 1).transformed(outer, 1)
    grid = grid.led_by(rank - 1)
    reals = _from_half_spectrum(_as_matrix(grid.parts, 2), lengths[-1])
    shape = (lengths[-1], *hlo.shape_of(grid.parts)[2:])
    return _permute(hlo.reshape(reals, shape), _inverse(grid.order))


def _half_spectrum(x: ir.Value) -> ir.Value:
    """Returns the first half of the transform, [2, n // 2 + 1, batch], of real numbers [n,
    batch].
    """
    length, batch = hlo.shape_of(x)
    half = length // 2 + 1
    if length == 1:
        return join((x, hlo.full_like(x, 0)))
    if length <= tables.MOST_DENSE:
        return hlo.reshape(apply_matrix(tables.halved_matrix(length), x), (2, half, batch))
    if length % 2:
        spectrum = transform(join((x, hlo.full_like(x, 0))), -1)
        return hlo.slice(spectrum, (0, 0, 0), (2, half, batch))
    # Even and odd elements are the parts of half as many complex numbers. Let Z be the spectrum of
    # these. The spectra of the even and the odd elements are the parts of Z that conjugation with
    # reversal keeps and negates.
    pairs = hlo.transpose(hlo.reshape(x, (half - 1, 2, batch)), (1, 0, 2))
    spectrum = transform(pairs, -1)
    first = hlo.slice(spectrum, (0, 0, 0), (2, 1, batch))
    whole = hlo.concatenate([spectrum, first], 1)
    even, odd = _symmetries(split(whole), split(hlo.reverse(whole, (1,))))
    odd = (odd[1], hlo.negate(odd[0]))
    roots = tables.unit_roots(-np.arange(half), length)
    turned = times(odd, table(roots, odd[0], (0,)))
    return join((hlo.add(even[0], turned[0]), hlo.add(even[1], turned[1])))


def _from_half_spectrum(x: ir.Value, length: int) -> ir.Value:
    """Returns the real numbers [n, batch] from their half spectrum [2, n // 2 + 1, batch]."""
    _, half, batch = hlo.shape_of(x)
    if length == 1:
        return split(x)[0]
    if length <= tables.MOST_DENSE:
        return apply_matrix(tables.unhalved_matrix(length), x)
    if length % 2:
        real, imag = split(hlo.reverse(hlo.slice(x, (0, 1, 0), (2, half, batch)), (1,)))
        whole = hlo.concatenate([x, join((real, hlo.negate(imag)))], 1)
        return split(transform(whole, 1, 1 / length))[0]
    x = _without_imaginary_ends(x)
    kept = hlo.slice(x, (0, 0, 0), (2, half - 1, batch))
    reverse = hlo.slice(hlo.reverse(x, (1,)), (0, 0, 0), (2, half - 1, batch))
    even, odd = _symmetries(split(kept), split(reverse))
    turned = times(odd, table(tables.unit_roots(np.arange(half - 1), length), odd[0], (0,)))
    pairs = join((hlo.subtract(even[0], turned[1]), hlo.add(even[1], turned[0])))
    numbers = transform(pairs, 1, 1 / (half - 1))
    return hlo.reshape(hlo.transpose(numbers, (1, 0, 2)), (length, batch))


def _symmetries(
    x: tuple[ir.Value, ir.Value], reverse: tuple[ir.Value, ir.Value]
) -> tuple[tuple[ir.Value, ir.Value], tuple[ir.Value, ir.Value]]:
    """Half the sum and half the difference of a spectrum and its reversed conjugate."""
    half = hlo.full_like(x[0], 0.5)
    total, difference = (
        hlo.multiply(half, combine(x[0], reverse[0])) for combine in (hlo.add, hlo.subtract)
    )
    imag_difference, imag_total = (
        hlo.multiply(half, combine(x[1], reverse[1])) for combine in (hlo.subtract, hlo.add)
    )
    return (total, imag_difference), (difference, imag_total)


def _without_imaginary_ends(x: ir.Value) -> ir.Value:
    """Returns the first and the last element without imaginary parts, which real numbers do not
    have.
    """
    real, imag = split(x)
    half, batch = hlo.shape_of(real)
    is_end = np.zeros(half, bool)
    is_end[[0, -1]] = True
    where = hlo.broadcast_in_dim(hlo.constant(is_end), (half, batch), (0,))
    return join((real, hlo.select(where, hlo.full_like(imag, 0), imag)))
