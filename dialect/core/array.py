"""`Array`: the type of all arrays for users, and `ConcreteArray`: an array with known elements.

The other kind of array, a `Tracer`, stands in `dialect/program/tracer.py`. A concrete array is
immutable, on the host, on a device, or both. The host side is a NumPy array, the device side any
object with `to_numpy()`; each is made from the other at its first use. Operators and methods are
functions of `axir.numpy`. The frontend installs them on `Array`; this file does not know the
frontend.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np

from . import dtypes
from .annotations import (
    Dtype,
    DTypeLike,
    Foreign,
    HostArray,
    IndexLike,
    NestedNumbers,
    NumPyLike,
    Options,
    Scalar,
    UserObject,
)
from .config import config
from .errors import (
    DeletedArrayError,
    ImmutableArrayError,
    KeyConversionError,
    NonArrayArgumentError,
    RefArgumentError,
    ShapeError,
)
from .extended_dtypes import keys_of, words_of
from .host_arrays import contiguous, printable, writable_view
from .places import check_transfer, place_of_part
from .types import ShapedArray

if TYPE_CHECKING:
    from .array_interface import ArrayInterface as _Interface
else:
    _Interface = object


class DeviceBuffer(Protocol):
    """The interface that a device must offer to use its memory as an `Array`."""

    @property
    def device(self) -> Foreign:
        """The device that owns this memory."""
        ...

    @property
    def is_deleted(self) -> bool:
        """Whether the memory has been freed."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether the contents have been computed."""
        ...

    def to_numpy(self) -> HostArray:
        """Returns the contents as a read-only array."""
        ...

    def block_until_ready(self) -> object:
        """Waits until the contents have been computed."""
        ...

    def delete(self) -> None:
        """Frees the memory."""
        ...


class Array(_Interface):
    """An array: either of known elements, or a tracer, which represents one in a transformation.

    No object has exactly this class: `isinstance(x, axir.Array)` holds for both kinds, and
    `isinstance(x, axir.core.Tracer)` distinguishes them. `axir.numpy.array` makes arrays.

    Raises:
        TypeError: if it is called.

    >>> import axir, axir.numpy as jnp
    >>> isinstance(jnp.ones(2), axir.Array)
    True
    >>> axir.make_jaxpr(lambda x: x if isinstance(x, axir.Array) else -x)(1.0)
    { lambda ; a:f32[]. let in (a,) }
    """

    __slots__ = ()
    # The public module, because users read the names of types.
    __module__ = "axir"
    # NumPy's operators leave mixed expressions to ours.
    __array_priority__ = 100
    type: ShapedArray

    def __init__(self, *arguments: object, **options: object):
        raise TypeError("axir.Array has no constructor: make arrays with axir.numpy.array(...).")

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes."""
        return self.type.shape

    @property
    def dtype(self) -> Dtype:
        """dtype of the elements."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.type.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.type.size

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return self.type.size * self.type.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes."""
        return self.type.dtype.itemsize

    @property
    def weak_type(self) -> bool:
        """Whether the dtype came from a Python scalar and yields to others."""
        return self.type.weak_type

    @property
    def aval(self) -> ShapedArray:
        """The type: shape, dtype and weak type."""
        return self.type

    def __len__(self) -> int:
        if not self.type.shape:
            raise TypeError("len() of a scalar array: it has no axes.")
        return self.type.shape[0]

    def __setitem__(self, index: IndexLike, value: ArrayLike) -> None:
        raise ImmutableArrayError(
            "Arrays are immutable: item assignment is not possible.",
            "Instead of x[index] = y write x = x.at[index].set(y); "
            ".add, .multiply, .min and .max work likewise.",
        )


class Memories:
    """Which memories the arrays of this process may be in.

    Attributes:
        has_remote: Whether a device with separate memory exists. Before that, no op searches for
            such a device: the search would take a fifth of the time of a small op.
    """

    has_remote = False


ArrayLike: TypeAlias = Array | NumPyLike | bool | int | float | complex
"""What may stand where an array is expected: an array, a tracer, NumPy's own, a Python number."""

Positions: TypeAlias = Array | HostArray | Sequence[ArrayLike]
"""An index along each axis, which need not be known: an array of rank 1, or scalars."""


