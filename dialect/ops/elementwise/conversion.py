"""Conversions: dtype, bits, real and imaginary parts, and the stop of gradients.

Cotangents of complex values follow the convention that makes `grad` of a real loss u(x + iy) equal
to du/dx - i du/dy: the pairing of a cotangent c with a tangent t is Re(c t).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import ml_dtypes
import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import DTypeError, KeyPromotionError, ShapeError
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.later_ops import later
from axir.dialect.program.dimensions import Dimensions, leading, position_wise
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.narrow_elements import narrowed, widened
from axir.dialect.program.op_table import Traceable, declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import (
    BatchAxes,
    MlirValues,
    Operand,
    OperandTangents,
    Tangents,
    TransposeOperand,
    Value,
)

from .arithmetic import neg
from .family import ANY, COMPLEX, as_value, batch_elementwise, binary, full, unary, zero_tangent
from .operand_shapes import broadcast_to
from .samples import EDGES, edge_array, edge_values, random_values

# Conversion of values --------------------------------------------------------------------------


def _infer_convert(x: ShapedArray, *, new_dtype: np.dtype, weak_type: bool) -> ShapedArray:
    if dtypes.is_key(x.dtype) or dtypes.is_key(new_dtype):
        raise KeyPromotionError(
            f"convert_element_type: {x} does not convert to {new_dtype}.",
            "random.wrap_key_data makes keys of words, and random.key_data words of keys.",
        )
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(new_dtype):
        raise DTypeError(
            f"convert_element_type: {x.dtype} does not convert to {new_dtype}.",
            "Take jnp.real(x) or jnp.imag(x) first.",
        )
    return ShapedArray(x.shape, new_dtype, weak_type)


def _evaluate_convert(x: np.ndarray, *, new_dtype: np.dtype, weak_type: bool) -> np.ndarray:
    x = widened(x)
    if dtypes.is_float(x.dtype) and dtypes.is_integer(new_dtype):
        return _saturate(x, new_dtype)
    if new_dtype == dtypes.bool_:
        return x != 0
    return narrowed(x, new_dtype) if dtypes.is_narrow(new_dtype) else x.astype(new_dtype)


def _saturate(x: np.ndarray, new_dtype: np.dtype) -> np.ndarray:
    """Rounds toward zero; clamps values outside the range to its ends, and maps NaN to zero."""
    limits = ml_dtypes.iinfo(new_dtype)
    low, high = int(limits.min), int(limits.max)
    if x.size and float(x.min()) > low and float(x.max()) < high:
        return x.astype(new_dtype)
    wide = x.astype(np.float64)
    integer = dtypes.wide(new_dtype)
    inside = (wide > float(low) - 1) & (wide < float(high) + 1)
    result = np.where(inside, wide, 0).astype(integer)
    result = np.where(wide >= float(high), integer.type(high), result)
    result = np.where(wide <= float(low), integer.type(low), result)
    return np.where(np.isnan(wide), integer.type(0), result).astype(new_dtype)


def _convert_jvp(
    primals: Sequence[Value], tangents: OperandTangents, out: Value, **params: object
) -> Tangents:
    if not dtypes.is_inexact(out.dtype) or not dtypes.is_inexact(primals[0].dtype):
        return Zero(out.aval.to_tangent_aval())
    return convert_element_type(tangents[0], out.dtype)


def _convert_transpose(ct: Value, x: TransposeOperand, **params: object) -> list[Value]:
    if dtypes.is_complex(ct.dtype) and not dtypes.is_complex(x.dtype):
        return [convert_element_type(real(ct), x.dtype)]
    return [convert_element_type(ct, x.dtype)]


def _lower_convert(
    context: LoweringContext, x: ir.Value, *, new_dtype: np.dtype, weak_type: bool
) -> MlirValues:
    source, target = context.types_in[0].dtype, dtypes.wide(new_dtype)
    if dtypes.is_narrow(source):
        x, source = hlo.convert(x, dtypes.wide(source)), dtypes.wide(source)
    if new_dtype == dtypes.bool_ and source != dtypes.bool_:
        return hlo.compare(x, hlo.full_like(x, 0), "NE")
    if target == new_dtype:
        return hlo.convert(x, new_dtype)
    if dtypes.is_float(new_dtype):  # rounded once
        return hlo.convert(x if dtypes.is_float(source) else hlo.convert(x, target), new_dtype)
    if dtypes.is_float(source):
        x = _clamped(x, new_dtype)
    return hlo.convert(hlo.convert(x, target), new_dtype)


def _clamped(x: ir.Value, dtype: np.dtype) -> ir.Value:
    """Limits floats to the range of a narrow integer dtype; NaN becomes 0."""
    limits = ml_dtypes.iinfo(dtype)
    low, high = hlo.full_like(x, int(limits.min)), hlo.full_like(x, int(limits.max))
    number = hlo.select(hlo.compare(x, x, "EQ"), x, hlo.full_like(x, 0))
    return hlo.minimum(hlo.maximum(number, low), high)


# Between these, conversion is linear to within rounding.
_SMOOTH = {dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128}


def _convert_samples() -> list[Sample]:
    generator = np.random.default_rng(2)
    samples = []
    ends = (300.7, -300.7, 3e9, -3e9, 1e19, -1e19, 127.5, -0.9, 1e-6)
    for source in ANY:
        x = random_values(generator, (5,), source, -3, 3)
        edges = edge_values((*EDGES, *ends), source)
        for target in ANY:
            if not (dtypes.is_complex(source) and not dtypes.is_complex(target)):
                params = {"new_dtype": target, "weak_type": False}
                smooth = {source, target} <= _SMOOTH
                samples.append(Sample((x if smooth else edges,), params, is_smooth=smooth))
    params = {"new_dtype": dtypes.float64, "weak_type": False}
    for shape in [(), (0, 2), (1, 2, 1, 1, 2, 1)]:
        x = random_values(generator, shape, dtypes.float32, -3, 3)
        samples.append(Sample((x,), params))
    for source, target in [("float64", "float32"), ("complex128", "complex64")]:
        edges = edge_values((*EDGES, 1e300, -1e300), np.dtype(source))
        params = {"new_dtype": np.dtype(target), "weak_type": False}
        samples.append(Sample((edges,), params, is_smooth=False))
    return samples


_convert = declare(
    "convert_element_type",
    parameters={"new_dtype": np.dtype, "weak_type": bool},
    takes_keys=True,  # the op has a specific error for keys
    takes_narrow=True,
    infer=_infer_convert,
    evaluate=_evaluate_convert,
    jvp=_convert_jvp,
    transpose=_convert_transpose,
    dimensions=position_wise,
    lower=_lower_convert,
    samples=_convert_samples,
)
_convert.batch = batch_elementwise(_convert)


def convert_element_type(operand: Operand, new_dtype: DTypeLike, weak_type: bool = False) -> Value:
    """Converts to another dtype.

    Floats become integers by rounding toward zero. Values outside the integer's range are clamped
    to its ends, and NaN becomes zero. Complex numbers lose their imaginary part in real dtypes,
    with NumPy's `ComplexWarning`. A value that already has the dtype (and weak type) is returned as
    is.
    """
    operand = as_value(operand)
    dtype = dtypes.canonicalize_dtype(new_dtype)
    if dtypes.is_complex(operand.dtype) and not dtypes.is_complex(dtype):
        warnings.warn(
            f"convert_element_type from {operand.dtype} to {dtype} drops the imaginary part; take "
            "jnp.real(x) first.",
            np.exceptions.ComplexWarning,
            stacklevel=2,
        )
        operand = real(operand)
    if operand.dtype == dtype and operand.weak_type == weak_type:
        return operand
    if type(operand) is ConcreteArray and operand.dtype == dtype and not operand.shape:
        # Only the type of the constant changes: no result for the debugging options to check.
        known = operand.type.update(weak_type=bool(weak_type))
        return ConcreteArray(known, operand.host(), None, operand._device)
    return _convert.bind(operand, new_dtype=dtype, weak_type=bool(weak_type))


# Conversion of bits ----------------------------------------------------------------------------


def _infer_bitcast(x: ShapedArray, *, new_dtype: np.dtype) -> ShapedArray:
    old, new = x.dtype.itemsize, new_dtype.itemsize
    is_mixed = (x.dtype == dtypes.bool_) != (new_dtype == dtypes.bool_)
    if is_mixed or dtypes.is_complex(x.dtype) != dtypes.is_complex(new_dtype):
        raise DTypeError(f"bitcast_convert_type: {x.dtype} and {new_dtype} have unlike bits.")
    if old == new:
        return ShapedArray(x.shape, new_dtype)
    if old > new:
        return ShapedArray((*x.shape, old // new), new_dtype)
    if not x.shape or x.shape[-1] != new // old:
        raise ShapeError(
            f"bitcast_convert_type from {x} to {new_dtype} needs a last axis of {new // old}.",
        )
    return ShapedArray(x.shape[:-1], new_dtype)


def _evaluate_bitcast(x: np.ndarray, *, new_dtype: np.dtype) -> np.ndarray:
    x = np.ascontiguousarray(x) if x.ndim else x.reshape(1).copy()[0:1].reshape(())
    old, new = x.dtype.itemsize, new_dtype.itemsize
    if old == new:
        return x.view(new_dtype)
    if old > new:
        return x.reshape(-1).view(new_dtype).reshape(*x.shape, old // new)
    return x.reshape(-1).view(new_dtype).reshape(x.shape[:-1])


def _lower_bitcast(context: LoweringContext, x: ir.Value, *, new_dtype: np.dtype) -> MlirValues:
    return hlo.bitcast_convert(x, new_dtype, context.types_out[0].shape)


def _bitcast_batch(
    operands: Sequence[Value], axes: BatchAxes, *, new_dtype: np.dtype
) -> tuple[Value, int]:
    # The last axis may appear or vanish, so the batch axis goes first.
    return _bitcast.bind(later.moveaxis(operands[0], axes[0], 0), new_dtype=new_dtype), 0


def _bitcast_samples() -> list[Sample]:
    generator = np.random.default_rng(3)
    pairs = [
        ("float32", "int32"), ("uint32", "float32"), ("float64", "uint64"), ("int16", "float16"),
        ("uint8", "int8"), ("float32", "uint8"), ("uint16", "uint8"), ("int64", "float32"),
    ]  # fmt: skip
    samples = [
        Sample((edge_array((2, 4), np.dtype(a)),), {"new_dtype": np.dtype(b)}) for a, b in pairs
    ]
    half = random_values(generator, (3,), dtypes.bfloat16, -2, 2)
    samples.append(Sample((half,), {"new_dtype": dtypes.uint16}))
    for shape in [(0, 2), (1, 2, 1, 1, 3, 1)]:
        x = edge_array(shape, dtypes.float32)
        samples += [Sample((x,), {"new_dtype": np.dtype(name)}) for name in ("uint32", "int16")]
    bytes_ = generator.integers(0, 255, (3, 4)).astype(np.uint8)
    samples.append(Sample((bytes_,), {"new_dtype": dtypes.uint32}))
    samples.append(Sample((np.float32(1.5).reshape(()),), {"new_dtype": dtypes.int32}))
    return samples


def _bitcast_dimensions(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: object
) -> Dimensions:
    # Other widths add or remove a last dimension.
    return leading(operands, results, min(operands[0].ndim, results[0].ndim))


_bitcast = declare(
    "bitcast_convert_type",
    parameters={"new_dtype": np.dtype},
    takes_narrow=True,
    infer=_infer_bitcast,
    evaluate=_evaluate_bitcast,
    jvp=zero_tangent,
    dimensions=_bitcast_dimensions,
    batch=_bitcast_batch,
    lower=_lower_bitcast,
    samples=_bitcast_samples,
    unsupported={"transpose": "reinterpreting bits is not linear."},
)


def bitcast_convert_type(operand: Operand, new_dtype: DTypeLike) -> Value:
    """Reinterprets the bits as another dtype.

    A narrower dtype appends an axis, a wider one consumes the last axis.
    """
    return _bitcast.bind(as_value(operand), new_dtype=dtypes.canonicalize_dtype(new_dtype))


# Complex numbers -------------------------------------------------------------------------------


def _zeros(x: Value) -> Value:
    return broadcast_to(full((), 0, x.dtype), x.shape)


real: Traceable = unary(
    "real",
    np.real,
    hlo.real,
    COMPLEX,
    result=dtypes.real_dtype,
    jvp=[lambda dx, out, x: real(dx)],
    transpose=[lambda ct, x: complex_(ct, _zeros(ct))],
)
imag: Traceable = unary(
    "imag",
    np.imag,
    hlo.imag,
    COMPLEX,
    result=dtypes.real_dtype,
    jvp=[lambda dx, out, x: imag(dx)],
    transpose=[lambda ct, x: complex_(_zeros(ct), neg(ct))],
)
_conj = unary(
    "conj",
    np.conj,
    hlo.conj,
    COMPLEX,
    jvp=[lambda dx, out, x: conj(dx)],
    transpose=[lambda ct, x: conj(ct)],
)


def conj(x: Value) -> Value:
    """Returns the complex conjugate; a real operand becomes complex."""
    return _conj(x) if dtypes.is_complex(x.dtype) else complex_(x, _zeros(x))


def _evaluate_complex(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    result = np.empty(np.broadcast_shapes(x.shape, y.shape), dtypes.complex_dtype(x.dtype))
    result.real, result.imag = x, y
    return result


complex_: Traceable = binary(
    "complex",
    _evaluate_complex,
    hlo.complex,
    (dtypes.float32, dtypes.float64),
    result=dtypes.complex_dtype,
    jvp=[
        lambda dx, out, x, y: complex_(dx, _zeros(dx)),
        lambda dy, out, x, y: complex_(_zeros(dy), dy),
    ],
    transpose=[lambda ct, x, y: real(ct), lambda ct, x, y: neg(imag(ct))],
)

# Gradients end here ----------------------------------------------------------------------------

_stop_gradient = unary("stop_gradient", lambda x: x, lambda x: x, ANY, takes_keys=True)
_stop_gradient.primitive.moves_elements = True


def stop_gradient(x: Operand) -> Value:
    """Returns the operand, with zero derivative."""
    return _stop_gradient(as_value(x))
