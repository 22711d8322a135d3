"""Arrays without operands: constants, counting numbers, filled arrays; and copies of arrays.

Ops without operands are evaluated at once, also while tracing. They occur as ops only in parsed
modules and in lowerings.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import numpy as np

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, Params
from axir.dialect.core.array import ConcreteArray, as_array, from_numpy
from axir.dialect.core.errors import DTypeError, ShapeError, axis_error
from axir.dialect.core.symbolic_dims import as_extent, is_open
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import ANY, NUMBER, as_value, zero_tangent
from axir.dialect.ops.elementwise.family import full as filled
from axir.dialect.ops.elementwise.samples import edge_array, random_values
from axir.dialect.ops.later_ops import later
from axir.dialect.program.described_arrays import note_computed
from axir.dialect.program.dimensions import Dimensions, Factors, Shapes, position_wise
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Ints
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Operand, Value
from axir.dialect.program.tracer import Tracer

from .movement import apply_to_tangent, integers, spread_samples
from .rearranging import broadcast

_NO_OPERANDS = {
    "transpose": "it has no operands, so nothing can be linear in one.",
    "batch": "it has no operands, so nothing is batched.",
}

# constant --------------------------------------------------------------------------------------


def _infer_constant(*, value: np.ndarray) -> ShapedArray:
    return ShapedArray(value.shape, value.dtype)


def _constant_samples() -> list[Sample]:
    generator = np.random.default_rng(0)
    shapes = ((2, 3), (), (0, 2))
    values = [
        random_values(generator, shapes[i % 3], dtype, -2, 2)
        for i, dtype in enumerate((*ANY, dtypes.float32, dtypes.complex64))
    ]
    values += [edge_array((1, 2, 1, 1, 5, 1), dtype) for dtype in (dtypes.float32, dtypes.int64)]
    values += [edge_array((6,), dtypes.complex64), np.full((2, 2), -0.0, np.float32)]
    values += [np.ones((3,), np.bool_)]
    return [Sample((), {"value": value}, is_smooth=False) for value in values]


_constant: Primitive = declare(
    "constant",
    parameters={"value": np.ndarray},
    infer=_infer_constant,
    evaluate=lambda *, value: value,
    jvp=zero_tangent,
    lower=lambda context, *, value: hlo.constant(value),
    samples=_constant_samples,
    unsupported=_NO_OPERANDS,
)


def constant(value: Operand) -> ConcreteArray:
    """Returns the array of known elements.

    Args:
        value: A NumPy array or scalar, of a dtype that the current configuration allows.
    """
    host = np.asarray(value)
    return _constant.bind(value=host.astype(dtypes.canonicalize_dtype(host.dtype), copy=False))


# iota ------------------------------------------------------------------------------------------


def _infer_iota(*, dtype: np.dtype, shape: tuple[int, ...], dimension: int) -> ShapedArray:
    if dtype not in NUMBER:
        raise DTypeError(f"iota does not count in {dtype}; it takes {', '.join(map(str, NUMBER))}.")
    if any(extent < 0 for extent in shape):
        raise ShapeError(f"iota: shape {shape} has a negative extent.")
    if not 0 <= dimension < len(shape):
        raise axis_error("iota", dimension, len(shape))
    return ShapedArray(shape, dtype)


def _evaluate_iota(*, dtype: np.dtype, shape: tuple[int, ...], dimension: int) -> np.ndarray:
    # Counts in 64 bits and casts, so that a narrow integer dtype wraps around.
    counted = np.arange(shape[dimension]).astype(dtype)
    if len(shape) == 1:
        return counted
    trailing = (1,) * (len(shape) - 1 - dimension)
    return np.broadcast_to(counted.reshape(counted.shape + trailing), shape)


def _iota_samples() -> list[Sample]:
    variants = [((4,), 0), ((2, 3), 0), ((2, 3), 1), ((0,), 0), ((1, 2, 1, 1, 3, 1), 4)]
    cases = [(d, *variants[i % len(variants)]) for i, d in enumerate(NUMBER)]
    cases += [(dtypes.int8, (300,), 0), (dtypes.float32, (3, 2), 1), (dtypes.int32, (0, 2), 1)]
    return [
        Sample((), {"dtype": dtype, "shape": shape, "dimension": dimension}, is_smooth=False)
        for dtype, shape, dimension in cases
    ]


def _iota_dimensions(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    dtype: np.dtype,
    shape: tuple[int, ...],
    dimension: int,
) -> Dimensions:
    factors = Factors()
    made = tuple(map(factors.new, shape))

    def local_params(_: Shapes, parts: Shapes) -> Params:
        return {"shape": parts[0]}

    (counted,) = made[dimension]
    return Dimensions((), (made,), factors, local_params=local_params, counted=counted)


_iota: Primitive = declare(
    "iota",
    parameters={"dtype": np.dtype, "shape": Ints, "dimension": int},
    infer=_infer_iota,
    evaluate=_evaluate_iota,
    jvp=zero_tangent,
    dimensions=_iota_dimensions,
    lower=lambda context, *, dtype, shape, dimension: hlo.iota(shape, dimension, dtype),
    samples=_iota_samples,
    unsupported=_NO_OPERANDS,
)


def iota(dtype: DTypeLike, size: int) -> ConcreteArray:
    """Returns the numbers 0, 1, ... of a dtype.

    >>> iota(np.float32, 3)
    Array([0., 1., 2.], dtype=float32)
    """
    return _iota.bind(dtype=dtypes.canonicalize_dtype(dtype), shape=(as_extent(size),), dimension=0)


def iota_beside(x: Value, shape: tuple[int, ...], dimension: int) -> Value:
    """Returns int32 counts along a dimension, traced if an array is traced.

    With a traced array they are an op of its trace, which compiles into its users; known counts
    would be an argument.

    >>> iota_beside(np.zeros(2), (2, 2), 1)
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    params = {"dtype": np.dtype(np.int32), "shape": shape, "dimension": dimension}
    if isinstance(x, Tracer):
        counted: Value = x.owner.record(_iota, [], params)
        return counted
    return _iota.bind(**params)


