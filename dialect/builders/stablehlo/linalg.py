"""StableHLO contractions, convolutions, Fourier transforms and matrix factorizations."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.core.symbolic_dims import is_open

from .core import (
    ElementType,
    attribute,
    booleans,
    build,
    element_type_of,
    integer,
    integers,
    padding_pairs,
    precision_config,
    shape_of,
    tensor_type,
)
from .extents import full
from .shape import pad

ConvSpec = Sequence[int]


def dot_general(
    lhs: ir.Value,
    rhs: ir.Value,
    contracting: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
    *,
    element: ElementType | None = None,
    precision: str | Sequence[str] | None = None,
) -> ir.Value:
    """Sums products over the `contracting` dimensions at each index of the `batch` dimensions.

    The result has the batch dimensions, then the remaining dimensions of lhs, then of rhs.
    `element` is the result's (and the accumulator's) element type, by default lhs's; `precision` is
    DEFAULT, HIGH or HIGHEST, or one for each operand.
    """
    sizes = [shape_of(lhs)[axis] for axis in batch[0]]
    for operand, contracted, batched in (
        (lhs, contracting[0], batch[0]),
        (rhs, contracting[1], batch[1]),
    ):
        used = {*contracted, *batched}
        sizes += [size for axis, size in enumerate(shape_of(operand)) if axis not in used]
    numbers = (
        f"#stablehlo.dot<lhs_batching_dimensions = {list(batch[0])}, "
        f"rhs_batching_dimensions = {list(batch[1])}, "
        f"lhs_contracting_dimensions = {list(contracting[0])}, "
        f"rhs_contracting_dimensions = {list(contracting[1])}>"
    )
    attributes = {
        "dot_dimension_numbers": attribute(numbers),
        "precision_config": precision_config(precision),
    }
    result_type = tensor_type(sizes, element_type_of(lhs) if element is None else element)
    name = "dot_general"
    return build(name, "stablehlo.dot_general", (lhs, rhs), (result_type,), attributes).result


def convolution(
    lhs: ir.Value,
    rhs: ir.Value,
    *,
    dimension_numbers: tuple[ConvSpec, ConvSpec, ConvSpec],
    window_strides: Sequence[int],
    padding: Sequence[Sequence[int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    window_reversal: Sequence[bool] | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    element: ElementType | None = None,
    precision: str | Sequence[str] | None = None,
    shape: Sequence[int] | None = None,
) -> ir.Value:
    """Returns a convolution of `lhs` with the kernel `rhs`.

    `dimension_numbers` are three tuples of axes: (batch, feature, *spatial) of lhs, (output
    feature, input feature, *spatial) of rhs, (batch, feature, *spatial) of the result. `element`
    is the result's element type, by default lhs's. `shape` is the shape of the result, needed if it
    is open.
    """
    rank = len(window_strides)
    lhs_spec, rhs_spec, result_spec = (tuple(spec) for spec in dimension_numbers)
    lhs_dilation = lhs_dilation if lhs_dilation is not None else [1] * rank
    rhs_dilation = rhs_dilation if rhs_dilation is not None else [1] * rank
    if any(map(is_open, padding)):
        lhs = _padded(lhs, lhs_spec, padding, lhs_dilation)
        lhs_dilation, padding = [1] * rank, [(0, 0)] * rank
    sizes = shape
    if sizes is None:
        kernel = (shape_of(rhs), rhs_spec, rhs_dilation)
        given = (shape_of(lhs), lhs_spec, lhs_dilation)
        settings = (window_strides, padding, batch_group_count)
        sizes = _convolved(given, kernel, result_spec, *settings)
    numbers = (
        f"#stablehlo.conv<{_layout(lhs_spec, 'bf')}x{_layout(rhs_spec, 'oi')}"
        f"->{_layout(result_spec, 'bf')}>"
    )
    attributes = {
        "window_strides": integers(window_strides),
        "padding": padding_pairs(padding),
        "lhs_dilation": integers(lhs_dilation),
        "rhs_dilation": integers(rhs_dilation),
        "window_reversal": booleans(window_reversal or [False] * rank),
        "dimension_numbers": attribute(numbers),
        "feature_group_count": integer(feature_group_count),
        "batch_group_count": integer(batch_group_count),
        "precision_config": precision_config(precision),
    }
    result_type = tensor_type(sizes, element_type_of(lhs) if element is None else element)
    name = "convolution"
    return build(name, "stablehlo.convolution", (lhs, rhs), (result_type,), attributes).result


def _padded(
    lhs: ir.Value, spec: ConvSpec, padding: Sequence[Sequence[int]], dilation: Sequence[int]
) -> ir.Value:
    """Returns an operand with zeros around and between its elements."""
    amounts: list[tuple[int, int, int]] = [(0, 0, 0)] * len(spec)
    for axis, (low, high), step in zip(spec[2:], padding, dilation, strict=True):
        amounts[axis] = (low, high, step - 1)
    return pad(lhs, full(0, (), element_type_of(lhs)), *zip(*amounts, strict=True))


def _convolved(
    lhs: tuple[Sequence[int], ConvSpec, Sequence[int]],
    rhs: tuple[Sequence[int], ConvSpec, Sequence[int]],
    spec: ConvSpec,
    strides: Sequence[int],
    padding: Sequence[Sequence[int]],
    batch_group_count: int,
) -> list[int]:
    """Returns the shape of a convolution of shapes with their axes and dilations."""
    (lhs_shape, lhs_spec, lhs_dilation), (rhs_shape, rhs_spec, rhs_dilation) = lhs, rhs
    sizes = [0] * len(spec)
    sizes[spec[0]] = lhs_shape[lhs_spec[0]] // batch_group_count
    sizes[spec[1]] = rhs_shape[rhs_spec[0]]
    for axis, stride in enumerate(strides):
        base = _dilated(lhs_shape[lhs_spec[axis + 2]], lhs_dilation[axis]) + sum(padding[axis])
        window = _dilated(rhs_shape[rhs_spec[axis + 2]], rhs_dilation[axis])
        fits = base >= window and base > 0
        sizes[spec[axis + 2]] = (base - window) // stride + 1 if fits else 0
    return sizes


def _dilated(size: int, dilation: int) -> int:
    return (size - 1) * dilation + 1 if size else 0


def _layout(spec: ConvSpec, letters: str) -> str:
    """`[b, 0, 1, f]` from the axes (batch, feature, *spatial)."""
    names = dict(zip(spec, [*letters, *map(str, range(len(spec) - 2))], strict=True))
    return "[" + ", ".join(names[axis] for axis in range(len(spec))) + "]"


def fft(operand: ir.Value, kind: str, lengths: Sequence[int]) -> ir.Value:
    """Returns a Fourier transform over the last `len(lengths)` axes; `kind` is FFT, IFFT, RFFT or
    IRFFT.
    """
    attributes = {
        "fft_type": attribute(f"#stablehlo<fft_type {kind}>"),
        "fft_length": integers(lengths),
    }
    return build("fft", "stablehlo.fft", (operand,), None, attributes).result


def cholesky(operand: ir.Value, *, is_lower: bool = True) -> ir.Value:
    """Returns the Cholesky factor of positive definite matrices in the last two dimensions."""
    attributes = {"lower": ir.BoolAttr.get(is_lower)}
    return build("cholesky", "stablehlo.cholesky", (operand,), (operand.type,), attributes).result


def triangular_solve(
    matrix: ir.Value,
    rhs: ir.Value,
    *,
    is_left_side: bool = True,
    is_lower: bool = True,
    is_unit_diagonal: bool = False,
    transposition: str = "NO_TRANSPOSE",
) -> ir.Value:
    """Solves op(matrix) x = rhs, or x op(matrix) = rhs, for triangular matrices.

    op is the `transposition`: NO_TRANSPOSE, TRANSPOSE or ADJOINT.
    """
    attributes = {
        "left_side": ir.BoolAttr.get(is_left_side),
        "lower": ir.BoolAttr.get(is_lower),
        "unit_diagonal": ir.BoolAttr.get(is_unit_diagonal),
        "transpose_a": attribute(f"#stablehlo<transpose {transposition}>"),
    }
    name = "triangular_solve"
    return build(name, f"stablehlo.{name}", (matrix, rhs), (rhs.type,), attributes).result
