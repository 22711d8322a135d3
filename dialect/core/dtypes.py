"""dtypes: the list of them, their promotion, and the 64-bit switch.

The promotion lattice is JAX's: Python scalars are *weak* and take the dtype of the other operand;
integers never widen floats; bfloat16 and float16 meet in float32. Elsewhere: MLIR types
(`types.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

import ml_dtypes
import numpy as np

from .annotations import AnyDtype, Dtype, DTypeLike, Scalar, UserObject
from .config import config
from .context import is_written_by_user
from .errors import DTypeError, KeyPromotionError
from .extended_dtypes import KeyDtype, of_storage
from .state import state

bool_ = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(f"int{bits}") for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
float16, float32, float64 = (np.dtype(f"float{bits}") for bits in (16, 32, 64))
bfloat16 = np.dtype(ml_dtypes.bfloat16)
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")
# The tangent type of integers and booleans: carries no information.
float0 = np.dtype([("float0", np.void, 0)])

# Dtypes of fewer than 16 bits that arrays may have, but without arithmetic: operations widen them,
# and round the results (`dialect/program/narrow_elements.py`).
NARROW_SIGNED = tuple(np.dtype(getattr(ml_dtypes, f"int{bits}")) for bits in (2, 4))
NARROW_UNSIGNED = tuple(np.dtype(getattr(ml_dtypes, f"uint{bits}")) for bits in (2, 4))
NARROW_FLOATS = tuple(
    np.dtype(getattr(ml_dtypes, f"float{name}"))
    for name in (
        "4_e2m1fn", "6_e2m3fn", "6_e3m2fn", "8_e3m4", "8_e4m3", "8_e4m3b11fnuz", "8_e4m3fn",
        "8_e4m3fnuz", "8_e5m2", "8_e5m2fnuz", "8_e8m0fnu",
    )
)  # fmt: skip
NARROW = (*NARROW_SIGNED, *NARROW_UNSIGNED, *NARROW_FLOATS)

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
FLOATS = (bfloat16, float16, float32, float64)
COMPLEXES = (complex64, complex128)
ALL = (bool_, *SIGNED, *UNSIGNED, *FLOATS, *COMPLEXES)

_KIND = {bool_: "b", **dict.fromkeys(SIGNED, "i"), **dict.fromkeys(UNSIGNED, "u")}
_KIND |= {**dict.fromkeys(FLOATS, "f"), **dict.fromkeys(COMPLEXES, "c")}
_KIND |= {**dict.fromkeys(NARROW_SIGNED, "i"), **dict.fromkeys(NARROW_UNSIGNED, "u")}
_KIND |= dict.fromkeys(NARROW_FLOATS, "f")
_WIDE = {**dict.fromkeys(NARROW_SIGNED, int8), **dict.fromkeys(NARROW_UNSIGNED, uint8)}
_WIDE |= dict.fromkeys(NARROW_FLOATS, float32)

# Weak nodes of the lattice, named by the Python type they stand for.
_WEAK_NODE = {"i": int, "u": int, "f": float, "c": complex}
_Node: TypeAlias = Dtype | type
_EDGES: dict[_Node, tuple[_Node, ...]] = {
    bool_: (int,),
    int: (uint8, int8, *NARROW_SIGNED, *NARROW_UNSIGNED),
    uint8: (int16, uint16),
    uint16: (int32, uint32),
    uint32: (int64, uint64),
    int8: (int16,),
    int16: (int32,),
    int32: (int64,),
    uint64: (float,),
    int64: (float,),
    float: (bfloat16, float16, complex, *NARROW_FLOATS),
    bfloat16: (float32,),
    float16: (float32,),
    float32: (float64, complex64),
    float64: (complex128,),
    complex: (complex64,),
    complex64: (complex128,),
    complex128: (),
    **dict.fromkeys(NARROW, ()),  # they never widen implicitly
}


def _above(node: _Node) -> frozenset[_Node]:
    return frozenset({node}).union(*(_above(upper) for upper in _EDGES[node]))


_UPPER_BOUNDS = {node: _above(node) for node in _EDGES}
_PYTHON_DTYPES = {bool: bool_, int: int64, float: float64, complex: complex128}
_TRUNCATED = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}


def kind(dtype: Dtype) -> str:
    """Returns the kind of a dtype: b(ool), i(nt), u(int), f(loat), c(omplex) or k(ey)."""
    try:
        return _KIND[dtype]
    except KeyError:
        if of_storage(dtype) is not None:
            return "k"
        raise DTypeError(
            f"dtype {dtype} is not one that axir computes with.",
            "Use bool, int8-int64, uint8-uint64, float16, bfloat16, float32, float64, complex64, "
            "complex128, or one of fewer bits such as float8_e4m3fn and int4.",
        ) from None


def is_narrow(dtype: AnyDtype) -> bool:
    """Tells whether the dtype is one that operations widen, such as float8_e5m2 or int4."""
    return dtype in _WIDE


def wide(dtype: Dtype) -> Dtype:
    """Returns the dtype in which operations compute with elements of a dtype: mostly itself.

    >>> wide(np.dtype("int4")), wide(np.dtype("float16"))
    (dtype('int8'), dtype('float16'))
    """
    return _WIDE.get(dtype, dtype)


def is_key(dtype: object) -> bool:
    """Tells whether the dtype is a dtype of typed random keys."""
    return type(dtype) is KeyDtype


def storage(dtype: AnyDtype) -> Dtype:
    """Returns the dtype of the NumPy arrays that hold elements of a dtype."""
    return dtype.storage if type(dtype) is KeyDtype else dtype


def is_inexact(dtype: Dtype) -> bool:
    """Tells whether the dtype is a float or complex type, and so differentiable."""
    return _KIND.get(dtype) in ("f", "c")


def is_float(dtype: Dtype) -> bool:
    """Tells whether the dtype is a real floating-point type."""
    return _KIND.get(dtype) == "f"


def is_complex(dtype: Dtype) -> bool:
    """Tells whether the dtype is a complex type."""
    return _KIND.get(dtype) == "c"


def is_integer(dtype: Dtype) -> bool:
    """Tells whether the dtype is a signed or unsigned integer type."""
    return _KIND.get(dtype) in ("i", "u")


def is_unsigned(dtype: Dtype) -> bool:
    """Tells whether the dtype is an unsigned integer type."""
    return _KIND.get(dtype) == "u"


_REAL_OF = {complex64: float32, complex128: float64}
_COMPLEX_OF: dict[Dtype, Dtype] = {
    float32: complex64,
    float64: complex128,
    float16: complex64,
    bfloat16: complex64,
    **dict.fromkeys(NARROW_FLOATS, complex64),
}


def real_dtype(dtype: Dtype) -> Dtype:
    """Returns the dtype of the real part."""
    return _REAL_OF.get(dtype, dtype)


def complex_dtype(dtype: Dtype) -> Dtype:
    """Returns the complex dtype with parts of (at least) this dtype."""
    return _COMPLEX_OF.get(dtype, dtype)


def as_dtype(dtype: UserObject) -> Dtype:
    """Turns a user's notation of a dtype (class, name, Python type) into a `numpy.dtype`."""
    if type(dtype) is type and dtype in _PYTHON_DTYPES:
        return _PYTHON_DTYPES[dtype]
    if type(dtype) is KeyDtype:
        return dtype  # type: ignore[return-value]
    try:
        result = np.dtype(dtype)
    except TypeError:
        raise DTypeError(
            f"{dtype!r} is not a dtype.", "Pass a NumPy dtype, its name, or a Python scalar type."
        ) from None
    if result != float0 and result not in _KIND:
        keys = of_storage(result)
        if keys is not None:
            return keys  # type: ignore[return-value]
        kind(result)
    return result


