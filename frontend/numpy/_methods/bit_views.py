"""Reinterpretation of the bits of arrays: `view` and `byteswap`."""

from __future__ import annotations

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.ops.elementwise.conversion import bitcast_convert_type, complex_
from axir.dialect.ops.shape.rearranging import reshape, rev
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import constant, dtype_argument
from axir.numpy._arrays.scalar_types import astype
from axir.numpy._elementwise import logic


def view(self: Value, dtype: DTypeLike = None, type: None = None) -> Value:
    """Reinterprets the bits as another dtype; the last axis grows or shrinks with its width."""
    if type is not None:
        raise ParameterError(
            f"Array.view: type={type!r}, but arrays have one class.", "Leave the argument out."
        )
    if dtype is None:
        return self
    new = dtype_argument("ndarray.view", dtype)
    if dtypes.bool_ in (self.dtype, new):
        if self.dtype == new:
            return self
        if new == dtypes.bool_:
            byte = view(self, dtypes.uint8)
            return logic.not_equal(byte, constant(0, dtypes.uint8))
        return view(astype(self, dtypes.uint8), new)
    if dtypes.is_complex(self.dtype) != dtypes.is_complex(new):
        raise DTypeError(f"An array of {self.dtype} cannot be viewed as {new}.")
    old_size, new_size = self.dtype.itemsize, new.itemsize
    if old_size == new_size:
        return bitcast_convert_type(self, new)
    if not self.ndim or (self.shape[-1] * old_size) % new_size:
        raise ShapeError(
            f"{self.type} cannot be viewed as {new}: the size of its last axis in bytes must be a "
            f"multiple of {new_size}."
        )
    last = self.shape[-1] * old_size // new_size
    if old_size > new_size:
        return reshape(bitcast_convert_type(self, new), (*self.shape[:-1], last))
    grouped = (*self.shape[:-1], last, new_size // old_size)
    return bitcast_convert_type(reshape(self, grouped), new)


def byteswap(self: Value) -> Value:
    """Returns an array of the same dtype with the bytes of each element in reverse.

    The parts of complex elements are reversed one by one, as NumPy does.

    >>> import axir.numpy as jnp
    >>> jnp.arange(3).byteswap()
    Array([       0, 16777216, 33554432], dtype=int32)
    """
    if dtypes.is_complex(self.dtype):
        return complex_(byteswap(self.real), byteswap(self.imag))
    if self.dtype.itemsize == 1:
        return self.copy()
    octets = bitcast_convert_type(self, dtypes.uint8)
    return bitcast_convert_type(rev(octets, (self.ndim,)), self.dtype)
