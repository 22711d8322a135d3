"""The result of `x.at[index]`: a part of an array, for reading or for an updated copy."""

from __future__ import annotations

from collections.abc import Callable

from axir._devices.placement import lies_where_told
from axir.dialect.core.annotations import IndexLike, Options
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value

from .index_update import apply, update
from .indexing import read


class At:
    """The object `x.at`: `x.at[index]` names a part of the array."""

    __slots__ = ("_array",)

    def __init__(self, array: Value):
        self._array = array

    def __getitem__(self, index: IndexLike) -> Reference:
        return Reference(self._array, index)

    def __repr__(self) -> str:
        return f"{self._array!r}.at"


class Reference:
    """A part of an array, from which updated copies of the array are made.

    All methods but `get` return the whole array. Options of all of them:

    | option | meaning |
    | --- | --- |
    | `mode` | for positions out of bounds: 'drop' (the default) leaves the update out, 'clip' moves the position inside, 'promise_in_bounds' promises that all positions are in bounds |
    | `indices_are_sorted`, `unique_indices` | promises that may speed a scatter up |
    | `wrap_negative_indices` | whether negative positions count from the end |
    | `out_sharding` | the placement of the result: a sharding, or a `PartitionSpec` |

    >>> import axir.numpy as jnp
    >>> jnp.zeros(3).at[1].set(5.0)
    Array([0., 5., 0.], dtype=float32)
    """  # noqa: E501

    __slots__ = ("_array", "_index")

    def __init__(self, array: Value, index: IndexLike):
        self._array = array
        self._index = index

    def __repr__(self) -> str:
        return f"{self._array!r}.at[{self._index!r}]"

    @lies_where_told
    def get(
        self,
        *,
        mode: object = None,
        fill_value: ArrayLike | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        wrap_negative_indices: bool = True,
        out_sharding: object = None,
    ) -> Value:
        """Returns the part itself; `mode='fill'` takes `fill_value` out of bounds."""
        return read(
            self._array,
            self._index,
            mode="fill" if mode == "drop" else mode,
            fill_value=fill_value,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            wrap_negative_indices=wrap_negative_indices,
        )

    @lies_where_told
    def set(self, values: ArrayLike, **options: Options) -> Value:
        """Replaces the part by values that broadcast to its shape."""
        return update(self._array, self._index, "set", values, **options)

    @lies_where_told
    def add(self, values: ArrayLike, **options: Options) -> Value:
        """Adds values to the part; an element named twice is added to twice."""
        return update(self._array, self._index, "add", values, **options)

    @lies_where_told
    def subtract(self, values: ArrayLike, **options: Options) -> Value:
        """Subtracts values from the part."""
        return update(self._array, self._index, "subtract", values, **options)

    @lies_where_told
    def multiply(self, values: ArrayLike, **options: Options) -> Value:
        """Multiplies the part with values."""
        return update(self._array, self._index, "multiply", values, **options)

    @lies_where_told
    def divide(self, values: ArrayLike, **options: Options) -> Value:
        """Divides the part by values."""
        return update(self._array, self._index, "divide", values, **options)

    @lies_where_told
    def power(self, values: ArrayLike, **options: Options) -> Value:
        """Raises the part to powers."""
        return update(self._array, self._index, "power", values, **options)

    @lies_where_told
    def min(self, values: ArrayLike, **options: Options) -> Value:
        """Takes the smaller ones of the part and of values."""
        return update(self._array, self._index, "min", values, **options)

    @lies_where_told
    def max(self, values: ArrayLike, **options: Options) -> Value:
        """Takes the larger ones of the part and of values."""
        return update(self._array, self._index, "max", values, **options)

    @lies_where_told
    def apply(self, func: Callable[[Value], Value], **options: Options) -> Value:
        """Replaces the part by an elementwise function of it.

        The function is applied as often as an element is named. Derivatives need distinct
        positions. This is checked for static positions and for arrays with known values; otherwise
        `unique_indices=True` promises it.
        """
        return apply(self._array, self._index, func, **options)

    sub, mul = subtract, multiply