def canonicalize_dtype(dtype: object) -> Dtype:
    """Truncates 64-bit dtypes to 32 bits unless `jax_enable_x64` is on.

    It does not truncate in the rules of an operation that was recorded while the option was on.

    >>> canonicalize_dtype("float64")
    dtype('float32')
    """
    result = as_dtype(dtype)
    if config.jax_enable_x64 or result not in _TRUNCATED or _has_wide_origin():
        return result
    return _TRUNCATED[result]


def _has_wide_origin() -> bool:
    """Tells whether the op that a pass rewrites now has operands or results of 64 bits."""
    origin = state.origin
    if origin is None:
        return False
    values = (*origin.operands, *origin.results)
    return any(getattr(x.type, "dtype", None) in _TRUNCATED for x in values)


def scalar_dtype(value: Scalar) -> Dtype:
    """Returns the canonical dtype of a Python scalar (its type is weak, except for bool)."""
    dtype = _PYTHON_DTYPES.get(type(value))
    if dtype is None:
        for python_type in (bool, int, float, complex):
            if isinstance(value, python_type):
                dtype = _PYTHON_DTYPES[python_type]
                break
        else:
            raise DTypeError(f"{value!r} is not a Python scalar.")
    return dtype if config.jax_enable_x64 else _TRUNCATED.get(dtype, dtype)


