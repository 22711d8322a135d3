"""dtypes and shapes as types of C++ and C, and as safetensors calls them."""

from __future__ import annotations

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.types import ShapedArray

from .names import NAMESPACE

_CPP = {
    dtypes.bool_: "bool",
    **{np.dtype(f"int{bits}"): f"std::int{bits}_t" for bits in (8, 16, 32, 64)},
    **{np.dtype(f"uint{bits}"): f"std::uint{bits}_t" for bits in (8, 16, 32, 64)},
    dtypes.float16: f"{NAMESPACE}::float16",
    dtypes.bfloat16: f"{NAMESPACE}::bfloat16",
    dtypes.float32: "float",
    dtypes.float64: "double",
    dtypes.complex64: "std::complex<float>",
    dtypes.complex128: "std::complex<double>",
}
# C has no half type, and not all compilers have complex numbers: bits and pairs replace them.
_C = {
    **{dtype: text.removeprefix("std::") for dtype, text in _CPP.items()},
    dtypes.float16: "uint16_t",
    dtypes.bfloat16: "uint16_t",
    dtypes.complex64: "float",
    dtypes.complex128: "double",
}
_STORED = {
    dtypes.bool_: "BOOL",
    **{np.dtype(f"int{bits}"): f"I{bits}" for bits in (8, 16, 32, 64)},
    **{np.dtype(f"uint{bits}"): f"U{bits}" for bits in (8, 16, 32, 64)},
    dtypes.float16: "F16",
    dtypes.bfloat16: "BF16",
    dtypes.float32: "F32",
    dtypes.float64: "F64",
    # safetensors has no complex numbers: they become pairs, along one more axis.
    dtypes.complex64: "F32",
    dtypes.complex128: "F64",
}


def element(array: ShapedArray) -> str:
    """Returns the C++ type of an array's elements."""
    return _CPP[array.dtype]


def c_element(array: ShapedArray) -> str:
    """Returns the C type of an array's elements; a complex number is two elements."""
    return _C[array.dtype]


def view(array: ShapedArray, is_const: bool, has_rows: bool = False) -> str:
    """Returns the type of a view of an array, or of any number of such arrays as rows.

    >>> view(ShapedArray((2, 3), np.float32), True)
    'axir::v3::View<const float, 2, 3>'
    """
    arguments = [f"{'const ' if is_const else ''}{element(array)}"]
    arguments += [f"{NAMESPACE}::dynamic_extent"] * has_rows
    return f"{NAMESPACE}::View<{', '.join([*arguments, *map(str, array.shape)])}>"


def byte_size(array: ShapedArray) -> int:
    """Returns how many bytes the elements take."""
    return array.size * array.dtype.itemsize


def stored_dtype(array: ShapedArray) -> str:
    """Returns the name of the dtype in the safetensors format."""
    return _STORED[array.dtype]


def stored_shape(array: ShapedArray) -> tuple[int, ...]:
    """Returns the array's shape in safetensors."""
    return (*array.shape, 2) if array.dtype.kind == "c" else tuple(array.shape)


def described(array: ShapedArray, rows: str | None = None) -> str:
    """Returns dtype and shape for comments.

    Args:
        array: The array, or one row of it.
        rows: The name of the number of rows.

    >>> described(ShapedArray((2, 3), np.float32)), described(ShapedArray((3,), np.float32), "b")
    ('float32[2,3]', 'float32[b,3]')
    """
    extents = [rows] if rows else []
    return f"{array.dtype}[{','.join([*extents, *map(str, array.shape)])}]"