class ConcreteArray(Array):
    """An immutable array of known elements."""

    # `_sharding` is set only for arrays that were put on a mesh.
    __slots__ = ("__weakref__", "_buffer", "_device", "_host", "_sharding", "type")
    _sharding: Foreign
    _host: HostArray | None
    _buffer: DeviceBuffer | None

    def __init__(
        self,
        array_type: ShapedArray,
        host: HostArray | None,
        buffer: DeviceBuffer | None = None,
        device: Foreign = None,
    ):
        self.type = array_type
        self._host = host
        self._buffer = buffer
        # The device, or the devices of a mesh, that this array is committed to, or None.
        self._device = device

    def host(self) -> HostArray:
        """Returns the elements as a NumPy array that must not be written to."""
        host = self._host
        if host is None:
            self.check_alive()
            assert self._buffer is not None
            host = self._buffer.to_numpy()
            if dtypes.is_key(self.type.dtype):
                host = keys_of(host, self.type.dtype)
            elif host.dtype != self.type.dtype:  # elements of few bits, which devices keep in bytes
                host = host.view(self.type.dtype)
            self._host = host
        return host

    def check_alive(self) -> None:
        """Raises `DeletedArrayError` if the memory has been freed or donated."""
        if self.is_deleted():
            raise DeletedArrayError(
                f"This {self.type} array has been deleted or donated.",
                "Donated arguments cannot be used again: use the function's result, or drop "
                "donate_argnums.",
            )

    def _numbers(self) -> HostArray:
        """Returns the elements for uses as numbers, which random keys are not."""
        if dtypes.is_key(self.type.dtype):
            raise KeyConversionError(
                f"An array of random keys ({self.type}) has no numbers.",
                "axir.random.key_data returns the words of keys.",
            )
        return self.host()

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> HostArray:
        host = self._numbers()
        if dtype is not None and np.dtype(dtype) != host.dtype:
            return host.astype(dtype)
        if copy:
            return host.copy()
        view = host.view()
        view.flags.writeable = False
        return view

    def __buffer__(self, flags: int) -> memoryview:
        """Returns the elements as read-only, contiguous memory.

        Python calls it from 3.12 on; before, `memoryview(np.asarray(x))` gives the same.
        """
        if flags & _WRITABLE:
            raise BufferError("Arrays are immutable: their memory cannot be written to.")
        try:
            host: Foreign = contiguous(self._numbers())
            return memoryview(host).toreadonly()
        except ValueError:
            raise BufferError(
                f"Python's buffers have no elements of dtype {self.dtype}: take those of "
                "x.view(dtype) for an integer dtype of the same size."
            ) from None

    def __bytes__(self) -> bytes:
        return self.tobytes()

    def __dlpack__(self, **options: Options) -> Foreign:
        # NumPy exports only writable memory unless the consumer supports read-only tensors.
        return writable_view(contiguous(self._numbers())).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def block_until_ready(self) -> ConcreteArray:
        """Waits until the elements have been computed, and returns the array itself."""
        self.check_alive()
        if self._buffer is not None:
            self._buffer.block_until_ready()
        return self

    @property
    def remote_device(self) -> Foreign | None:
        """The device that the array is on, if the device has separate memory; else None.

        Ops on such arrays run on that device, and not in NumPy.
        """
        if not Memories.has_remote:
            return None
        device = self._device
        if device is None:
            if self._buffer is None:
                return None
            device = self._buffer.device
        return device if getattr(device, "is_remote", False) else None

    @property
    def committed(self) -> bool:
        """Whether computations on the array must run on its device."""
        return self._device is not None

    def delete(self) -> None:
        """Frees the memory; later uses raise `DeletedArrayError`."""
        if self._buffer is not None:
            self._buffer.delete()
        self._host = self._buffer = None

    def is_deleted(self) -> bool:
        """Tells whether the memory has been freed or donated."""
        return self._host is None and (self._buffer is None or self._buffer.is_deleted)

    def tolist(self) -> NestedNumbers:
        """Returns the elements as nested lists of Python scalars."""
        return self._numbers().tolist()

    def item(self, *index: int) -> UserObject:
        """Returns one element as a Python scalar."""
        return self._numbers().item(*index)

    def tobytes(self, order: Literal["C", "F", "A", "K"] | None = "C") -> bytes:
        """Returns the elements as bytes."""
        return self._numbers().tobytes(order)

    def __bool__(self) -> bool:
        return bool(self._numbers())

    def _scalar(self) -> UserObject:
        if self.size != 1:
            raise ShapeError(
                "Only scalar arrays can be converted to Python scalars, not one of type "
                f"{self.type}.",
                "Choose an element, x[0], or reduce the array; x.tolist() gives all of them.",
            )
        return self._numbers()[()] if self.ndim == 0 else self._numbers().item()

    def __int__(self) -> int:
        return int(self._scalar())

    def __float__(self) -> float:
        return float(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        if self.ndim or not dtypes.is_integer(self.dtype):
            raise TypeError(f"Only integer scalar arrays can be used as an index, not {self.type}.")
        return int(self.host())

    def __iter__(self) -> Iterator[ConcreteArray]:
        if not self.type.shape:
            raise TypeError("Iteration over a scalar array: it has no axes.")
        element = ShapedArray(self.type.shape[1:], self.type.dtype, self.type.weak_type)
        host = self.host()
        place = place_of_part(self, element.shape)
        return (ConcreteArray(element, host[i, ...], None, place) for i in range(len(host)))

    def __format__(self, specification: str) -> str:
        if self.ndim == 0 and not dtypes.is_key(self.type.dtype):
            return format(self.host()[()], specification)
        return format(str(self), specification)

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"Array(<deleted>, dtype={self.dtype})"
        if dtypes.is_key(self.type.dtype):
            return f"Array({self.shape}, dtype={self.dtype}) overlaying:\n{words_of(self.host())}"
        weak = ", weak_type=True" if self.weak_type else ""
        suffix = f", dtype={self.dtype}{weak})"
        host = printable(self.host())
        if self.size == 0:
            shape = f", shape={self.shape}" if self.shape != (0,) else ""
            return f"Array([]{shape}{suffix}"
        body = np.array2string(host, prefix="Array(", suffix=suffix, separator=", ")
        return f"Array({body}{suffix}"

    def __str__(self) -> str:
        if dtypes.is_key(self.type.dtype):
            return repr(self)
        return str(printable(self.host()))

    def __hash__(self) -> int:
        raise TypeError("Arrays are unhashable: compare them with jnp.array_equal instead.")

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (self.type, np.array(self.host()))

    def __copy__(self) -> ConcreteArray:
        return self

    def __deepcopy__(self, memo: object) -> ConcreteArray:
        return ConcreteArray(self.type, self.host().copy(), None, self._device)


def _unpickled(array_type: ShapedArray, host: HostArray) -> ConcreteArray:
    """Returns an array from a pickle, in the dtype that the current configuration has for it."""
    dtype = dtypes.canonicalize_dtype(array_type.dtype)
    if dtype != array_type.dtype:
        array_type = ShapedArray(array_type.shape, dtype, array_type.weak_type)
        host = host.astype(dtype)
    return ConcreteArray(array_type, host)


# The flag of a consumer that requests a writable buffer (PyBUF_WRITABLE).
_WRITABLE = 1


def from_numpy(value: HostArray, weak_type: bool = False) -> ConcreteArray:
    """Wraps a NumPy array; its memory must not be written from now on."""
    return ConcreteArray(ShapedArray(value.shape, value.dtype, weak_type), value)


def scalar(value: Scalar, dtype: Dtype | None = None, weak_type: bool = True) -> ConcreteArray:
    """Returns a rank-0 array of a Python scalar; its dtype is weak by default."""
    if dtype is None:
        dtype = dtypes.scalar_dtype(value)
        weak_type = weak_type and dtype != dtypes.bool_
    try:
        host = np.asarray(value, dtype=dtype)
    except OverflowError:
        host = np.asarray(value).astype(dtype)
        if dtypes.is_integer(dtype):
            raise OverflowError(f"Python int {value} is too large for {dtype}.") from None
    return ConcreteArray(ShapedArray((), dtype, weak_type), host)


_SCALARS = (bool, int, float, complex)


def as_array(value: UserObject, what: str = "operand") -> ConcreteArray:
    """Turns a NumPy array or scalar, a Python scalar, or an array-like object into an array.

    Raises:
        NonArrayArgumentError: for anything else, naming it.

    >>> as_array(np.arange(2.0))
    Array([0., 1.], dtype=float32)
    """
    python_type = type(value)
    if python_type is ConcreteArray:
        return value
    if config.jax_transfer_guard or config.jax_transfer_guard_host_to_device:
        check_transfer("host_to_device", _summary(value))
    if python_type in _SCALARS:
        return scalar(value)
    if isinstance(value, (np.ndarray, np.generic)):
        dtype = value.dtype
        if dtype != dtypes.float0:
            dtype = dtypes.canonicalize_dtype(dtype)
        # A copy: the caller may go on to write to its array, while ours is immutable.
        return from_numpy(np.array(value, dtype=dtypes.storage(dtype)))
    if hasattr(value, "__axir_array__"):
        return as_array(value.__axir_array__())
    if hasattr(value, "__jax_array__"):
        return as_array(value.__jax_array__())
    if hasattr(value, "__array__"):
        return as_array(np.asarray(value))
    if isinstance(value, _SCALARS):
        return scalar(value)
    raise _not_an_array(value, what)


def _not_an_array(value: Foreign, what: str) -> NonArrayArgumentError:
    if getattr(value, "_is_ref", False):
        return RefArgumentError(what.capitalize(), value)
    return NonArrayArgumentError(
        f"{what.capitalize()} {_summary(value)} of type {type(value).__name__!r} is not an array.",
        "Pass arrays or Python scalars; turn lists into arrays with jnp.array(...).",
    )


def as_value(value: object, what: str = "operand") -> Array:
    """Returns an array or a tracer as it is, and anything else as `as_array` does.

    The result of `__jax_array__` may be a tracer: a parameter of a model holds a tracer while the
    model is differentiated.
    """
    if isinstance(value, Array):
        return value
    if not isinstance(value, (*_SCALARS, np.ndarray, np.generic)):
        become = getattr(value, "__jax_array__", None)
        if become is not None:
            value = become()
            if isinstance(value, Array):
                return value
    return as_array(value, what)


def _summary(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
