"""`ufunc`: elementwise functions with `reduce`, `accumulate`, `outer`, `at` and `reduceat`.

Elsewhere: the elementwise functions of NumPy's that JAX offers as such objects
(`universal_arithmetic.py`), and the functions that all other modules call
(`frontend/numpy/_elementwise/`).
"""

from __future__ import annotations

import sys
from functools import partial
from operator import index
from typing import TypeGuard

import numpy as np

from axir._later import later
from axir._transforms.staging import eval_shape
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import (
    Axes,
    DTypeLike,
    UserFunction,
    UserObject,
)
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.errors import IndexTypeError, ParameterError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.shape.broadcasting import expand_dims
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes, canonical_axis, reject_out
from axir.numpy._arguments.promotion import array_argument, broadcast_value
from axir.numpy._arrays.creation import asarray
from axir.numpy._arrays.filled import full
from axir.numpy._arrays.grids import arange
from axir.numpy._elementwise.elementwise import are_local, evaluate
from axir.numpy._indexing.index_update import update
from axir.numpy._indexing.selection import where as select
from axir.numpy._indexing.taking import take
from axir.numpy._reductions.reductions import as_mask, converted, keep_axes
from axir.numpy._shape.joining import concatenate
from axir.numpy._shape.manipulation import moveaxis, reshape

from .vectorization import vectorize

__all__ = ["ufunc"]


