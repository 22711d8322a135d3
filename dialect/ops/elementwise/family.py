"""The elementwise family: the rules that all elementwise ops share.

An elementwise op needs `evaluate`, `lower`, its domain and its derivatives; the family provides
shape inference, broadcasting, batching, and the bookkeeping of differentiation. The ops themselves
stand in `arithmetic.py`, `comparison.py` and `transcendental.py`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import (
    AnyDtype,
    DTypeLike,
    HostArray,
    Returning,
    Scalar,
    UserFunction,
    UserObject,
)
from axir.dialect.core.array import Array, ConcreteArray, as_value, scalar
from axir.dialect.core.errors import DTypeError, ParameterError, check_accuracy
from axir.dialect.core.extended_dtypes import keys_of
from axir.dialect.core.late_modules import scipy_special as library
from axir.dialect.core.symbolic_dims import is_open
from axir.dialect.core.symbolic_zeros import UndefinedPrimal, Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.later_ops import later
from axir.dialect.program.described_arrays import note_computed
from axir.dialect.program.dimensions import position_wise
from axir.dialect.program.function_rules import LoweringContext, LowerRule
from axir.dialect.program.op_table import Traceable, declare, name_parameters, traceable
from axir.dialect.program.operation import Sample, Unsupported
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import (
    BatchRule,
    Cotangent,
    HostArrays,
    JvpRule,
    MlirValues,
    Operand,
    ResultAxes,
    Results,
    Rule,
    Tangent,
    Tangents,
    TransposeOperand,
    TransposeRule,
    Value,
)

from .operand_shapes import align, broadcast_shape, broadcast_to, unbroadcast
from .samples import USUAL, Sampling

BOOL = (dtypes.bool_,)
INTEGER = (*dtypes.SIGNED, *dtypes.UNSIGNED)
BITS = (*BOOL, *INTEGER)
FLOAT = dtypes.FLOATS
COMPLEX = dtypes.COMPLEXES
INEXACT = (*FLOAT, *COMPLEX)
REAL = (*INTEGER, *FLOAT)
NUMBER = (*INTEGER, *INEXACT)
ORDERED = (*BITS, *FLOAT)
ANY = (*BITS, *INEXACT)

# Float operands (by number) in which an op of this name has no derivative.
UNDIFFERENTIABLE: dict[str, set[int]] = {}


_PYTHON_SCALARS = (bool, int, float, complex)
_DOCUMENTATION = "Applies the elementwise primitive `{}`."


@dataclass(frozen=True)
class Signature:
    """The operands and the result of an elementwise op.

    Attributes:
        arity: Number of operands.
        domain: dtypes that it takes.
        result: From the dtype of the operands to the dtype of the result; the same by default. A
            bool result is never weak.
    """

    arity: int
    domain: Sequence[np.dtype]
    result: Callable[[np.dtype], np.dtype] | None = None


_OPERANDS = {1: ("x",), 2: ("lhs", "rhs"), 3: ("x", "y", "z"), 4: ("x", "y", "z", "w")}


@functools.cache
def _python_signature(arity: int) -> inspect.Signature:
    """Returns the signature for introspection, in place of the shared `*operands`."""
    operands = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY, annotation=ShapedArray)
        for name in _OPERANDS[arity]
    ]
    params = inspect.Parameter("params", inspect.Parameter.VAR_KEYWORD)
    return inspect.Signature([*operands, params], return_annotation=ShapedArray)


def _infer(primitive: Primitive, signature: Signature) -> Callable[..., ShapedArray]:
    name, arity, domain = primitive.name, signature.arity, signature.domain
    parameters = primitive.parameters or {}
    allowed = frozenset(domain)

    def infer(*types: ShapedArray, **params: object) -> ShapedArray:
        if len(types) != arity or params.keys() != parameters.keys():
            raise ParameterError(
                f"{name} takes {arity} operands and parameters ({', '.join(parameters)}), but got "
                f"{len(types)} operands and ({', '.join(params)})."
            )
        dtype = types[0].dtype
        if any(t.dtype != dtype for t in types):
            raise DTypeError(
                f"{name} requires operands of equal dtype, but got "
                f"{' and '.join(str(t) for t in types)}.",
                "Cast with x.astype(dtype); the functions of axir.numpy promote by themselves.",
            )
        if dtype not in allowed and not (primitive.takes_keys and dtypes.is_key(dtype)):
            raise DTypeError(
                f"{name} does not accept {dtype}; it takes {', '.join(map(str, domain))}.",
                "Cast with x.astype(dtype).",
            )
        shape = broadcast_shape(name, types)
        out = dtype if signature.result is None else signature.result(dtype)
        is_weak = out != dtypes.bool_ and all(t.weak_type for t in types)
        return ShapedArray(shape, out, is_weak)

    infer.__signature__ = _python_signature(arity)  # type: ignore[attr-defined]
    return infer


@overload
def add_tangents(x: Value, y: Tangent | None) -> Value: ...
@overload
def add_tangents(x: Zero | None, y: Value) -> Value: ...
@overload
def add_tangents(x: Zero | None, y: Zero) -> Zero: ...
def add_tangents(x: Tangent | None, y: Tangent | None) -> Tangent | None:
    """Adds two tangents or cotangents; each may be a symbolic zero or None."""
    if x is None or type(x) is Zero:
        return y if y is not None else x
    if y is None or type(y) is Zero:
        return x
    return later.add(x, y)


def instantiate(tangent: Tangent) -> Value:
    """Turns a symbolic zero into an array of zeros; other values stay."""
    if type(tangent) is not Zero:
        return tangent
    return full(tangent.aval.shape, 0, tangent.aval.dtype)


def full(shape: tuple[int, ...], value: Operand, dtype: AnyDtype) -> Array:
    """Returns a concrete array filled with a value, taking the memory of one element.

    All words of random keys get the value. With symbolic dimensions the result is an op that fills
    an array.
    """
    if is_open(shape):
        return later.broadcast_in_dim(full((), value, dtype), shape, ())
    if dtype == dtypes.float0:
        return ConcreteArray(ShapedArray(shape, dtype), np.zeros(shape, dtype))
    if dtypes.is_key(dtype):
        element = keys_of(np.full(dtype.impl.key_shape, value, np.uint32), dtype)
        return ConcreteArray(ShapedArray(shape, dtype), np.broadcast_to(element, shape))
    host = np.broadcast_to(np.asarray(value).astype(dtype), shape)
    return note_computed(ConcreteArray(ShapedArray(shape, dtype), host))


def zero_tangent(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
) -> Tangents:
    """Returns no tangent: the derivative is zero wherever it exists."""
    return Zero(out.aval.to_tangent_aval())


def _jvp(rules: Sequence[Returning[Value] | None]) -> JvpRule:
    def jvp(
        primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
    ) -> Tangents:
        total: Tangent | None = None
        for rule, tangent in zip(rules, tangents, strict=True):
            if rule is not None and type(tangent) is not Zero:
                total = add_tangents(total, rule(tangent, out, *primals, **params))
        if total is None or type(total) is Zero:
            return Zero(out.aval.to_tangent_aval())
        return broadcast_to(total, out.shape)

    return jvp


def _transpose(rules: Sequence[Returning[Value] | None]) -> TransposeRule:
    def transpose(
        cotangent: Value, *operands: TransposeOperand, **params: object
    ) -> Sequence[Cotangent | None]:
        return [
            unbroadcast(rule(cotangent, *operands, **params), operand)
            if type(operand) is UndefinedPrimal and rule is not None
            else None
            for rule, operand in zip(rules, operands, strict=True)
        ]

    return transpose


def batch_elementwise(primitive: Primitive) -> BatchRule:
    """Returns the batching rule: align the batch axes, then apply the op itself."""

    def batch(
        operands: Sequence[Value], axes: Sequence[int | None], **params: object
    ) -> tuple[Results, ResultAxes]:
        aligned, axis = align(operands, axes)
        return primitive.bind(*aligned, **params), axis

    return batch


def _lower(build: Callable[..., object]) -> LowerRule:
    def lower(context: LoweringContext, *values: ir.Value, **params: object) -> MlirValues:
        shape = context.types_out[0].shape
        return build(*hlo.broadcast_operands(values, shape), **params)

    return lower


def elementwise(
    name: str,
    evaluate: Callable[..., object],
    lower: Callable[..., object],
    signature: Signature,
    *,
    jvp: Sequence[Callable[..., Value] | None] | None = None,
    transpose: Sequence[Callable[..., Value] | None] | None = None,
    samples: Sampling | Callable[[], list[Sample]] = USUAL,
    **rules: Rule,
) -> Primitive:
    """Declares an elementwise primitive.

    Args:
        name: Its name in the table.
        evaluate: NumPy function of the operands.
        lower: StableHLO builder of operands of equal shape.
        signature: Its operands and result.
        jvp: For each operand, `(tangent, out, *primals) -> tangent of the result`; None for an
            operand on which the result does not depend smoothly. Without it the derivative is zero.
        transpose: For each operand, `(cotangent, *operands) -> cotangent`; None for an operand in
            which the op is not linear.
        samples: How to draw the samples, or the rule itself.
        **rules: Further arguments of `declare`.
    """
    if isinstance(samples, Sampling):
        samples = functools.partial(samples.draw, signature.arity, signature.domain)
    primitive = declare(
        name,
        evaluate=evaluate,
        jvp=_jvp(jvp) if jvp else zero_tangent,
        transpose=_transpose(transpose)
        if transpose
        else Unsupported("transpose", name, f"{name} is not linear in any operand."),
        lower=_lower(lower),
        samples=samples,
        dimensions=position_wise,
        **rules,
    )
    primitive.infer = _infer(primitive, signature)
    primitive.batch = batch_elementwise(primitive)
    return primitive


def unary(
    name: str,
    evaluate: Callable[..., object],
    lower: Callable[..., object],
    domain: Sequence[np.dtype],
    *,
    result: Callable[[np.dtype], np.dtype] | None = None,
    has_accuracy: bool = False,
    **rules: Rule,
) -> Traceable:
    """Declares a unary elementwise primitive and returns its traceable function.

    Args:
        name: Its name.
        evaluate, lower: As in `elementwise`.
        domain, result: As in `Signature`.
        has_accuracy: Whether the function takes `accuracy`; it has a single accuracy.
        **rules: As in `elementwise`.
    """
    primitive = elementwise(name, evaluate, lower, Signature(1, domain, result), **rules)
    bind = primitive.bind

    def apply(x: Operand) -> Value:
        return bind(x)

    def apply_accurately(x: Operand, *, accuracy: object = None) -> Value:
        check_accuracy(name, accuracy)
        return bind(x)

    function = apply_accurately if has_accuracy else apply
    return traceable(function, primitive, _DOCUMENTATION.format(name))


def binary(
    name: str,
    evaluate: Callable[..., object],
    lower: Callable[..., object],
    domain: Sequence[np.dtype],
    *,
    result: Callable[[np.dtype], np.dtype] | None = None,
    operands: tuple[str, str] = ("x", "y"),
    has_out_dtype: bool = False,
    **rules: Rule,
) -> Traceable:
    """Declares a binary elementwise primitive and returns its traceable function.

    A Python scalar takes the dtype of the other operand.

    Args:
        name: Its name.
        evaluate, lower: As in `elementwise`.
        domain, result: As in `Signature`.
        operands: Names of the function's parameters.
        has_out_dtype: Whether the function takes `out_dtype`, to which operands are converted.
        **rules: As in `elementwise`.
    """
    primitive = elementwise(name, evaluate, lower, Signature(2, domain, result), **rules)
    bind = primitive.bind

    def apply(x: Operand, y: Operand) -> Value:
        if type(x) in _PYTHON_SCALARS or type(y) in _PYTHON_SCALARS:
            x, y = match_scalars(x, y)
        return bind(x, y)

    def apply_in(x: Operand, y: Operand, *, out_dtype: DTypeLike = None) -> Value:
        if type(x) in _PYTHON_SCALARS or type(y) in _PYTHON_SCALARS:
            x, y = match_scalars(x, y)
        if out_dtype is not None:
            dtype = dtypes.canonicalize_dtype(out_dtype)
            x, y = (later.convert_element_type(value, dtype) for value in (x, y))
        return bind(x, y)

    function = apply_in if has_out_dtype else apply
    return traceable(name_parameters(function, *operands), primitive, _DOCUMENTATION.format(name))


def match_scalars(*operands: UserObject) -> list[Operand]:
    """Gives Python scalars the dtype of the array operands beside them."""
    dtype = next((as_value(x).dtype for x in operands if type(x) not in _PYTHON_SCALARS), None)
    if dtype is None:
        dtype = dtypes.promote([(dtypes.scalar_dtype(x), type(x) is not bool) for x in operands])[0]
    return [_fitting_scalar(x, dtype) if type(x) in _PYTHON_SCALARS else x for x in operands]


_FITS = {bool: "biufc", int: "iufc", float: "fc", complex: "c"}


def _fitting_scalar(value: Scalar, dtype: np.dtype) -> Array:
    if dtypes.kind(dtype) not in _FITS[type(value)]:
        raise DTypeError(
            f"Python scalar {value!r} does not fit an operand of dtype {dtype}.",
            "Cast the array with x.astype(dtype); the functions of axir.numpy promote.",
        )
    return scalar(value, dtype, weak_type=dtype != dtypes.bool_)


def is_constant(value: Value, number: float) -> bool:
    """Tells whether a value is a known scalar equal to a number, with the same sign."""
    if type(value) is not ConcreteArray or value.shape or dtypes.is_complex(value.dtype):
        return False
    known = float(value.host())
    return known == number and np.signbit(known) == np.signbit(number)


def scipy_special(name: str) -> UserFunction:
    """Returns the evaluator of SciPy's special function of a name."""
    return via_float32(lambda *operands: scipy_function(name)(*operands))


@functools.cache
def scipy_function(name: str) -> Callable[..., HostArray]:
    """Returns a function of `scipy.special`."""
    return getattr(library, name)


def via_float32(function: Callable[..., object]) -> Callable[..., object]:
    """Evaluates 16-bit floats in float32, so that they are rounded once instead of at each step."""

    def evaluate(*operands: np.ndarray) -> HostArrays:
        dtype = operands[0].dtype
        if dtype.itemsize == 2:
            return np.asarray(function(*[x.astype(np.float32) for x in operands])).astype(dtype)
        return function(*operands)

    return evaluate
