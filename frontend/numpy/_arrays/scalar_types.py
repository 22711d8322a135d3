"""dtypes as users write them, such as `jnp.float32`, and functions that query dtypes.

Each scalar type is a class that serves as a dtype, and as a function that converts to it.

>>> import axir.numpy as jnp
>>> jnp.float32(2), jnp.dtype(jnp.bfloat16)
(Array(2., dtype=float32), dtype(bfloat16))
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import Array, ArrayLike, ConcreteArray
from axir.dialect.core.errors import DTypeError, ParameterError
from axir.dialect.core.extended_dtypes import extended, prng_key
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.checks import canonical_axis
from axir.numpy._arguments.promotion import (
    SCALARS,
    array_argument,
    dtype_and_weakness,
    dtype_argument,
)

from .creation import array, asarray, converted, to_device

__all__ = [
    "astype", "bfloat16", "bool_", "can_cast", "cdouble", "complex64", "complex128", "complex_",
    "complexfloating", "csingle", "double", "dtype", "finfo", "float4_e2m1fn", "float6_e2m3fn",
    "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float16", "float32",
    "float64", "float_", "floating", "generic", "iinfo", "inexact", "int2", "int4", "int8", "int16",
    "int32", "int64", "int_", "integer", "iscomplexobj", "isdtype", "isrealobj", "isscalar",
    "issubdtype", "ndim", "number", "promote_types", "result_type", "shape", "signedinteger",
    "single", "size", "uint", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64",
    "unsignedinteger",
]  # fmt: skip


class ScalarType(type):
    """The class of scalar types; its instances equal the dtypes they stand for."""

    dtype: np.dtype

    def __call__(cls, x: ArrayLike) -> Value:
        """Converts a value to an array of the dtype."""
        return asarray(x, dtype=dtypes.canonicalize_dtype(cls.dtype))

    def __eq__(cls, other: object) -> bool:
        if cls is other:
            return True
        if id(other) in _NO_DTYPES:
            return False  # older versions of NumPy take np.floating for float64, and warn
        try:
            return cls.dtype == np.dtype(other)  # type: ignore[call-overload]
        except TypeError:
            return False

    def __ne__(cls, other: object) -> bool:
        return not cls == other

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.dtype.type)


def _scalar_type(dtype: np.dtype, name: str | None = None) -> ScalarType:
    documentation = f"Scalar type of dtype {dtype}: a dtype, and a function that converts to it."
    namespace = {"dtype": dtype, "__doc__": documentation, "__module__": "axir.numpy"}
    return ScalarType(name or dtype.name, (), namespace)


bool_ = _scalar_type(dtypes.bool_, "bool")
int8, int16, int32, int64 = (_scalar_type(dtype) for dtype in dtypes.SIGNED)
uint8, uint16, uint32, uint64 = (_scalar_type(dtype) for dtype in dtypes.UNSIGNED)
bfloat16, float16, float32, float64 = (_scalar_type(dtype) for dtype in dtypes.FLOATS)
complex64, complex128 = (_scalar_type(dtype) for dtype in dtypes.COMPLEXES)
int2, int4 = (_scalar_type(dtype) for dtype in dtypes.NARROW_SIGNED)
uint2, uint4 = (_scalar_type(dtype) for dtype in dtypes.NARROW_UNSIGNED)
(
    float4_e2m1fn, float6_e2m3fn, float6_e3m2fn, float8_e3m4, float8_e4m3, float8_e4m3b11fnuz,
    float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu,
) = (_scalar_type(dtype) for dtype in dtypes.NARROW_FLOATS)  # fmt: skip
single, double, csingle, cdouble = float32, float64, complex64, complex128
int_, uint, float_, complex_ = int64, uint64, float64, complex128

dtype = np.dtype
iinfo = ml_dtypes.iinfo
finfo = ml_dtypes.finfo

generic, number, inexact = np.generic, np.number, np.inexact
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
floating, complexfloating = np.floating, np.complexfloating


def result_type(*args: object) -> np.dtype:
    """Returns the dtype that arrays, scalars and dtypes promote to.

    Args:
        *args: Arrays, Python scalars (which are weak), dtypes, or `int`, `float`, `complex` (weak
            dtypes).

    >>> import axir.numpy as jnp
    >>> jnp.result_type(jnp.int8(1), 2.5)
    dtype('float32')
    """
    if not args:
        raise ParameterError("jnp.result_type: at least one array or dtype is needed.")
    result, _ = dtypes.promote([_pair(arg) for arg in args])
    return dtypes.canonicalize_dtype(result)


def _pair(arg: object) -> tuple[np.dtype, bool]:
    if type(arg) in SCALARS or type(arg) is ConcreteArray or type(arg) is Tracer:
        return dtype_and_weakness(arg)
    if isinstance(arg, type) and arg in (int, float, complex):
        return dtypes.canonicalize_dtype(arg), True
    if isinstance(arg, (type, str, np.dtype)) or dtypes.is_key(arg):
        return dtypes.canonicalize_dtype(arg), False
    if hasattr(arg, "dtype") and hasattr(arg, "shape"):
        return dtypes.canonicalize_dtype(arg.dtype), bool(getattr(arg, "weak_type", False))
    return dtype_and_weakness(array_argument("result_type", arg))


def promote_types(a: UserObject, b: UserObject) -> np.dtype:
    """Returns the dtype that two dtypes promote to.

    >>> import axir.numpy as jnp
    >>> jnp.promote_types(jnp.int32, jnp.float16)
    dtype('float16')
    """
    return dtypes.promote_types(a, b)


_CATEGORIES = {
    np.generic: "biufc", np.number: "iufc", np.inexact: "fc", np.integer: "iu",
    np.signedinteger: "i", np.unsignedinteger: "u", np.floating: "f", np.complexfloating: "c",
}  # fmt: skip
_EXTENDED = (extended, prng_key)
_NO_DTYPES = frozenset(map(id, (*_CATEGORIES, *_EXTENDED)))


def issubdtype(arg1: object, arg2: UserObject) -> bool:
    """Tells whether a dtype belongs to a category, or is a given dtype.

    Args:
        arg1: A dtype or category.
        arg2: A dtype, or a category such as `jnp.floating`, to which bfloat16 belongs too, or
            `axir.dtypes.prng_key`, which contains only the dtypes of typed random keys.

    >>> import axir.numpy as jnp
    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating)
    True
    """
    if dtypes.is_key(arg1):
        return arg2 is np.generic or arg2 == arg1 or (arg2 in _EXTENDED)
    if arg2 in _EXTENDED or arg1 in _EXTENDED:
        return arg1 in _EXTENDED and (arg2 is np.generic or issubclass(arg1, arg2))
    if arg1 in _CATEGORIES:
        return arg2 in _CATEGORIES and issubclass(arg1, arg2)
    first = dtypes.as_dtype(arg1)
    if arg2 in _CATEGORIES:
        return dtypes.kind(first) in _CATEGORIES[arg2]
    return first == dtypes.as_dtype(arg2)


_KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu",
    "real floating": "f", "complex floating": "c", "numeric": "iufc",
}  # fmt: skip


def isdtype(dtype: DTypeLike, kind: object) -> bool:
    """Tells whether a dtype is of a kind of the array API standard.

    Args:
        dtype: The dtype.
        kind: 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating',
            'complex floating', 'numeric', a dtype, or a tuple of these; one match suffices.

    >>> import axir.numpy as jnp
    >>> jnp.isdtype(jnp.int8, ("bool", "integral"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return dtypes.kind(dtypes.as_dtype(dtype)) in _KINDS[kind]
    try:
        return dtypes.as_dtype(dtype) == dtypes.as_dtype(kind)
    except DTypeError:
        raise ParameterError(
            f"jnp.isdtype: {kind!r} is neither a kind nor a dtype.",
            f"Kinds are {', '.join(map(repr, _KINDS))}.",
        ) from None


def can_cast(from_: object, to: object, casting: str = "safe") -> bool:
    """Tells whether NumPy's rules allow a conversion; `casting` as in `numpy.can_cast`."""
    source = from_.dtype if isinstance(from_, Array) else dtypes.as_dtype(from_)
    return bool(np.can_cast(source, dtypes.as_dtype(to), casting=casting))  # type: ignore[arg-type]


def astype(
    x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: object = None
) -> Value:
    """Returns an array converted to another dtype.

    Floats become integers by rounding toward zero, and stay in the integer's range; complex numbers
    become real by dropping the imaginary part. As bool, a nonzero value is True.

    Args:
        x: Array or scalar.
        dtype: The dtype; `None` is the default float dtype.
        copy: Whether to copy even if `x` has the dtype.
        device: Where to put the result.

    >>> import axir.numpy as jnp
    >>> jnp.astype(jnp.array([1.7, -1.7]), int)
    Array([ 1, -1], dtype=int32)
    """
    x = array_argument("astype", x)
    result = converted(x, dtype_argument("astype", float if dtype is None else dtype))
    if copy and result is x:
        result = array(x, copy=True)
    return to_device(result, device)


def iscomplexobj(x: ArrayLike) -> bool:
    """Tells whether the dtype of a value is complex."""
    return dtypes.is_complex(result_type(x)) if x is not None else False


def isrealobj(x: ArrayLike) -> bool:
    """Tells whether the dtype of a value is not complex."""
    return not iscomplexobj(x)


def isscalar(element: ArrayLike) -> bool:
    """Tells whether a value is a scalar: a Python or NumPy number, or an array of rank 0."""
    if isinstance(element, Array):
        return element.ndim == 0
    return bool(np.isscalar(element)) and not isinstance(element, (str, bytes))


def shape(a: ArrayLike) -> tuple[int, ...]:
    """Returns the shape of an array, scalar or nested list."""
    return tuple(a.shape) if hasattr(a, "shape") else np.shape(a)


def ndim(a: ArrayLike) -> int:
    """Returns the number of axes of an array, scalar or nested list."""
    return len(shape(a))


def size(a: ArrayLike, axis: int | tuple[int, ...] | None = None) -> int:
    """Returns the number of elements of an array, scalar or nested list, or along axes."""
    extents = shape(a)
    if axis is None:
        chosen = extents
    else:
        axes = axis if isinstance(axis, tuple) else (axis,)
        chosen = tuple(extents[canonical_axis("size", one, len(extents))] for one in axes)
    result = 1
    for extent in chosen:
        result *= extent
    return result