def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int) -> ConcreteArray:
    """Returns numbers that count along one dimension of a shape.

    Raises:
        DTypeError: for bool.
        AxisError: if the shape has no such dimension.

    >>> broadcasted_iota(np.int32, (2, 2), 1)
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    shape = integers("broadcasted_iota", "shape", shape)
    dtype = dtypes.canonicalize_dtype(dtype)
    return _iota.bind(dtype=dtype, shape=shape, dimension=index(dimension))


# Filled arrays ---------------------------------------------------------------------------------

_KINDS_THAT_HOLD = {bool: "biufc", int: "iufc", float: "fc", complex: "c"}


def full(shape: Sequence[int], fill_value: Operand, dtype: DTypeLike = None) -> Value:
    """Returns an array filled with one value.

    Args:
        shape: Its shape.
        fill_value: A scalar: a Python or NumPy number, or an array of rank 0.
        dtype: Its dtype; by default the value's dtype (weak if the value's is).

    Raises:
        ShapeError: if the value is not a scalar.

    >>> full((2,), 1.5)
    Array([1.5, 1.5], dtype=float32, weak_type=True)
    """
    shape = integers("full", "shape", shape)
    if dtype is not None:
        dtype = dtypes.canonicalize_dtype(dtype)
        is_apart = dtypes.is_key(dtype) or dtype == dtypes.float0
        if is_apart and type(fill_value) in _KINDS_THAT_HOLD:
            return filled(shape, fill_value, dtype)
        if dtypes.kind(dtype) in _KINDS_THAT_HOLD.get(type(fill_value), ""):
            # Integers wrap around: full(shape, -1, uint32) holds the largest number.
            return _repeat(from_numpy(np.asarray(fill_value).astype(dtype)), shape)
    value = as_value(fill_value)
    if value.shape:
        raise ShapeError(
            f"full: the fill value must be a scalar, but it is {value.aval}.",
            "Use jnp.broadcast_to(value, shape).",
        )
    if dtype is not None and (dtype != value.dtype or value.weak_type):
        value = convert_element_type(value, dtype)
    return broadcast(value, shape) if type(value) is Tracer else _repeat(as_array(value), shape)


def _repeat(value: ConcreteArray, shape: tuple[int, ...]) -> Value:
    if is_open(shape):
        return broadcast(value, shape)
    # A view: a shape of any size takes the memory of one element.
    repeated = np.broadcast_to(value.host(), shape)
    kind = ShapedArray(shape, value.dtype, value.weak_type)
    return note_computed(ConcreteArray(kind, repeated))


def full_like(
    x: Operand,
    fill_value: Operand,
    dtype: DTypeLike = None,
    shape: Sequence[int] | None = None,
) -> Value:
    """Returns an array filled with one value, of another array's shape and dtype unless given.

    >>> full_like(np.ones((2,), np.int8), 3)
    Array([3, 3], dtype=int8)
    """
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        x = as_value(x)
    shape = x.shape if shape is None else shape
    filled = full(shape, fill_value, x.dtype if dtype is None else dtype)
    if dtype is None and getattr(x, "weak_type", False):
        filled = convert_element_type(filled, filled.dtype, weak_type=True)
    if type(x) is Tracer and x.type.varying:
        return later.pvary(filled, x.type.varying)
    return filled


def zeros_like_array(x: Operand) -> Value:
    """Returns zeros of another array's shape and dtype."""
    return full_like(x, 0)


# copy ------------------------------------------------------------------------------------------

_copy: Primitive = declare(
    "copy",
    takes_keys=True,
    infer=lambda operand: operand,
    evaluate=lambda x: x.copy(),
    jvp=apply_to_tangent(lambda t: _copy.bind(t)),
    transpose=lambda ct, x: [ct],
    dimensions=position_wise,
    batch=lambda operands, axes: (_copy.bind(operands[0]), axes[0]),
    lower=lambda context, x: x,
    samples=lambda: spread_samples(
        [((shape,), {}) for shape in [(2, 3), (), (0, 2), (1, 2, 1, 1, 3, 1)]]
    ),
)


def copy(x: Value) -> Value:
    """Returns an array of equal elements in separate memory."""
    return _copy.bind(x)
