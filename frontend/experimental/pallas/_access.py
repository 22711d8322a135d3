"""Parts of refs read and written under masks, and atomic operations on them.

A part that reaches beyond the end of its ref is not moved: elements read there are unspecified, and
elements written there are dropped. Elsewhere: `ref[...]` (`axir.ref`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from axir import lax
from axir._transforms.refs import AnyRef, RefView
from axir.dialect.core.annotations import IndexLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ShapeError
from axir.dialect.program.rules import Value
from axir.numpy import arange, asarray, broadcast_to, maximum, minimum, roll, where
from axir.numpy import pad as padded_array
from axir.numpy._indexing.dynamic_slices import Slice

from ._memory import uninitialized

Combine: TypeAlias = Callable[[Value, Value], Value]


class _Part:
    """A part of a ref: its place, moved inside, and how far it was moved along each axis."""

    def __init__(self, ref: AnyRef, index: IndexLike):
        if isinstance(ref, RefView) and (index is None or index is Ellipsis):
            index = ref._index
            self.ref: AnyRef = ref._ref
        else:
            self.ref = ref
        index = ... if index is None else index
        items = list(index) if isinstance(index, tuple) else [index]
        if Ellipsis in [x for x in items if x is Ellipsis]:
            at = next(n for n, x in enumerate(items) if x is Ellipsis)
            items[at : at + 1] = [slice(None)] * (len(self.ref.shape) - len(items) + 1)
        self.items = items
        # Axes of the part: a scalar index removes its axis.
        self.shifts: list[tuple[int, Value]] = []
        self.margins = [(0, 0)] * len(self.ref.shape)
        axis = 0
        for n, item in enumerate(items):
            if isinstance(item, Slice) and item.stride == 1:
                self._move_inside(n, axis, item)
            axis += 0 if _is_number(item) else 1

    def _move_inside(self, n: int, axis: int, item: Slice) -> None:
        extent = self.ref.shape[n]
        if item.size > extent:
            self.margins[n] = (0, item.size - extent)
        most = max(extent - item.size, 0)
        if isinstance(item.start, int) and item.start <= most:
            return
        start = minimum(asarray(item.start), most)
        self.items[n] = Slice(start, item.size)
        self.shifts.append((axis, asarray(item.start) - start))

    @property
    def index(self) -> tuple[UserObject, ...]:
        """The place."""
        return tuple(self.items)

    def whole(self) -> Value:
        """Returns the value of the ref, as large as the part needs."""
        value: Value = self.ref.load()
        if not any(map(any, self.margins)):
            return value
        nothing = uninitialized((), value.dtype)
        return padded_array(value, self.margins, constant_values=nothing)

    def put(self, value: Value) -> None:
        """Sets the value of the ref."""
        if any(map(any, self.margins)):
            value = value[tuple(slice(0, extent) for extent in self.ref.shape)]
        self.ref.store(value)

    def moved(self, part: Value, sign: int) -> Value:
        """Moves the elements of a part to the requested position, or back."""
        for axis, shift in self.shifts:
            part = roll(part, sign * shift, axis)
        return part

    def is_inside(self, shape: tuple[int, ...]) -> Value | None:
        """Tells of each element of the part, where it was moved to, whether it was inside."""
        truth = None
        for axis, shift in self.shifts:
            rank = len(shape)
            places = arange(shape[axis]).reshape([-1 if n == axis else 1 for n in range(rank)])
            here = broadcast_to(places >= shift, shape)
            truth = here if truth is None else truth & here
        return truth


def _is_number(item: object) -> bool:
    return not isinstance(item, (slice, Slice)) and getattr(item, "shape", ()) == ()


def load(
    ref: AnyRef,
    idx: IndexLike = None,
    *,
    mask: ArrayLike | None = None,
    other: ArrayLike | None = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Value:
    """Returns part of a ref.

    Args:
        ref: A ref, or part of one: `ref.at[idx]`.
        idx: Which part; all by default.
        mask: Truth values: which elements are needed.
        other: Value of the masked elements; without it they are unspecified.
        cache_modifier: Accepted for compatibility.
        eviction_policy: Accepted for compatibility.
        volatile: Accepted for compatibility.

    >>> import axir, axir.numpy as jnp
    >>> from axir.experimental.pallas import triton
    >>> ref = axir.new_ref(jnp.arange(5.0))
    >>> mask = jnp.arange(4) + 3 < 5
    >>> triton.load(ref.at[axir.ds(3, 4)], mask=mask, other=0.0)
    Array([3., 4., 0., 0.], dtype=float32)
    """
    if mask is None and other is not None:
        raise ShapeError(
            "load: `other` is given without a mask.", "Pass mask=, or leave `other` out."
        )
    part = _Part(ref, idx)
    found = part.moved(part.whole()[part.index], -1)
    if mask is None or other is None:
        return found
    return where(mask, found, asarray(other, found.dtype))


def swap(
    ref: AnyRef,
    idx: IndexLike,
    val: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    eviction_policy: str | None = None,
) -> Value:
    """Writes part of a ref; returns the previous elements.

    Args:
        ref: A ref, or part of one.
        idx: Which part.
        val: The elements to write.
        mask: Truth values: which elements are written. The result for other elements is `val`.
        eviction_policy: Accepted for compatibility.
    """
    before, _ = _changed(ref, idx, val, mask, lambda old, new: new)
    return before if mask is None else where(mask, before, asarray(val, before.dtype))


def store(
    ref: AnyRef,
    idx_or_val: UserObject,
    val: ArrayLike | None = None,
    *,
    mask: ArrayLike | None = None,
    eviction_policy: str | None = None,
) -> None:
    """Writes part of a ref: `store(ref.at[idx], val)`, or `store(ref, idx, val)`.

    Args:
        ref: A ref, or part of one.
        idx_or_val: The index of the part, or the written elements.
        val: The written elements, if `idx_or_val` is an index.
        mask: Truth values: which elements are written.
        eviction_policy: Accepted for compatibility.
    """
    idx, new = (None, idx_or_val) if val is None else (idx_or_val, val)
    _changed(ref, idx, new, mask, lambda old, new: new)


def _changed(
    ref: AnyRef, idx: IndexLike, val: ArrayLike, mask: ArrayLike | None, combine: Combine
) -> tuple[Value, Value]:
    """Writes a function of old and new elements; returns the old and the written elements."""
    part = _Part(ref, idx)
    whole = part.whole()
    old = whole[part.index]
    before = part.moved(old, -1)
    new = combine(before, broadcast_to(asarray(val, whole.dtype), before.shape))
    if mask is not None:
        new = where(mask, new, before)
    there = part.moved(new, 1)
    inside = part.is_inside(old.shape)
    part.put(whole.at[part.index].set(there if inside is None else where(inside, there, old)))
    return before, new


# Operations that read and write ------------------------------------------------------------------


def atomic_xchg(
    x_ref_or_view: AnyRef, idx: IndexLike, val: ArrayLike, *, mask: ArrayLike | None = None
) -> Value:
    """Writes elements; returns the old ones."""
    return _changed(x_ref_or_view, idx, val, mask, lambda old, new: new)[0]


def atomic_add(
    x_ref_or_view: AnyRef, idx: IndexLike, val: ArrayLike, *, mask: ArrayLike | None = None
) -> Value:
    """Adds to elements; returns the old ones. A repeated position is added to repeatedly.

    >>> import axir, axir.numpy as jnp
    >>> from axir.experimental.pallas import triton
    >>> ref = axir.new_ref(jnp.zeros(3))
    >>> _ = triton.atomic_add(ref, jnp.array([0, 2, 2]), 1.0)
    >>> ref[...]
    Array([1., 0., 2.], dtype=float32)
    """
    return _combined(x_ref_or_view, idx, val, mask, "add", lax.add)


def atomic_max(
    x_ref_or_view: AnyRef, idx: IndexLike, val: ArrayLike, *, mask: ArrayLike | None = None
) -> Value:
    """Writes the maximum of old and new elements; returns the old ones."""
    return _combined(x_ref_or_view, idx, val, mask, "max", maximum)


def atomic_min(
    x_ref_or_view: AnyRef, idx: IndexLike, val: ArrayLike, *, mask: ArrayLike | None = None
) -> Value:
    """Writes the minimum of old and new elements; returns the old ones."""
    return _combined(x_ref_or_view, idx, val, mask, "min", minimum)


def atomic_and(
    x_ref_or_view: AnyRef, idx: IndexLike, val: ArrayLike, *, mask: ArrayLike | None = None
) -> Value:
    """Clears bits of elements; returns the old elements."""
    return _changed(x_ref_or_view, idx, val, mask, lax.bitwise_and)[0]


def atomic_or(
    x_ref_or_view: AnyRef, idx: IndexLike, val: ArrayLike, *, mask: ArrayLike | None = None
) -> Value:
    """Sets bits of elements; returns the old elements."""
    return _changed(x_ref_or_view, idx, val, mask, lax.bitwise_or)[0]


def atomic_xor(
    x_ref_or_view: AnyRef, idx: IndexLike, val: ArrayLike, *, mask: ArrayLike | None = None
) -> Value:
    """Flips bits of elements; returns the old elements."""
    return _changed(x_ref_or_view, idx, val, mask, lax.bitwise_xor)[0]


def atomic_cas(ref: AnyRef, cmp: ArrayLike, val: ArrayLike) -> Value:
    """Writes a number if the old number equals `cmp`; returns the old number.

    Args:
        ref: A ref of one number, or part of one.
        cmp: The expected old number.
        val: The number to write.
    """
    if tuple(ref.shape) != ():
        raise ShapeError(
            f"atomic_cas works on one number, and the ref has the shape {ref.shape}.",
            "Pass ref.at[i].",
        )
    wanted = asarray(cmp, ref.dtype)
    return _changed(ref, None, val, None, lambda old, new: where(old == wanted, new, old))[0]


def _combined(
    ref: AnyRef, idx: IndexLike, val: ArrayLike, mask: ArrayLike | None, name: str, combine: Combine
) -> Value:
    """Combines elements with others, also where indices name one several times."""
    part = _Part(ref, idx)
    if not any(getattr(item, "shape", ()) != () for item in part.items):
        return _changed(ref, idx, val, mask, combine)[0]
    whole = part.whole()
    before = whole[part.index]
    new = broadcast_to(asarray(val, whole.dtype), before.shape)
    if mask is not None:
        neutral = asarray(0, whole.dtype) if name == "add" else before
        new = where(mask, new, neutral)
    part.put(getattr(whole.at[part.index], name)(new))
    return before
