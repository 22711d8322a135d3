"""Refs: arrays that are assigned to, and how traced functions carry them.

A ref holds an array, and each assignment gives it another one, so a program with refs is one of
values. A traced function that uses a ref from outside must take its value and return the new one: a
use in a trace that is not the ref's own raises `RefScopeError`, and the transformation that opened
the trace begins again with a function that carries the ref (`carried_refs.py`).

Elsewhere: refs of kernels, which are memory (`axir.experimental.kernels`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from axir.dialect.core.annotations import (
    AnyDtype,
    IndexLike,
    UserObject,
)
from axir.dialect.core.array import Array, ArrayLike, as_array
from axir.dialect.core.errors import (
    AxirError,
    NonArrayArgumentError,
    RefScopeError,
    UnexpectedTracerError,
)
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.program.tracer import Trace, Tracer, state


class FrozenRefError(AxirError, ValueError):
    """A ref was used after it had been frozen or freed."""


class Ref:
    """An array that can be assigned to, made by `new_ref`: `ref[index]`, `ref[index] = value`.

    It keeps its shape and dtype. Traced functions may use it, as an argument of `jit` or from
    outside: their assignments are visible when the call returns.

    >>> import axir, axir.numpy as jnp
    >>> total = axir.new_ref(jnp.zeros(2))
    >>> @axir.jit
    ... def add(x):
    ...     total[...] += x
    >>> add(1.0)
    >>> add(jnp.array([1.0, 2.0]))
    >>> total
    Ref([2., 3.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_home", "_value")
    # Told by transformations, which do not know this class.
    _is_ref = True

    def __init__(self, value: Array, home: Trace | None):
        self._value: Array | None = value
        # The trace that uses it; None outside of traces.
        self._home = home

    def is_at_home(self) -> bool:
        """Tells whether the ref can be used by the code that runs now."""
        return self._value is not None and self._home is state.ambient

    def check_at_home(self) -> None:
        """Raises an error unless the ref can be used by the code that runs now.

        Raises:
            FrozenRefError: if it has been frozen.
            UnexpectedTracerError: if the trace that it belongs to has ended.
            RefScopeError: in another trace than its own.
        """
        if self._value is None:
            raise FrozenRefError(
                "The ref has been frozen or freed, and has no value any more.",
                "Use the array that axir.freeze(ref) returned, or copy it into another ref.",
            )
        if self._home is not state.ambient:
            if self._home is not None and not self._home.is_open:
                raise UnexpectedTracerError(
                    f"A ref leaked: it was used after the tracing of {self._home.name!r}, which "
                    "made it, had ended.",
                    "Return axir.freeze(ref), an array, from the function.",
                )
            raise RefScopeError(self)

    def load(self) -> Array:
        """Returns the value."""
        self.check_at_home()
        assert self._value is not None
        return self._value

    def store(self, value: Array) -> None:
        """Sets the value."""
        self.check_at_home()
        self._value = value

    @property
    def aval(self) -> AbstractRef:
        """The type."""
        assert self._value is not None
        return AbstractRef(self._value.type)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes."""
        return self.aval.inner_aval.shape

    @property
    def dtype(self) -> AnyDtype:
        """dtype of the elements."""
        return self.aval.inner_aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.inner_aval.size

    @property
    def at(self) -> _At:
        """Parts of the ref as refs: `ref.at[index]`."""
        return _At(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a scalar ref: it has no axes.")
        return self.shape[0]

    def __getitem__(self, index: IndexLike) -> Array:
        value: UserObject = self.load()
        return value[index]

    def __setitem__(self, index: IndexLike, value: ArrayLike) -> None:
        swap(self, index, value)

    def addupdate(self, x: ArrayLike, idx: IndexLike = ...) -> None:
        """Adds to elements."""
        addupdate(self, idx, x)

    def unsafe_buffer_pointer(self) -> int:
        """Returns the address of the value's first element."""
        value: UserObject = self.load()
        return value.unsafe_buffer_pointer()

    def __iter__(self) -> Iterator[Array]:
        return iter(self.load())

    def __repr__(self) -> str:
        return f"Ref({repr(self._value).partition('(')[2]}" if self._value is not None else "Ref()"


class AbstractRef:
    """The type of a ref.

    Attributes:
        inner_aval: The type of its value.
    """

    def __init__(self, inner_aval: ShapedArray):
        self.inner_aval = inner_aval

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> AnyDtype:
        """dtype of the elements."""
        return self.inner_aval.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and self.inner_aval == other.inner_aval

    def __hash__(self) -> int:
        return hash(("ref", self.inner_aval))

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval.str_short()}}}"


