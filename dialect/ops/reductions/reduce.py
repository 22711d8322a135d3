"""Reductions by one associative operation: `reduce_sum`, `reduce_max`, `reduce_and` ...

Elsewhere: reductions that yield positions (`arg_reduce.py`), running reductions (`cumulative.py`),
reductions by a function of the user's (`variadic_reduce.py`), and the axes arithmetic and folds
that they all share (`folding.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Scalar
from axir.dialect.core.config import config
from axir.dialect.core.errors import DTypeError, one_layout
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add, build_maximum, build_minimum, div, mul
from axir.dialect.ops.elementwise.comparison import eq, select_n
from axir.dialect.ops.elementwise.family import ANY, BITS, NUMBER, as_value, full, zero_tangent
from axir.dialect.ops.elementwise.samples import edge_rows
from axir.dialect.ops.shape.movement import SMOOTH
from axir.dialect.program.dimensions import Dimensions, reduced_along
from axir.dialect.program.function_rules import LoweringContext, LowerRule
from axir.dialect.program.op_table import Traceable, declare, traceable
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Ints
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import (
    Cotangent,
    HostArrays,
    MlirValues,
    Operand,
    ResultAxes,
    Results,
    Rule,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

from .blocks import reduce_in_blocks
from .folding import (
    accumulator_dtype,
    all_ones,
    batch_axes,
    canonical_axes,
    check_axes,
    check_dtype,
    fold,
    gather_axes,
    greatest,
    least,
    spaced_values,
    spread,
    without,
)


def _evaluator(
    ufunc: np.ufunc, identity: Callable[[np.dtype], Scalar | np.ndarray]
) -> Callable[..., object]:
    reduce = ufunc.reduce

    def evaluate(x: np.ndarray, *, axes: tuple[int, ...]) -> HostArrays:
        if x.size == 0:
            return np.full(without(x.shape, axes), identity(x.dtype)).astype(x.dtype)
        if x.dtype == dtypes.bfloat16:  # NumPy compares it one element at a time
            x = x.astype(np.float32)
        return reduce(x, axis=axes)

    return evaluate


def _accumulating_evaluator(ufunc: np.ufunc) -> Callable[..., object]:
    def evaluate(x: np.ndarray, *, axes: tuple[int, ...]) -> HostArrays:
        dtype = x.dtype
        if dtype.itemsize == 2 and dtype.kind not in "iu":
            x = x.astype(np.float32)
        return reduce_in_blocks(ufunc, x, axes)

    return evaluate


def _lowering(
    build: Callable[..., object],
    identity: Callable[[np.dtype], Scalar | np.ndarray],
    accumulates: bool,
) -> LowerRule:
    def lower(context: LoweringContext, x: ir.Value, *, axes: tuple[int, ...]) -> MlirValues:
        dtype = context.types_in[0].dtype
        wide = accumulator_dtype(dtype) if accumulates else dtype
        operand = x if wide == dtype else hlo.convert(x, wide)
        init = hlo.full(identity(wide), (), wide)
        result = hlo.reduce([operand], [init], axes, build)[0]
        return result if wide == dtype else hlo.convert(result, dtype)

    return lower


# And and or of truth values as operations on numbers.
_OF_BITS = {"and": "min", "or": "max"}


def _dimensions(
    combined: str | None,
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    axes: tuple[int, ...],
) -> Dimensions:
    dtype = operands[0].dtype
    if combined in _OF_BITS:
        combined = _OF_BITS[combined] if dtype == dtypes.bool_ else None
    elif combined != "sum" and dtypes.is_complex(dtype):
        combined = None  # devices have no order of complex numbers
    return reduced_along(operands, results, axes, combined)


def _declare(
    name: str,
    ufunc: np.ufunc,
    build: Callable[..., object],
    identity: Callable[[np.dtype], Scalar | np.ndarray],
    domain: Sequence[np.dtype],
    what: str,
    *,
    accumulates: bool = False,
    combined: str | None = None,
    **rules: Rule,
) -> Traceable:
    """Declares the reduction by `ufunc`, and returns its traceable function.

    Args:
        name: Name of the primitive.
        ufunc: The operation in NumPy.
        build: The operation in StableHLO.
        identity: Its neutral element by dtype, the result for no elements.
        domain: The dtypes it takes.
        what: The result of the reduction, for docstrings.
        combined: How to combine the results of parts of the elements: `"sum"`, `"max"`, `"min"`,
            or, for truth values, `"and"` and `"or"`; None if all elements are needed together.
        accumulates: Whether half precision is computed in float32 and rounded once.
        **rules: The other rules.
    """

    def infer(x: ShapedArray, *, axes: tuple[int, ...]) -> ShapedArray:
        check_dtype(name, x.dtype, domain)
        check_axes(name, axes, x.ndim)
        return ShapedArray(without(x.shape, axes), x.dtype, x.weak_type)

    def batch(
        operands: Sequence[Value], operand_axes: Any, *, axes: tuple[int, ...]
    ) -> tuple[Results, ResultAxes]:
        shifted, axis = batch_axes(operand_axes[0], axes)
        return primitive.bind(operands[0], axes=shifted), axis

    primitive = declare(
        name,
        parameters={"axes": Ints},
        infer=infer,
        evaluate=_accumulating_evaluator(ufunc) if accumulates else _evaluator(ufunc, identity),
        batch=batch,
        lower=_lowering(build, identity, accumulates),
        samples=lambda: _samples(domain),
        dimensions=functools.partial(_dimensions, combined),
        **rules,
    )
    return _function(primitive, what)


class HalfPrecisionSumError(DTypeError, ValueError):
    """16-bit floating-point numbers are summed, without the option that allows it."""


def _check_is_wide(operand: ShapedArray) -> None:
    if operand.dtype in (dtypes.float16, dtypes.bfloat16):
        raise HalfPrecisionSumError(
            f"reduce_sum of {operand}: sums of 16-bit numbers are not allowed while the option "
            "jax_allow_f16_reductions is off.",
            "Cast with x.astype(jnp.float32); jnp.sum does so by itself.",
        )


def _function(primitive: Primitive, what: str) -> Traceable:
    bind, name = primitive.bind, primitive.name

    def reduce(operand: Operand, axes: Sequence[int]) -> Value:
        operand = as_value(operand)
        if name == "reduce_sum" and not config.jax_allow_f16_reductions:
            _check_is_wide(operand.aval)
        return bind(operand, axes=canonical_axes(name, tuple(axes), operand.ndim))

    def reduce_to_layout(
        operand: Operand, axes: Sequence[int], *, out_sharding: None = None
    ) -> Value:
        if out_sharding is not None:
            raise one_layout(name, out_sharding)
        return reduce(operand, axes)

    documentation = f"""Reduces the elements along `axes` to {what}.

    Where there are no elements, the result is the operation's identity. Sums and products of half
    precision accumulate in float32; those of integers wrap.

    Raises:
        AxisError: for an axis out of range or named twice.
        DTypeError: for a dtype without the operation.
    """
    has_layout = name in ("reduce_sum", "reduce_max", "reduce_min")
    function = reduce_to_layout if has_layout else reduce
    return traceable(function, primitive, documentation)


_VARIANTS = ((1,), (0, 2), (0, 1, 2), (2, 0), (0,))


def _samples(domain: Sequence[np.dtype]) -> list[Sample]:
    generator = np.random.default_rng(len(domain))
    samples = []
    for index, dtype in enumerate(domain):
        x = spaced_values(generator, (3, 2, 4), dtype)
        if dtype in SMOOTH or index < 3:
            samples.append(Sample((x,), {"axes": _VARIANTS[index % len(_VARIANTS)]}))
        if dtype not in SMOOTH:
            samples.append(Sample((edge_rows(dtype),), {"axes": (1,)}, is_smooth=False))
    dtype = dtypes.float32 if dtypes.float32 in domain else dtypes.bool_
    shapes = [((0, 3), (0,)), ((0, 3), (1,)), ((2, 3), ()), ((), ()), ((1, 5), (0, 1))]
    shapes.append(((1, 2, 1, 2, 3, 1), (4, 1)))
    for shape, axes in shapes:
        samples.append(Sample((spaced_values(generator, shape, dtype),), {"axes": axes}))
    return samples


# Declarations ----------------------------------------------------------------------------------


def _sum_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, *, axes: tuple[int, ...]
) -> Tangents:
    return tangents[0] if type(tangents[0]) is Zero else reduce_sum(tangents[0], axes)


def _sum_transpose(
    ct: Value, x: TransposeOperand, *, axes: tuple[int, ...]
) -> Sequence[Cotangent | None]:
    return [spread(ct, x.shape, axes)]


def _prod_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, *, axes: tuple[int, ...]
) -> Tangents:
    """Folds (value, tangent) pairs by the product rule: no division, so zeros need no care."""
    (x,), (tangent,) = primals, tangents
    if type(tangent) is Zero or x.size == 0:
        return Zero(out.aval.to_tangent_aval())

    def combine(lhs: list[Value], rhs: list[Value]) -> list[Value]:
        (a, da), (b, db) = lhs, rhs
        return [mul(a, b), add(mul(da, b), mul(a, db))]

    pair = [gather_axes(x, axes), gather_axes(tangent, axes)]
    return fold(combine, pair)[1]


def _extremum_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, *, axes: tuple[int, ...]
) -> Tangents:
    """Averages the tangents of the elements that attain the extremum."""
    (x,), (tangent,) = primals, tangents
    if type(tangent) is Zero:
        return Zero(out.aval.to_tangent_aval())
    is_extremum = eq(x, spread(out, x.shape, axes))
    zero, one = full((), 0, x.dtype), full((), 1, x.dtype)
    count = reduce_sum(select_n(is_extremum, zero, one), axes)
    return div(reduce_sum(select_n(is_extremum, zero, tangent), axes), count)


_NOT_LINEAR = "it is not linear in its operand; differentiate it with jvp first."

reduce_sum = _declare(
    "reduce_sum",
    np.add,
    hlo.add,
    lambda dtype: 0,
    NUMBER,
    "the sum",
    accumulates=True,
    combined="sum",
    jvp=_sum_jvp,
    transpose=_sum_transpose,
)
reduce_prod = _declare(
    "reduce_prod",
    np.multiply,
    hlo.multiply,
    lambda dtype: 1,
    NUMBER,
    "the product",
    accumulates=True,
    jvp=_prod_jvp,
    unsupported={"transpose": _NOT_LINEAR},
)
reduce_max = _declare(
    "reduce_max",
    np.maximum,
    build_maximum,
    least,
    ANY,
    "the largest element (NaN if there is one)",
    combined="max",
    jvp=_extremum_jvp,
    unsupported={"transpose": _NOT_LINEAR},
)
reduce_min = _declare(
    "reduce_min",
    np.minimum,
    build_minimum,
    greatest,
    ANY,
    "the smallest element (NaN if there is one)",
    combined="min",
    jvp=_extremum_jvp,
    unsupported={"transpose": _NOT_LINEAR},
)
reduce_and = _declare(
    "reduce_and",
    np.bitwise_and,
    hlo.and_,
    all_ones,
    BITS,
    "their bitwise and",
    combined="and",
    jvp=zero_tangent,
    unsupported={"transpose": _NOT_LINEAR},
)
reduce_or = _declare(
    "reduce_or",
    np.bitwise_or,
    hlo.or_,
    lambda dtype: 0,
    BITS,
    "their bitwise or",
    combined="or",
    jvp=zero_tangent,
    unsupported={"transpose": _NOT_LINEAR},
)
reduce_xor = _declare(
    "reduce_xor",
    np.bitwise_xor,
    hlo.xor,
    lambda dtype: 0,
    BITS,
    "their bitwise exclusive or",
    jvp=zero_tangent,
    unsupported={"transpose": _NOT_LINEAR},
)
