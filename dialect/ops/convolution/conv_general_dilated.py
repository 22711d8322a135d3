"""`conv_general_dilated`: convolutions of any number of spatial dimensions.

The rules stand in separate files: types in `types.py`, evaluation in `evaluation.py`, derivatives
and batching in `rules.py`. Here: the primitive, and the elements of neighbouring parts that the
convolution of a part needs. Elsewhere: the functions built on it (`functions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, NamedTuple

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, Param, Params, PrecisionLike, UserObject
from axir.dialect.core.errors import one_layout
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.contraction.types import canonical_precision
from axir.dialect.ops.elementwise.family import FLOAT, as_value
from axir.dialect.ops.elementwise.samples import edge_rows, random_values
from axir.dialect.program.dimensions import WHOLE, Dimensions, Factors, Halo, Shapes
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Ints
from axir.dialect.program.rules import Operand, Value

from .evaluation import evaluate
from .rules import batch, jvp, transpose
from .types import ConvDimensionNumbers, Padding, canonical_geometry, computed_dtype, infer


class Edge(NamedTuple):
    """The cut of a spatial dimension.

    Attributes:
        extent: The largest number of parts.
        before: Number of elements that a part needs of the preceding part.
        after: Number of elements that a part needs of the following part.
        is_summed: Whether rhs is cut, too, and the results of parts are summed. Else the result is
            cut.
    """

    extent: int
    before: int
    after: int
    is_summed: bool


def edges_of(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    numbers: ConvDimensionNumbers,
    *,
    window_strides: Ints,
    padding: Padding,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    **params: object,
) -> list[Edge | None]:
    """Returns the possible cut of each spatial dimension; None if it must be whole.

    With n elements, windows that reach over k, steps of s, and padding (l, h), there are n/s
    results if n is a multiple of s and l + h = k - s. A part of the results then needs the same
    part of lhs, and l elements before it and h behind it. Beyond the ends these are the zeros of
    the padding. The derivative by rhs is a convolution with a rhs as large as lhs; there, the same
    holds for the summed elements.
    """
    lhs, rhs = operands
    (out,) = results
    found: list[Edge | None] = []
    for place, (step, (low, high), base, dilation) in enumerate(
        zip(window_strides, padding, lhs_dilation, rhs_dilation, strict=True)
    ):
        extent = lhs.shape[numbers[0][2 + place]]
        size = rhs.shape[numbers[1][2 + place]]
        count = out.shape[numbers[2][2 + place]]
        reach = (size - 1) * dilation + 1
        if base != 1 or min(low, high) < 0 or not extent:
            found.append(None)
        elif extent % step == 0 and low + high == reach - step:
            found.append(Edge(extent // step, low, high, False))
        elif step == 1 and size * dilation == extent and count == low + high + dilation:
            found.append(Edge(size, low, high, True))
        else:
            found.append(None)
    return found


# Lowering --------------------------------------------------------------------------------------


def _lower(
    context: LoweringContext,
    lhs: ir.Value,
    rhs: ir.Value,
    *,
    dimension_numbers: ConvDimensionNumbers,
    preferred_element_type: np.dtype | None,
    **params: object,
) -> ir.Value:
    (lhs_type, rhs_type), (out,) = context.types_in, context.types_out
    if 0 in (lhs_type.size, rhs_type.size, out.size):
        return hlo.full(0, out.shape, out.dtype)
    computed = computed_dtype(lhs_type.dtype, out.dtype)
    if computed == dtypes.bool_:
        # A sum of conjunctions is a disjunction: at least one product is not zero.
        lhs, rhs = (hlo.convert(x, dtypes.float32) for x in (lhs, rhs))
        result = _convolution(lhs, rhs, dimension_numbers, dtypes.float32, out.shape, **params)
        return hlo.compare(result, hlo.full_like(result, 0), "NE")
    # Narrow operands that are only widened stay narrow: CPUs have instructions for them.
    is_widening = dtypes.kind(lhs_type.dtype) == dtypes.kind(computed)
    if lhs_type.dtype != computed and not (is_widening and lhs_type.dtype.itemsize <= 2):
        lhs, rhs = hlo.convert(lhs, computed), hlo.convert(rhs, computed)
    result = _convolution(lhs, rhs, dimension_numbers, computed, out.shape, **params)
    return result if computed == out.dtype else hlo.convert(result, out.dtype)


def _convolution(
    lhs: ir.Value,
    rhs: ir.Value,
    numbers: Any,
    element: np.dtype,
    shape: Sequence[int],
    **params: Param,
) -> ir.Value:
    return hlo.convolution(
        lhs, rhs, dimension_numbers=numbers, element=element, shape=shape, **params
    )


# Samples ---------------------------------------------------------------------------------------

_NCH = ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))
_NHC = ConvDimensionNumbers((0, 2, 1), (2, 1, 0), (0, 2, 1))
_NHWC = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
_MIXED = ConvDimensionNumbers((3, 0, 1, 2), (1, 3, 2, 0), (2, 1, 3, 0))
_NC = ConvDimensionNumbers((0, 1), (0, 1), (0, 1))
_NCDHW = ConvDimensionNumbers((0, 1, 2, 3, 4), (0, 1, 2, 3, 4), (0, 1, 2, 3, 4))


def _params(numbers: ConvDimensionNumbers, **changes: object) -> Params:
    count = len(numbers.lhs_spec) - 2
    ones = (1,) * count
    return {
        "window_strides": ones,
        "padding": ((0, 0),) * count,
        "lhs_dilation": ones,
        "rhs_dilation": ones,
        "dimension_numbers": numbers,
        "feature_group_count": 1,
        "batch_group_count": 1,
        "precision": None,
        "preferred_element_type": None,
        **changes,
    }


_SAMPLE_VARIANTS: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ((2, 3, 5), (4, 3, 3), _params(_NCH, padding=((1, 1),))),
    ((2, 6, 3), (3, 3, 2), _params(_NHC, window_strides=(2,), padding=((2, 1),))),
    ((1, 5, 4, 2), (3, 2, 2, 3), _params(
        _NHWC, window_strides=(2, 1), padding=((0, 1), (1, 1)), rhs_dilation=(1, 2)
    )),
    ((2, 4, 5, 2), (3, 3, 2, 2), _params(
        _MIXED, padding=((1, 2), (0, 1)), lhs_dilation=(2, 1), precision=("HIGHEST", "HIGHEST")
    )),
    ((1, 2, 5), (3, 2, 2), _params(_NCH, padding=((-1, 2),), lhs_dilation=(3,))),
    ((2, 2, 7), (2, 2, 2), _params(
        _NCH, window_strides=(3,), padding=((-2, -1),), lhs_dilation=(2,), rhs_dilation=(2,)
    )),
    ((1, 4, 4), (6, 2, 3), _params(_NCH, padding=((1, 0),), feature_group_count=2)),
    ((1, 3, 4, 3), (2, 2, 1, 6), _params(_NHWC, feature_group_count=3, window_strides=(1, 2))),
    ((4, 2, 5), (4, 2, 2), _params(
        _NCH, batch_group_count=2, lhs_dilation=(2,), padding=((1, 0),)
    )),
    ((1, 2, 3, 2, 3), (2, 2, 2, 1, 2), _params(_NCDHW, window_strides=(1, 1, 2))),
    ((2, 3), (4, 3), _params(_NC)),
    ((0, 2, 4), (3, 2, 2), _params(_NCH)),
    ((2, 2, 2), (3, 2, 4), _params(_NCH)),
    ((1, 2, 2, 1, 2, 1), (2, 2, 1, 1, 2, 1), _params(ConvDimensionNumbers(*[tuple(range(6))] * 3))),
)  # fmt: skip
_SAMPLE_DTYPES: tuple[tuple[np.dtype, np.dtype | None], ...] = (
    (dtypes.float16, None), (dtypes.bfloat16, None), (dtypes.float64, None), (dtypes.int32, None),
    (dtypes.int8, None), (dtypes.uint8, None), (dtypes.bool_, None), (dtypes.complex64, None),
    (dtypes.int8, dtypes.int32), (dtypes.int8, dtypes.float32), (dtypes.bfloat16, dtypes.float32),
    (dtypes.float32, dtypes.float64),
)  # fmt: skip


def _samples() -> list[Sample]:
    generator = np.random.default_rng(5)
    cases: list[tuple[np.dtype, np.dtype | None, Any]] = [
        (dtypes.float32, None, variant) for variant in _SAMPLE_VARIANTS
    ]
    for number, (dtype, preferred) in enumerate(_SAMPLE_DTYPES):
        cases.append((dtype, preferred, _SAMPLE_VARIANTS[number % 9]))
    samples = [
        Sample(
            tuple(random_values(generator, shape, dtype, -2, 2) for shape in shapes),
            {**params, "preferred_element_type": preferred},
            tolerance=64.0,
        )
        for dtype, preferred, (*shapes, params) in cases
    ]
    for dtype in (*FLOAT, dtypes.int8, dtypes.int32):
        lhs = edge_rows(dtype)[:4, None]  # not the rows of zeros: sums lose their signs
        rhs = random_values(generator, (2, 1, 2), dtype, -2, 2)
        samples.append(Sample((lhs, rhs), _params(_NCH), is_smooth=False, tolerance=64.0))
    return samples


def _dimensions(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    **params: Param,
) -> Dimensions:
    """Returns factors of the batch, of the output features, and of the summed features.

    If windows reach over the edges of parts, spatial dimensions are cut with halos (`edges_of`).
    """
    (lhs_spec, rhs_spec, out_spec), factors = dimension_numbers, Factors()
    lhs, rhs, out = (dict.fromkeys(range(len(spec)), WHOLE) for spec in dimension_numbers)
    combined = {}
    if batch_group_count == 1:
        batch = factors.new(operands[0].shape[lhs_spec[0]])
        lhs[lhs_spec[0]] = out[out_spec[0]] = batch
    if batch_group_count == feature_group_count == 1:
        features = factors.new(operands[1].shape[rhs_spec[0]])
        rhs[rhs_spec[0]] = out[out_spec[1]] = features
        summed = factors.new(operands[0].shape[lhs_spec[1]])
        lhs[lhs_spec[1]] = rhs[rhs_spec[1]] = summed
        combined[summed[0]] = "sum"
    padding, halos, cut = params["padding"], dict[int, Halo](), list[tuple[int, int]]()
    for place, edge in enumerate(edges_of(operands, results, dimension_numbers, **params)):
        if edge is None:
            continue
        factor = factors.new(edge.extent)
        lhs[lhs_spec[2 + place]] = factor
        halos[factor[0]] = Halo(0, lhs_spec[2 + place], edge.before, edge.after)
        if edge.is_summed:
            rhs[rhs_spec[2 + place]] = factor
            combined[factor[0]] = "sum"
        else:
            out[out_spec[2 + place]] = factor
        cut.append((place, lhs_spec[2 + place]))

    def local_params(parts: Shapes, _: Shapes) -> Params:
        whole = operands[0].shape
        is_cut = {place for place, d in cut if parts[0][d] != whole[d]}
        return {"padding": tuple((0, 0) if n in is_cut else e for n, e in enumerate(padding))}

    made = tuple(tuple(own.values()) for own in (lhs, rhs, out))
    return Dimensions(made[:2], made[2:], factors, combined, local_params, halos=halos)


_conv_general_dilated = declare(
    "conv_general_dilated",
    parameters={
        "window_strides": Ints,
        "padding": Padding,
        "lhs_dilation": Ints,
        "rhs_dilation": Ints,
        "dimension_numbers": ConvDimensionNumbers,
        "feature_group_count": int,
        "batch_group_count": int,
        "precision": tuple[str, str] | None,
        "preferred_element_type": np.dtype | None,
    },
    infer=infer,
    evaluate=evaluate,
    jvp=jvp,
    transpose=transpose,
    dimensions=_dimensions,
    batch=batch,
    lower=_lower,
    samples=_samples,
)

# Function --------------------------------------------------------------------------------------


def conv_general_dilated(
    lhs: Operand,
    rhs: Operand,
    window_strides: Sequence[int],
    padding: UserObject,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: None = None,
) -> Value:
    """Convolves an array with a kernel, which is not flipped (a cross-correlation).

    Args:
        lhs: Array with a batch, a feature and n spatial dimensions.
        rhs: The kernel, of the same dtype: an output feature, an input feature and n spatial
            dimensions.
        window_strides: n steps between the positions of the kernel.
        padding: n pairs (low, high) of zeros around lhs, negative ones cut off; or 'VALID' (none),
            'SAME' or 'SAME_LOWER' (as many as keep the extent for a stride of 1).
        lhs_dilation: n factors; lhs gets factor - 1 zeros between neighbours. By default 1.
        rhs_dilation: n factors; the kernel gets factor - 1 zeros between neighbours. By default 1.
        dimension_numbers: Meaning of the dimensions: three strings such as
            `("NHWC", "HWIO", "NHWC")`, `ConvDimensionNumbers`, or None for batch, feature, spatial
            and output feature, input feature, spatial.
        feature_group_count: Number of groups of features. Each is convolved with its own part of
            the kernel's output features, so the kernel has the input features of one group only.
        batch_group_count: Number of groups of the batch. Each is convolved with its own part of the
            kernel's output features.
        precision: None, 'default', 'high' or 'highest', or a pair of these.
        preferred_element_type: dtype to accumulate in, and of the result.
        out_sharding: None here; in `axir.lax`'s function, the sharding of the result.

    Returns:
        An array with a batch, a feature and n spatial dimensions.

    Raises:
        ShapeError: for shapes, strides, dilations, groups or dimension numbers that do not fit.
        DTypeError: for operands of different dtypes, or a preferred dtype that does not hold them.
        ParameterError: for padding or a precision of another form.

    >>> x = np.arange(5, dtype=np.float32).reshape(1, 1, 5)
    >>> conv_general_dilated(x, np.ones((1, 1, 3), np.float32), (1,), "SAME")
    Array([[[1., 3., 6., 9., 7.]]], dtype=float32)
    """
    if out_sharding is not None:
        raise one_layout("conv_general_dilated", out_sharding)
    lhs, rhs = as_value(lhs), as_value(rhs)
    geometry = canonical_geometry(
        lhs.shape, rhs.shape, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
    )
    if preferred_element_type is not None:
        preferred_element_type = dtypes.canonicalize_dtype(preferred_element_type)
    return _conv_general_dilated.bind(
        lhs,
        rhs,
        **geometry,
        feature_group_count=index(feature_group_count),
        batch_group_count=index(batch_group_count),
        precision=canonical_precision(precision),
        preferred_element_type=preferred_element_type,
    )


conv_general_dilated.primitive = _conv_general_dilated  # type: ignore[attr-defined]