class ufunc:
    """An elementwise function that also reduces, accumulates, and updates.

    Such objects are made by `frompyfunc`; for example `axir.numpy.add`, `multiply`, `maximum`.

    Attributes:
        nin: Number of arguments.
        nout: Number of results.
        nargs: Number of arguments, too.
        identity: The identity element, or None.

    >>> import axir.numpy as jnp
    >>> isinstance(jnp.add, jnp.ufunc), jnp.add.nin, jnp.add.identity
    (True, 2, 0)
    """

    __name__: str

    def __init__(
        self,
        func: UserFunction,
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: UserObject = None,
        call: UserFunction | None = None,
        reduce: UserFunction | None = None,
        accumulate: UserFunction | None = None,
        at: UserFunction | None = None,
        reduceat: UserFunction | None = None,
    ):
        """Makes one.

        Args:
            func: Function of `nin` scalars.
            nin: Number of arguments.
            nout: Number of results; more than one are a tuple.
            name: Its name; by default the function's.
            nargs: Number of arguments, too.
            identity: The identity element.
            call: Function of arrays that broadcast; by default `func` is vectorized.
            reduce: What `reduce` does instead of applying the function to one element after the
                other; so do `accumulate`, `at` and `reduceat`. Each is called with the arguments
                of the method.
        """
        self._nin = _count("nin", nin)
        self._nout = _count("nout", nout)
        if nargs is not None and index(nargs) != self._nin:
            raise ParameterError(
                f"ufunc: nargs={nargs}, but nin={nin}: both are the number of arguments.",
                "Leave nargs out.",
            )
        if not callable(func):
            raise TypeError(f"ufunc: func must be a function, not {func!r}.")
        self._identity = identity
        self._call = vectorize(func) if call is None else call
        self._own = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}
        # NumPy's function that does the same in one step, where arrays are concrete.
        self._evaluator: np.ufunc | None = None
        given = name or str(getattr(func, "__name__", "ufunc"))
        self.__name__ = self.__qualname__ = given
        described = func if call is None else call
        self.__doc__ = described.__doc__
        if call is not None:
            self.__wrapped__ = call

    @property
    def nin(self) -> int:
        """Number of arguments."""
        return self._nin

    @property
    def nout(self) -> int:
        """Number of results."""
        return self._nout

    @property
    def nargs(self) -> int:
        """Number of arguments; the absent `out` is not counted."""
        return self._nin

    @property
    def identity(self) -> UserObject:
        """The identity element, or None."""
        return self._identity

    def __repr__(self) -> str:
        return f"<jnp.ufunc {self.__name__!r}>"

    def __call__(self, *args: ArrayLike, out: object = None, where: object = None) -> UserObject:
        """Applies the function to arrays that broadcast against each other.

        Args:
            *args: Arrays and scalars.
            out: Only None: arrays are immutable.
            where: Only None; `jnp.where` chooses between results.
        """
        if out is not None:
            reject_out(self.__name__, out)
        if where is not None:
            raise ParameterError(
                f"jnp.{self.__name__}: where is not taken, as there is no out to keep values of.",
                "Choose with jnp.where(condition, result, other).",
            )
        return self._call(*args)

    def _check_binary(self, method: str) -> None:
        if self._nin != 2 or self._nout != 1:
            raise ParameterError(
                f"jnp.{self.__name__}.{method}: only functions of two arguments and one result "
                f"have this; {self.__name__} has {self._nin} and {self._nout}."
            )

    def _elements(self, method: str, a: ArrayLike, dtype: DTypeLike) -> tuple[Value, Value]:
        """Returns the array, and it in the dtype of the results."""
        array = array_argument(f"{self.__name__}.{method}", a)
        if dtype is not None:
            chosen = dtypes.canonicalize_dtype(dtype)
        else:
            scalar = ShapedArray((), array.dtype)
            chosen = eval_shape(self._call, scalar, scalar).dtype
        return array, converted(array, chosen)

    def reduce(
        self,
        a: ArrayLike,
        axis: Axes = 0,
        dtype: DTypeLike = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Value:
        """Combines the elements along an axis, from the first to the last.

        Args:
            a: Array.
            axis: Axis or tuple of axes; None for all.
            dtype: dtype of the result.
            out: Only None.
            keepdims: Whether the axes stay, with extent 1.
            initial: The initial value; by default the identity, or the first element.
            where: Bool array of the elements that take part; it broadcasts against `a`.

        Raises:
            ParameterError: if the function has not two arguments, if there is neither an element
                nor an initial value, or `where` without one.

        >>> import axir.numpy as jnp
        >>> jnp.add.reduce(jnp.arange(6).reshape(2, 3))
        Array([3, 5, 7], dtype=int32)
        """
        self._check_binary("reduce")
        reject_out(self.__name__, out)
        if where is not None and initial is None and self._identity is None:
            raise ParameterError(
                f"jnp.{self.__name__}.reduce: the function has no identity, so where needs initial."
            )
        if self._own["reduce"] is not None:
            return self._own["reduce"](
                a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where
            )
        array, elements = self._elements("reduce", a, dtype)
        axes = canonical_axes(f"{self.__name__}.reduce", axis, array.ndim)
        mask = None
        if where is not None:
            mask = _gathered(broadcast_value(as_mask(self.__name__, where), array.shape), axes)
        start = self._identity if initial is None else initial
        result = self._fold(_gathered(elements, axes), start, mask)
        return keep_axes(result, array.shape, axes) if keepdims else result

    def _fold(self, x: Value, start: UserObject, mask: Value | None) -> Value:
        """Combines the slices along the first axis."""
        if start is None and not x.shape[0]:
            raise ParameterError(
                f"jnp.{self.__name__}.reduce: there is no element, and the function has no "
                "identity.",
                "Pass initial.",
            )
        if start is None:
            first, x = x[0], x[1:]
        else:
            first = broadcast_value(converted(asarray(start), x.dtype), x.shape[1:])

        def step(total: Value, entry: UserObject) -> tuple[Value, None]:
            element, takes_part = entry
            combined = converted(self._call(total, element), x.dtype)
            return (combined if mask is None else select(takes_part, combined, total)), None

        return later.scan(step, first, (x, mask))[0]

    def accumulate(
        self, a: ArrayLike, axis: object = 0, dtype: DTypeLike = None, out: None = None
    ) -> Value:
        """Returns the result of `reduce` up to and including each element along an axis.

        Args:
            a: Array of at least one axis.
            axis: The axis; None for all elements in a row.
            dtype: dtype of the result.
            out: Only None.

        Raises:
            AxisError: if the axis does not exist.
            ParameterError: if the function has not two arguments.

        >>> import axir.numpy as jnp
        >>> jnp.multiply.accumulate(jnp.array([1, 2, 3]))
        Array([1, 2, 6], dtype=int32)
        """
        self._check_binary("accumulate")
        reject_out(self.__name__, out)
        if isinstance(axis, tuple):
            raise ParameterError(
                f"jnp.{self.__name__}.accumulate goes along one axis, not {axis!r}."
            )
        if axis is None:
            a, axis = array_argument(self.__name__, a).reshape(-1), 0
        if self._own["accumulate"] is not None:
            return self._own["accumulate"](a, axis=axis, dtype=dtype)
        array, elements = self._elements("accumulate", a, dtype)
        axis = canonical_axis(f"{self.__name__}.accumulate", axis, array.ndim)
        if self._evaluator is not None and _is_plain(elements):
            of_numpy = partial(self._evaluator.accumulate, axis=axis)
            return evaluate(self.__name__, of_numpy, elements.type.strip_weak_type(), elements)
        x = moveaxis(elements, axis, 0)
        if x.shape[0] == 0:
            return elements

        def step(total: Value, element: Value) -> tuple[Value, Value]:
            combined = converted(self._call(total, element), x.dtype)
            return combined, combined

        results = later.scan(step, x[0], x[1:])[1]
        return moveaxis(concatenate([x[:1], results]), 0, axis)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> UserObject:
        """Applies the function to all pairs of elements.

        Args:
            A: Array.
            B: Array.

        Returns:
            Array of shape `(*A.shape, *B.shape)`.

        >>> import axir.numpy as jnp
        >>> jnp.add.outer(jnp.arange(2), jnp.arange(3))
        Array([[0, 1, 2],
               [1, 2, 3]], dtype=int32)
        """
        if self._nin != 2:
            raise ParameterError(
                f"jnp.{self.__name__}.outer: only functions of two arguments have this."
            )
        first = array_argument(f"{self.__name__}.outer", A, 0)
        second = array_argument(f"{self.__name__}.outer", B, 1)
        axes = range(first.ndim, first.ndim + second.ndim)
        return self._call(expand_dims(first, tuple(axes)), second)

    def at(
        self,
        a: ArrayLike,
        indices: object,
        b: ArrayLike | None = None,
        /,
        *,
        inplace: bool = True,
    ) -> Value:
        """Returns a copy with the function applied at indices, as often as each occurs.

        Args:
            a: Array.
            indices: An index, as in `a[indices]`. Positions out of bounds are ignored.
            b: Second argument of functions of two; broadcasts to the shape of `a[indices]`.
            inplace: Must be False, which says that a copy is expected: arrays are immutable.

        Raises:
            ParameterError: for `inplace=True`, or if `b` does not fit the function.

        >>> import axir.numpy as jnp
        >>> jnp.add.at(jnp.zeros(3), jnp.array([0, 0, 2]), 1.0, inplace=False)
        Array([2., 0., 1.], dtype=float32)
        """
        name = f"{self.__name__}.at"
        if inplace:
            raise ParameterError(
                f"jnp.{name}: arrays are immutable.",
                "Pass inplace=False, and use the array that is returned.",
            )
        if self._nout != 1 or self._nin not in (1, 2) or (b is None) == (self._nin == 2):
            raise ParameterError(
                f"jnp.{name}: b is the second argument of functions of two arguments, and "
                f"{self.__name__} has {self._nin}."
            )
        array = array_argument(name, a, 0)
        if self._own["at"] is not None:
            return self._own["at"](array, indices, *(() if b is None else (b,)))
        return self._at_each(array, indices, b)

    def _at_each(self, array: Value, indices: UserObject, b: ArrayLike | None) -> Value:
        numbered = reshape(arange(array.size), array.shape)
        # A position out of bounds gets another position out of bounds.
        positions = numbered.at[indices].get(mode="fill", fill_value=array.size)
        second = None
        if b is not None:
            second = asarray(b)
            second = reshape(broadcast_value(second, positions.shape), (positions.size,))

        def step(flat: Value, entry: UserObject) -> tuple[Value, None]:
            position, other = entry
            arguments = (flat[position],) if other is None else (flat[position], other)
            changed = converted(self._call(*arguments), flat.dtype)
            return update(flat, position, "set", changed, mode="drop"), None

        flat = reshape(array, (array.size,))
        if not flat.size or not positions.size:
            return array
        result = later.scan(step, flat, (reshape(positions, (positions.size,)), second))[0]
        return reshape(result, array.shape)

    def reduceat(
        self,
        a: ArrayLike,
        indices: object,
        axis: object = 0,
        dtype: DTypeLike = None,
        out: None = None,
    ) -> Value:
        """Combines the elements from each index to the next one, the last ones up to the end.

        Args:
            a: Array of at least one axis.
            indices: Vector of integers. Where one is not below the next, the result is the element
                there.
            axis: The axis.
            dtype: dtype of the result.
            out: Only None.

        Returns:
            Array with one entry per index along the axis.

        Raises:
            IndexTypeError: if the indices are no vector of integers.
            ParameterError: if the function has not two arguments.

        >>> import axir.numpy as jnp
        >>> jnp.add.reduceat(jnp.arange(6), jnp.array([0, 4, 1]))
        Array([ 6,  4, 15], dtype=int32)
        """
        self._check_binary("reduceat")
        reject_out(self.__name__, out)
        if axis is None or isinstance(axis, tuple):
            raise ParameterError(f"jnp.{self.__name__}.reduceat goes along one axis, not {axis!r}.")
        name = f"{self.__name__}.reduceat"
        array = array_argument(name, a, 0)
        starts = array_argument(name, indices, 1)
        if starts.ndim != 1 or dtypes.kind(starts.dtype) not in "iu":
            raise IndexTypeError(
                f"jnp.{name}: indices must be a vector of integers, not {starts.aval}."
            )
        if starts.dtype.itemsize < 4:  # the end of the axis, too, must be a number of the dtype
            starts = converted(starts, dtypes.int32)
        axis = canonical_axis(name, axis, array.ndim)
        if self._own["reduceat"] is not None:
            return self._own["reduceat"](array, starts, axis, dtype)
        elements = self._elements("reduceat", array, dtype)[1]
        if self._evaluator is not None and _is_plain(elements) and type(starts) is ConcreteArray:
            positions = starts.host()
            if positions.size and (0 <= positions.min()) and positions.max() < array.shape[axis]:
                extents = (*array.shape[:axis], positions.size, *array.shape[axis + 1 :])
                of_numpy = partial(_reduce_segments, self._evaluator, positions, axis)
                result_type = ShapedArray(extents, elements.dtype)
                return evaluate(self.__name__, of_numpy, result_type, elements)
        return moveaxis(self._fold_segments(moveaxis(elements, axis, 0), starts), 0, axis)

    def _fold_segments(self, x: Value, starts: Value) -> Value:
        """Combines segments along the first axis, all of them in one pass over it."""
        length = x.shape[0]
        if not starts.shape[0]:
            return x[:0]
        ends = concatenate([starts[1:], full((1,), length, starts.dtype)])
        apart = (starts.shape[0], *[1] * (x.ndim - 1))
        starts_of, ends_of = reshape(starts, apart), reshape(ends, apart)

        def step(totals: Value, entry: tuple[Value, Value]) -> tuple[Value, None]:
            position, element = entry
            combined = converted(self._call(totals, element), x.dtype)
            goes_on = (position > starts_of) & (position < ends_of)
            return select(goes_on, combined, totals), None

        positions = arange(length, dtype=starts.dtype)
        return later.scan(step, take(x, starts, axis=0), (positions, x))[0]

    def __reduce__(self) -> UserObject:
        if getattr(sys.modules["axir.numpy"], self.__name__, None) is self:
            return _named, (self.__name__,)
        return object.__reduce__(self)


def _is_plain(x: Value) -> TypeGuard[ConcreteArray]:
    """Tells whether NumPy's own functions take an array as it is."""
    return type(x) is ConcreteArray and x.dtype.kind in "biufc" and are_local(x)


def _reduce_segments(
    combine: np.ufunc, positions: np.ndarray, axis: int, x: np.ndarray
) -> np.ndarray:
    return combine.reduceat(x, positions, axis=axis, dtype=x.dtype)


def _named(name: str) -> object:
    """Returns the object of a name, for copies and pickles."""
    return getattr(sys.modules["axir.numpy"], name)


def _count(name: str, value: UserObject) -> int:
    count = index(value)
    if count < 1:
        raise ParameterError(f"ufunc: {name}={value} must be positive.")
    return count


def _gathered(x: Value, axes: tuple[int, ...]) -> Value:
    """Joins axes in one, the first."""
    kept = [extent for axis, extent in enumerate(x.shape) if axis not in axes]
    moved = moveaxis(x, axes, tuple(range(len(axes))))
    size = 1
    for axis in axes:
        size *= x.shape[axis]
    return reshape(moved, (size, *kept))
