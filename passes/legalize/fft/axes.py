"""Transforms along axes of complex numbers, by kernels.

Elsewhere: the kernels (`kernels.py`, `rows.py`, `halves.py`); small arrays, which matrix products
transform (`products.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.annotations import HostArray
from axir.passes.legalize.complex.pairs_in_memory import halves, of_pairs, pairs_of
from axir.passes.legalize.rewriting import defining_operation

from . import tables
from .halves import fits_halves, fold_halves, unfold_halves
from .kernels import Arrays, lanes_of
from .rows import fits_rows, row_cost, transform_rows
from .stages import Parts, table, times
from .transform import fits_columns, transform_columns

# Transforms of fewer numbers are one product, or a few, which IREE fuses with other operations.
_FEWEST = 512


def has_kernels(shape: Sequence[int], axes: Sequence[int], element: ir.Type) -> bool:
    """Tells whether kernels transform axes of an array of complex numbers."""
    return math.prod(shape) >= _FEWEST and all(
        shape[axis] == 1 or _has_kernel(shape, axis, element) for axis in axes
    )


def _has_kernel(shape: Sequence[int], axis: int, element: ir.Type) -> bool:
    length, rows = shape[axis], math.prod(shape) // shape[axis]
    return (
        _is_column(shape, axis, element)
        or fits_rows(rows, length, element)
        or length > tables.MOST_DENSE_PRIME
    )


def _is_column(shape: Sequence[int], axis: int, element: ir.Type) -> bool:
    return fits_columns(shape[axis], math.prod(shape[axis + 1 :]), element)


# Borders ----------------------------------------------------------------------------------------


def taken(x: ir.Value) -> Arrays:
    """Returns complex numbers as a kernel reads them; arguments of functions without a copy."""
    shape = hlo.shape_of(x)
    owner = x.owner
    if isinstance(owner, ir.Block) and owner.owner.operation.name == "func.func" and shape:
        pairs = hlo.reshape(pairs_of(x), (*shape[:-1], 2 * shape[-1]))
        return Arrays((pairs,), shape)
    made = defining_operation(x)
    if made is not None and made.name == "stablehlo.complex":
        real, imag = made.operands
        return Arrays((real, imag), shape)
    if made is not None and made.name == "stablehlo.convert":
        [real] = made.operands
        if hlo.element_type_of(real) == hlo.element_type_of(x).element_type:
            return Arrays((real, hlo.full_like(real, 0)), shape)
    return Arrays((hlo.real(x), hlo.imag(x)), shape)


def given(x: Arrays) -> ir.Value:
    """Returns a kernel's results as one complex array."""
    if len(x.values) == 2:
        return hlo.complex(*x.values)
    return of_pairs(hlo.reshape(x.values[0], (*x.shape, 2)))


def is_returned(result: ir.Value) -> bool:
    """Tells whether a result is only returned, so that it should be stored as pairs."""
    return all(use.owner.operation.name == "func.return" for use in result.uses)


# Axes -------------------------------------------------------------------------------------------


def transform_axes(x: Arrays, axes: Sequence[int], sign: int, *, is_paired: bool = False) -> Arrays:
    """Transforms axes, the last one first; inverses are divided by the number of elements.

    Args:
        x: The numbers.
        axes: The axes, all with kernels (`has_kernels`).
        sign: Of the exponent.
        is_paired: Whether the result should be pairs, if both forms cost the same.
    """
    todo = [axis for axis in reversed(axes) if x.shape[axis] > 1]
    for number, axis in enumerate(todo):
        x = _along(x, axis, sign, is_paired and number == len(todo) - 1)
    return x


def _along(x: Arrays, axis: int, sign: int, is_paired: bool) -> Arrays:
    shape = x.shape
    length, inner = shape[axis], math.prod(shape[axis + 1 :])
    outer = math.prod(shape[:axis])
    scale = 1 / length if sign > 0 else 1.0
    if inner == 1:
        rows = x.viewed((outer, length))
        return _along_rows(rows, sign, scale, is_paired).viewed(shape)
    if _is_column(shape, axis, x.element):
        columns = x.viewed((outer, length, inner))
        return transform_columns(columns, sign, scale, is_paired=is_paired).viewed(shape)
    order = (0, 2, 1)
    matrices = _parts(x.viewed((outer, length, inner)))
    turned = Arrays(
        tuple(hlo.transpose(part, order) for part in matrices.values), (outer, inner, length)
    )
    rows = turned.viewed((outer * inner, length))
    found = _along_rows(rows, sign, scale, False).viewed(turned.shape)
    back = tuple(hlo.transpose(part, order) for part in found.values)
    return Arrays(back, matrices.shape).viewed(shape)


