"""The convolution as a kernel: tiles of positions and features in registers.

A tile of the result is some neighbouring positions along the last spatial dimension times some
vectors of features. It is kept in registers while the products of its sums are added; each product
is a number of the input times a vector of the window's elements (Georganas et al., "Anatomy of
high-performance deep learning convolutions on SIMD architectures", SC 2018). The input is not
unfolded.

Elsewhere: which convolutions become such kernels, and their padding (`tile_convolutions.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, dispatch, loop, loops_in_blocks, rows_of
from axir.dialect.builders.scalars import Scalar, broadcast, constant, index, multiply_add

from .window_rows import Padding, WindowRows

_MOST_WORKGROUPS = 16
_PRODUCTS_PER_WORKGROUP = 1 << 20
# Vectors of a small tile: an addition takes four cycles, and two start per cycle.
_OF_SMALL = 8


@dataclasses.dataclass(frozen=True)
class Tiling:
    """How a convolution is cut.

    Attributes:
        positions: How many positions a tile has.
        vectors: How many vectors of features a tile has.
        lanes: How many features a vector has.
        workgroups: How many workgroups the rows are divided among.
    """

    positions: int
    vectors: int
    lanes: int
    workgroups: int


def tile(
    positions: int,
    features: int,
    products: int,
    rows: int,
    vector_bits: int,
    width: int,
    is_small: bool = False,
) -> Tiling:
    """Returns how to cut a convolution.

    Args:
        positions: Extent of the result along the last spatial dimension.
        features: Features of the result.
        products: How many multiplications it takes.
        rows: Extents of the result along the batch and the other spatial dimensions, multiplied.
        vector_bits: Width of the machine's vectors.
        width: Bits of a number.
        is_small: Whether tiles are small, so that their code is short.
    """
    lanes = vector_bits // width
    registers = _OF_SMALL if is_small else 28 if vector_bits == 512 else 12
    vectors = max(1, min(4 if positions < 6 else 2, features // lanes))
    count = max(1, min(positions, registers // vectors))
    # Tiles of nearly equal size: the last one should not be short.
    count = -(-positions // -(-positions // count))
    workgroups = max(1, min(_MOST_WORKGROUPS, rows, products // _PRODUCTS_PER_WORKGROUP))
    return Tiling(count, vectors, lanes, workgroups)


def convolve(
    lhs: ir.Value,
    rhs: ir.Value,
    shape: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    tiling: Tiling,
    padding: Padding | None = None,
) -> ir.Value:
    """Returns a convolution of an input of [batch, *spatial, features].

    Args:
        lhs: The input.
        rhs: The window, [*spatial, input features, output features].
        shape: The shape of the result, [batch, *spatial, features].
        strides: Strides of the window, by spatial dimensions.
        dilation: Dilation of the window.
        tiling: How it is cut.
        padding: Padding of the input; None if windows do not reach beyond it.
    """
    element = hlo.element_type_of(lhs)

    def kernel(workgroup: Scalar, left: Memory, right: Memory, result: Memory) -> None:
        _Kernel(left, right, result, strides, dilation, tiling, padding).run(workgroup)

    [made] = dispatch(
        kernel,
        [lhs, rhs],
        [hlo.tensor_type(shape, element)],
        workgroups=tiling.workgroups,
        name="convolution",
        identity=f"{tiling} {list(strides)} {list(dilation)} {padding}",
    )
    return made


class _Kernel:
    """The kernel while it is built."""

    def __init__(
        self,
        lhs: Memory,
        rhs: Memory,
        result: Memory,
        strides: Sequence[int],
        dilation: Sequence[int],
        tiling: Tiling,
        padding: Padding | None,
    ):
        self.lhs, self.rhs, self.result = lhs, rhs, result
        self.strides, self.dilation, self.tiling = strides, dilation, tiling
        self.padding = padding
        self.rows: WindowRows | None = None

    def run(self, workgroup: Scalar) -> None:
        """Computes the rows of a workgroup; a row runs along the last spatial dimension."""
        *outer, _, _ = self.result.shape
        rows = 1
        for extent in outer:
            rows *= extent
        first, end = rows_of(workgroup, rows, self.tiling.workgroups)
        if self.padding is not None:
            windows, count = self.rhs.shape[:-2], self.tiling.workgroups
            steps = (self.strides, self.dilation)
            self.rows = WindowRows(
                workgroup, count, self.lhs, windows, *steps, self.padding, self.tiling.lanes
            )
            self.rows.clear()

        def row(number: Scalar) -> None:
            place: list[Scalar] = []
            for extent in reversed(outer[1:]):
                place.insert(0, number % extent)
                number = number // extent
            self._row([number, *place])

        loop(first, end, (), row)

    def _row(self, place: Sequence[Scalar]) -> None:
        tiling = self.tiling
        if self.rows is not None:
            self.rows.copy(place)
        features = self.result.shape[-1]
        wide = tiling.lanes * tiling.vectors
        whole = features // wide * wide
        if whole:
            loop(
                0, whole, (), lambda f: self._features(place, f, tiling.vectors, tiling.lanes), wide
            )
        start, lanes = whole, tiling.lanes
        while start < features:
            count = (features - start) // lanes
            if count:
                self._features(place, start, count, lanes)
                start += count * lanes
            lanes //= 2

    def _features(
        self, place: Sequence[Scalar], feature: Scalar | int, vectors: int, lanes: int
    ) -> None:
        """Computes some features of all positions of a row."""
        positions = self.result.shape[-2]
        step = self.tiling.positions
        whole = positions // step * step
        features = [feature + number * lanes for number in range(vectors)]
        if whole:
            loop(0, whole, (), lambda x: self._tile(place, x, step, features, lanes), step)
        if whole < positions:
            self._tile(place, whole, positions - whole, features, lanes)

    def _tile(
        self,
        place: Sequence[Scalar],
        position: Scalar | int,
        count: int,
        features: Sequence[Scalar | int],
        lanes: int,
    ) -> None:
        batch, *above = place
        *windows, last, sources, _ = self.rhs.shape
        zero = constant(0, self.result.element)
        zeros = zero if lanes == 1 else broadcast(zero, lanes)
        starts = (zeros,) * (count * len(features))

        def products(
            window: tuple[Scalar | int, ...], sums: Sequence[Scalar]
        ) -> tuple[Scalar, ...]:
            *outer, inner, source = window
            begin = position * self.strides[-1] + inner * self.dilation[-1]
            vectors = [self._window((*outer, inner, source, f), lanes) for f in features]
            found: list[Scalar] = []
            for number in range(count):
                x = self._input(place, outer, begin + number * self.strides[-1], source)
                factor = x if lanes == 1 else broadcast(x, lanes)
                for n, vector in enumerate(vectors):
                    found.append(multiply_add(factor, vector, sums[number * len(vectors) + n]))
            return tuple(found)

        extents = [(0, extent, 1) for extent in (*windows, last, sources)]
        sums = loops_in_blocks(extents, starts, products, _added)
        for number in range(count):
            for n, f in enumerate(features):
                where = (batch, *above, position + number, f)
                x = sums[number * len(features) + n]
                if lanes == 1:
                    self.result[where] = x
                else:
                    self.result.write(where, x)

    def _input(
        self,
        place: Sequence[Scalar],
        window: Sequence[Scalar | int],
        position: Scalar | int,
        source: Scalar | int,
    ) -> Scalar:
        """Returns the input element at a place in the window and a position of the result."""
        if self.rows is not None:
            return self.rows.at(window, position, source)
        batch, *above = place
        before = [
            p * stride + w * dilated
            for p, stride, w, dilated in zip(
                above, self.strides, window, self.dilation, strict=False
            )
        ]
        where = (batch, *before, index(position), index(source))
        return self.lhs[where]

    def _window(self, where: tuple[Scalar | int, ...], lanes: int) -> Scalar:
        return self.rhs[where] if lanes == 1 else self.rhs.read(where, lanes)


def _added(x: Sequence[Scalar], y: Sequence[Scalar]) -> tuple[Scalar, ...]:
    return tuple(a + b for a, b in zip(x, y, strict=True))