@cache
def _join(nodes: frozenset[_Node]) -> _Node:
    bounds = frozenset.intersection(*(_UPPER_BOUNDS[node] for node in nodes))
    for node in bounds:
        if bounds <= _UPPER_BOUNDS[node]:
            return node
    names = ", ".join(sorted(getattr(node, "__name__", str(node)) for node in nodes))
    if any(node in _WIDE for node in nodes):
        raise DTypeError(
            f"{names} have no common dtype: floats and integers of so few bits do not widen by "
            "themselves.",
            "Convert with x.astype(dtype).",
        )
    raise DTypeError(f"{names} have no common dtype.")


@cache
def join(operands: frozenset[tuple[Dtype, bool]], enable_x64: bool) -> tuple[Dtype, bool]:
    """Joins (dtype, is weak) pairs in the lattice; returns the dtype and whether it is weak."""
    nodes = set()
    for dtype, is_weak in operands:
        if is_key(dtype):
            return _join_keys(operands)
        letter = kind(dtype)
        nodes.add(_WEAK_NODE[letter] if is_weak and letter != "b" else dtype)
    result: AnyDtype = _join(frozenset(nodes))
    is_weak = isinstance(result, type)
    if is_weak:
        # A weak result keeps the widest dtype among its weak operands of that kind.
        same = [d for d, weak in operands if weak and _WEAK_NODE.get(_KIND[d]) is result]
        result = max(same, key=lambda d: d.itemsize) if same else _PYTHON_DTYPES[result]
    if not enable_x64:
        result = _TRUNCATED.get(result, result)
    return result, is_weak


def _join_keys(operands: frozenset[tuple[Dtype, bool]]) -> tuple[Dtype, bool]:
    if len(operands) == 1:
        return next(iter(operands))
    raise KeyPromotionError(
        "Random keys do not promote: " + ", ".join(sorted(str(d) for d, _ in operands)) + ".",
        "random.wrap_key_data makes keys of words, and random.key_data words of keys.",
    )


def _strict_join(operands: frozenset[tuple[Dtype, bool]]) -> None:
    strong = {dtype for dtype, is_weak in operands if not is_weak}
    if len(strong) > 1 and is_written_by_user():
        raise DTypeError(
            "Strict dtype promotion does not allow to mix "
            + ", ".join(sorted(map(str, strong)))
            + ".",
            "Cast with x.astype(dtype), or set jax_numpy_dtype_promotion='standard'.",
        )


def promote(operands: Iterable[tuple[Dtype, bool]]) -> tuple[Dtype, bool]:
    """Promotes (dtype, is weak) pairs under the current configuration."""
    pairs = frozenset(operands)
    if config.jax_numpy_dtype_promotion == "strict":
        _strict_join(pairs)
    return join(pairs, config.jax_enable_x64)


def promote_types(first: DTypeLike, second: DTypeLike) -> Dtype:
    """Returns the dtype that two dtypes promote to.

    >>> promote_types("int32", "float16"), promote_types("bfloat16", "float16")
    (dtype('float16'), dtype('float32'))
    """
    pairs = frozenset(
        (as_dtype(d), isinstance(d, type) and d in (int, float, complex)) for d in (first, second)
    )
    return join(pairs, True)[0] if config.jax_enable_x64 else join(pairs, False)[0]