class RefView:
    """A part of a ref, itself a ref; made by `ref.at[index]`."""

    def __init__(self, ref: Ref | RefView, index: IndexLike):
        self._ref, self._index = ref, index

    def load(self) -> Array:
        """Returns the value."""
        return self._ref[self._index]

    def store(self, value: Array) -> None:
        """Sets the value."""
        whole: UserObject = self._ref.load()
        self._ref.store(whole.at[self._index].set(value))

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes."""
        return self.load().shape

    @property
    def dtype(self) -> AnyDtype:
        """dtype of the elements."""
        return self._ref.dtype

    @property
    def at(self) -> _At:
        """Parts of the part."""
        return _At(self)

    def __getitem__(self, index: IndexLike) -> Array:
        value: UserObject = self.load()
        return value[index]

    def __setitem__(self, index: IndexLike, value: ArrayLike) -> None:
        swap(self, index, value)


AnyRef: TypeAlias = Ref | RefView


class _At:
    def __init__(self, ref: AnyRef):
        self._ref = ref

    def __getitem__(self, index: IndexLike) -> RefView:
        return RefView(self._ref, index)


def new_ref(
    init_val: ArrayLike,
    *,
    memory_space: object = None,
    kind: str | None = None,
    pin: bool = False,
) -> Ref:
    """Makes a ref.

    Args:
        init_val: Its first value.
        memory_space: Accepted for compatibility: devices have one memory.
        kind, pin: Accepted for compatibility.

    >>> import axir.numpy as jnp
    >>> ref = new_ref(jnp.arange(3))
    >>> ref[1] = 5
    >>> ref[...]
    Array([0, 5, 2], dtype=int32)
    """
    if isinstance(init_val, (Ref, RefView)):
        raise NonArrayArgumentError(
            "new_ref takes an array, not a ref.", "Pass ref[...] for a copy of its value."
        )
    value = init_val if type(init_val) is Tracer else as_array(init_val, "argument of new_ref")
    return Ref(convert_element_type(value, value.dtype, False), state.ambient)


def freeze(ref: Ref) -> Array:
    """Returns the value of a ref, which cannot be used any more.

    >>> import axir.numpy as jnp
    >>> freeze(new_ref(jnp.ones(2)))
    Array([1., 1.], dtype=float32)
    """
    if not isinstance(ref, Ref):
        raise NonArrayArgumentError(
            f"freeze takes a ref, not {ref!r}.", "Make one with axir.new_ref(array)."
        )
    value = ref.load()
    ref._value = None
    return value


def free_ref(ref: Ref) -> None:
    """Gives the value of a ref up; the ref cannot be used any more."""
    freeze(ref)


def get(ref: AnyRef, idx: IndexLike = None) -> Array:
    """Returns elements of a ref: `ref[idx]`, or all of them."""
    return ref[... if idx is None else idx]


def set(ref: AnyRef, idx: IndexLike, value: ArrayLike) -> None:
    """Assigns to elements of a ref: `ref[idx] = value`."""
    swap(ref, idx, value)


def swap(ref: AnyRef, idx: IndexLike, value: ArrayLike) -> Array:
    """Assigns to elements of a ref; returns the old elements.

    >>> import axir.numpy as jnp
    >>> ref = new_ref(jnp.arange(3))
    >>> swap(ref, 0, 7), ref[...]
    (Array(0, dtype=int32), Array([7, 1, 2], dtype=int32))
    """
    whole: UserObject = ref.load()
    place = ... if idx is None else idx
    before = whole[place]
    ref.store(whole.at[place].set(value))
    return before


def addupdate(ref: AnyRef, idx: IndexLike, x: ArrayLike) -> None:
    """Adds to elements of a ref; of indices that come several times, each counts.

    >>> import axir.numpy as jnp
    >>> ref = new_ref(jnp.zeros(2))
    >>> addupdate(ref, jnp.array([0, 0]), 1.0)
    >>> ref[...]
    Array([2., 0.], dtype=float32)
    """
    whole: UserObject = ref.load()
    ref.store(whole.at[... if idx is None else idx].add(x))
