"""Operations of StableHLO on quantized numbers, as arithmetic on integers and floats.

A quantized value becomes the array of its integers. Moves move the integers. Comparisons and
selections of numbers of one type work on the integers, because scales are positive. Arithmetic is
applied to the numbers that the integers represent, and its result is quantized, by the formulas of
StableHLO's specification:

    dequantize(q) = (q - zero_point) * scale
    quantize(x)   = round_to_even(clamp(low, x / scale + zero_point, high))

The specification computes these in the expressed type. So does axir, except for types of 16 bits,
which have too few digits for a zero point of 8 bits and a fraction: it computes in float32 and
rounds once. Elsewhere: products (`quantized_products.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Dtype, Extent, HostArray
from axir.dialect.core.array import from_numpy
from axir.dialect.core.quantized_types import Quantization, is_quantized, quantization
from axir.dialect.ops.elementwise.arithmetic import add, clamp, div, mul, round, sub
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.program.rules import Value
from axir.passes.framework.errors import QuantizationError
from axir.passes.raising.dimensions.attributes import integer, integers

from .shapes import iota, spread
from .table import RULES, Raised, RaiseRule, RaisingContext, raises, result_type

_TO_EVEN = 1
# Integers of up to so many bytes, and their differences, are exact in float32.
_EXACT_BYTES = 2


def quantizations(values: Sequence[ir.Value]) -> list[Quantization | None]:
    """Returns the quantizations of values; None for values of other types."""
    return [quantization(value.type) for value in values]


def computed_in(q: Quantization) -> Dtype:
    """Returns the dtype of floats that quantized numbers are computed in."""
    return dtypes.float64 if q.expressed == dtypes.float64 else dtypes.float32


def dequantized(x: Value, q: Quantization, dtype: Dtype | None = None) -> Value:
    """Returns the numbers that integers represent.

    Args:
        x: The integers.
        q: Their quantization.
        dtype: The dtype of the numbers; by default the one in which they are computed.
    """
    kind = computed_in(q)
    if any(q.zero_points) and q.storage.itemsize > _EXACT_BYTES:
        wide = convert_element_type(x, dtypes.int64)
        zeros = along(np.array(q.zero_points), q.axis, dtypes.int64, x.aval.shape)
        numbers = convert_element_type(sub(wide, zeros), kind)
    else:
        numbers = convert_element_type(x, kind)
        if any(q.zero_points):
            zeros = along(np.array(q.zero_points), q.axis, kind, x.aval.shape)
            numbers = sub(numbers, zeros)
    found = mul(numbers, along(scales_of(q), q.axis, kind, x.aval.shape))
    return convert_element_type(found, kind if dtype is None else dtype)


def quantized(x: Value, q: Quantization) -> Value:
    """Returns the integers that represent numbers."""
    kind = computed_in(q)
    scaled = div(convert_element_type(x, kind), along(scales_of(q), q.axis, kind, x.aval.shape))
    return rounded(scaled, q)


def rounded(scaled: Value, q: Quantization) -> Value:
    """Returns the integers that represent numbers which were divided by the scale."""
    kind, shape = scaled.dtype, scaled.aval.shape
    if any(q.zero_points):
        scaled = add(scaled, along(np.array(q.zero_points), q.axis, kind, shape))
    found = convert_element_type(round(_limited(scaled, q), _TO_EVEN), q.storage)
    # A nan becomes 0, which may be outside of the bounds.
    return found if q.low <= 0 <= q.high else _limited(found, q)


def requantized(x: Value, given: Quantization, wanted: Quantization) -> Value:
    """Returns integers of one quantized type converted to another quantized type."""
    return x if given == wanted else quantized(dequantized(x, given), wanted)


def narrowed(x: Value, q: Quantization) -> Value:
    """Returns integers of a wider dtype as the nearest integers of a quantized type."""
    return convert_element_type(_limited(x, q), q.storage)


def _limited(x: Value, q: Quantization) -> Value:
    if x.dtype == q.storage and q.uses_all_integers:
        return x
    low, high = (np.array(bound).astype(x.dtype) for bound in (q.low, q.high))
    return clamp(from_numpy(low), x, from_numpy(high))


def scales_of(q: Quantization) -> HostArray:
    """Returns the scales, rounded to the dtype that they are expressed in."""
    kind = computed_in(q)
    return np.array(q.scales).astype(kind)


def along(numbers: HostArray, axis: int | None, dtype: Dtype, shape: Sequence[Extent]) -> Value:
    """Returns numbers, one for all elements or one for each place along an axis, as an array."""
    values = numbers.astype(dtype)
    if (values == values.flat[0]).all():
        values, axis = values.reshape(-1)[0], None
    known = from_numpy(np.asarray(values))
    return spread(known, tuple(shape), () if axis is None else (axis,))


QUANTIZED_RULES: dict[str, RaiseRule] = {}
"""The rules of operations on quantized numbers that are none of those below."""

_HLO = "stablehlo."

_COMPUTING = frozenset(
    _HLO + name
    for name in (
        "abs add atan2 batch_norm_grad batch_norm_inference batch_norm_training cbrt ceil cholesky "
        "clamp cosine divide exponential exponential_minus_one floor log "
        "log_plus_one logistic maximum minimum multiply negate power reduce_precision remainder "
        "round_nearest_afz round_nearest_even rsqrt select sign sine sqrt subtract tan tanh "
        "triangular_solve"
    ).split()
)
"""What is computed with the numbers that integers stand for."""

_ORDERING = frozenset(_HLO + name for name in ("clamp", "compare", "maximum", "minimum", "select"))
"""What integers of one type answer as the numbers do that they stand for."""

_MOVING = frozenset(
    _HLO + name
    for name in (
        "broadcast broadcast_in_dim concatenate dynamic_broadcast_in_dim dynamic_gather "
        "dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice gather pad "
        "real_dynamic_slice reshape reverse slice torch_index_select transpose"
    ).split()
) | {"tensor.cast"}
"""What moves elements."""

_CARRYING = frozenset(
    _HLO + name
    for name in (
        "after_all all_gather all_reduce all_to_all bitcast_convert case collective_broadcast "
        "collective_permute composite constant get_dimension_size get_tuple_element if map "
        "optimization_barrier reduce_scatter select_and_scatter sort tuple while"
    ).split()
) | {"func.call"}
"""What takes values as they are, or has bodies that say what is computed."""

_AXIS = "iota_dimension"


def rule_of(operation: ir.Operation) -> RaiseRule | None:
    """Returns the rule of an operation; None if it has no rule."""
    rule = RULES.get(operation.name)
    if not touches_quantized(operation):
        return rule
    name = operation.name
    if name in QUANTIZED_RULES:
        return QUANTIZED_RULES[name]
    if rule is None or name in _CARRYING:
        return rule
    if name in _ORDERING and _is_of_one_type(_quantized_operands(operation)):
        return rule
    if name in _MOVING:
        return rule if _moves_integers(operation) else _computed
    return _computed if name in _COMPUTING | _ORDERING else _refused


def touches_quantized(operation: ir.Operation) -> bool:
    """Tells whether an operand or a result of an operation is quantized."""
    return any(is_quantized(value.type) for value in (*operation.operands, *operation.results))


def _refused(context: RaisingContext, operation: ir.Operation, *values: Value) -> Raised:
    shown = next(filter(None, quantizations([*operation.operands, *operation.results])))
    raise QuantizationError(
        f"{operation.name} has no meaning for quantized numbers ({shown}).",
        "Dequantize them before it, by stablehlo.uniform_dequantize, and quantize what it returns.",
        where="",
    )


def _computed(context: RaisingContext, operation: ir.Operation, *values: Value) -> Raised:
    """Applies the operation to the represented numbers, and quantizes the results."""
    given = quantizations(operation.operands)
    mixed = any(q is None and dtypes.is_float(x.dtype) for q, x in zip(given, values, strict=True))
    floats = [
        x if q is None else dequantized(x, q, q.expressed if mixed else None)
        for x, q in zip(values, given, strict=True)
    ]
    raised = RULES[operation.name](context, operation, *floats)
    results = list(raised) if isinstance(raised, (list, tuple)) else [raised]
    wanted = quantizations(operation.results)
    return [x if q is None else quantized(x, q) for x, q in zip(results, wanted, strict=True)]


# Types --------------------------------------------------------------------------------------------


def _quantized_operands(operation: ir.Operation) -> list[Quantization | None]:
    """Returns the quantizations of the operands and results that hold numbers."""
    operands = list(operation.operands)
    if operation.name == "stablehlo.select":
        operands = operands[1:]
    is_comparison = operation.name == "stablehlo.compare"
    return quantizations([*operands, *([] if is_comparison else operation.results)])


def _is_of_one_type(found: Sequence[Quantization | None]) -> bool:
    return found[0] is not None and all(q == found[0] for q in found[1:])


def _moves_integers(operation: ir.Operation) -> bool:
    """Tells whether moving the integers also moves the numbers that they represent."""
    result = quantization(operation.results[0].type)
    given = [q for q in quantizations(operation.operands) if q is not None]
    if result is None or not given:
        return False
    if result.axis is None:
        return all(q == result for q in given)
    if len(given) != 1 or given[0].axis is None or given[0]._replace(axis=result.axis) != result:
        return False
    return _moved_axis(operation, given[0].axis) == result.axis


def _moved_axis(operation: ir.Operation, axis: int) -> int | None:
    """Returns the axis of the result that an axis becomes; None if unknown."""
    operand, result = operation.operands[0].type, operation.results[0].type
    if operation.name == "stablehlo.transpose":
        return integers(operation, "permutation").index(axis)
    if operation.name in ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim"):
        return integers(operation, "broadcast_dimensions")[axis]
    if operation.name == "stablehlo.reshape" and result.has_static_shape:
        before = math.prod(operand.shape[:axis])
        sizes = [math.prod(result.shape[:n]) for n in range(result.rank)]
        fitting = [n for n, size in enumerate(sizes) if size == before]
        extent = operand.shape[axis]
        return next((n for n in fitting if result.shape[n] == extent), None)
    return None


# Rules --------------------------------------------------------------------------------------------


@raises("stablehlo.uniform_quantize", table=QUANTIZED_RULES)
def _quantize(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    given, wanted = quantizations([operation.operands[0], operation.results[0]])
    if wanted is None:
        raise _missing(operation, "returns")
    return quantized(x, wanted) if given is None else requantized(x, given, wanted)


@raises("stablehlo.uniform_dequantize", table=QUANTIZED_RULES)
def _dequantize(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    given = quantization(operation.operands[0].type)
    if given is None:
        raise _missing(operation, "takes")
    return dequantized(x, given, given.expressed)


def _missing(operation: ir.Operation, what: str) -> QuantizationError:
    return QuantizationError(
        f"{operation.name} {what} numbers that are not quantized.",
        "Give them a type of !quant.uniform.",
        where="",
    )


@raises("stablehlo.add", table=QUANTIZED_RULES)
def _add(context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value) -> Raised:
    found = quantizations([*operation.operands, *operation.results])
    q = found[2]
    if q is None or not _is_of_one_type(found):
        return _computed(context, operation, lhs, rhs)
    wide = dtypes.int32 if q.storage.itemsize <= 2 else dtypes.int64
    total = add(convert_element_type(lhs, wide), convert_element_type(rhs, wide))
    if any(q.zero_points):
        total = sub(total, along(np.array(q.zero_points), q.axis, wide, total.aval.shape))
    return narrowed(total, q)


@raises("stablehlo.is_finite", table=QUANTIZED_RULES)
def _is_finite(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return along(np.array([True]), None, dtypes.bool_, x.aval.shape)


@raises("stablehlo.iota", table=QUANTIZED_RULES)
def _iota(context: RaisingContext, operation: ir.Operation) -> Value:
    q = quantization(operation.results[0].type)
    assert q is not None, "its result is what is quantized"
    places = iota(result_type(operation).update(dtype=computed_in(q)), integer(operation, _AXIS))
    return quantized(places, q)


@raises("stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.scatter", table=QUANTIZED_RULES)
def _folded(context: RaisingContext, operation: ir.Operation, *values: Value) -> Raised:
    """Applies an operation with a body; the body may have a type of more digits than the arrays.

    Arrays become integers of the body's types; initial values are of these types already.
    """
    body = quantizations(operation.regions[0].blocks[0].arguments)
    count = len(operation.results)
    places = [*range(count)]
    if operation.name == "stablehlo.scatter":
        places = [*places, *range(count + 1, 2 * count + 1)]
        body = [*body[:count], *body[count:]]
    else:
        body = body[count:]
    arrays = list(values)
    for place, wanted in zip(places, body, strict=True):
        given = quantization(operation.operands[place].type)
        if given is not None and wanted is not None:
            arrays[place] = requantized(arrays[place], given, wanted)
    return RULES[operation.name](context, operation, *arrays)