def _parts(x: Arrays) -> Arrays:
    """Returns numbers as two arrays."""
    if len(x.values) == 2:
        return x
    pairs = hlo.reshape(x.values[0], (*x.shape, 2))
    return Arrays(halves(pairs), x.shape)


def _along_rows(x: Arrays, sign: int, scale: float, is_paired: bool) -> Arrays:
    rows, length = x.shape
    if fits_rows(rows, length, x.element):
        return transform_rows(x, sign, scale, is_paired=is_paired)
    return _convolve(_parts(x), sign, scale)


def _convolve(x: Arrays, sign: int, scale: float) -> Arrays:
    """Bluestein's algorithm: j k = (j^2 + k^2 - (k - j)^2) / 2 makes the sum a convolution."""
    rows, length = x.shape
    padded = padded_length(2 * length - 1, x.element)
    chirp = tables.chirp(length, sign)
    zero = hlo.full(0, (), x.element)
    chirped = _times(x, chirp)
    long = tuple(hlo.pad(part, zero, (0, 0), (0, padded - length)) for part in chirped)
    spectra = transform_rows(Arrays(long, (rows, padded)), -1)
    product = _times(spectra, tables.chirp_spectrum(length, sign, padded))
    convolved = transform_rows(Arrays(product, spectra.shape), 1)
    cut = tuple(hlo.slice(part, (0, 0), (rows, length)) for part in convolved.values)
    return Arrays(_times(Arrays(cut, x.shape), chirp * scale), x.shape)


def _times(x: Arrays, factors: HostArray) -> Parts:
    real, imag = x.values
    return times((real, imag), table(factors, real, (1,)))


def padded_length(least: int, element: ir.Type) -> int:
    """Returns a length of at least `least` for which a kernel transforms rows, and fast."""
    return _padded_length(least, lanes_of(element))


@functools.lru_cache(maxsize=256)
def _padded_length(least: int, lanes: int) -> int:
    odd = (1, 3, 5, 7, 9, 15, 25, 27)
    return tables.padded_length(least, lambda length: row_cost(length, lanes), odd)


# Real numbers -----------------------------------------------------------------------------------


def has_real_kernels(rows: int, length: int, element: ir.Type) -> bool:
    """Tells whether kernels transform rows of real numbers."""
    if rows * length < _FEWEST:
        return False
    if length % 2:
        return has_kernels((rows, length), (1,), element)
    return fits_halves(length // 2, element) and has_kernels((rows, length // 2), (1,), element)


def transform_reals(x: ir.Value, *, is_paired: bool) -> Arrays:
    """Returns the first halves of the spectra of real numbers [rows, length]."""
    rows, length = hlo.shape_of(x)
    if length % 2:
        zeros = hlo.full_like(x, 0)
        found = _parts(_along_rows(Arrays((x, zeros), (rows, length)), -1, 1.0, False))
        shape = rows, length // 2 + 1
        return Arrays(tuple(hlo.slice(part, (0, 0), shape) for part in found.values), shape)
    numbers = Arrays((x,), (rows, length // 2))
    return unfold_halves(_along_rows(numbers, -1, 1.0, False), is_paired=is_paired)


def transform_to_reals(x: Arrays, length: int) -> ir.Value:
    """Returns the real numbers [rows, length] from the half spectra [rows, length // 2 + 1]."""
    rows, half = x.shape
    if length % 2:
        real, imag = (hlo.slice(part, (0, 1), (rows, half)) for part in _parts(x).values)
        back = hlo.reverse(real, (1,)), hlo.negate(hlo.reverse(imag, (1,)))
        whole = tuple(hlo.concatenate(pair, 1) for pair in zip(_parts(x).values, back, strict=True))
        return _along_rows(Arrays(whole, (rows, length)), 1, 1 / length, False).values[0]
    found = _along_rows(fold_halves(x), 1, 2 / length, True)
    if len(found.values) == 2:
        pairs = [hlo.reshape(part, (rows, length // 2, 1)) for part in found.values]
        return hlo.reshape(hlo.concatenate(pairs, 2), (rows, length))
    return found.values[0]
