"""NumPy's operators and methods on arrays and tracers: the functions of this package, installed.

Attributes that arrays cannot have, or not while they are traced, raise errors with a way out.

Elsewhere: the methods of concrete arrays that do not compute (`axir.dialect.core.array`), and the
functions themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from axir._arguments.wrapping import leave_out_own_frames
from axir._devices.placement import device_put
from axir.dialect.core.annotations import (
    DTypeLike,
    UserFunction,
    UserObject,
)
from axir.dialect.core.array import Array, ArrayLike, ConcreteArray
from axir.dialect.core.errors import AxirError, ParameterError
from axir.dialect.program.equation import Var
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.promotion import SCALARS, not_an_array
from axir.numpy._arrays import scalar_types
from axir.numpy._arrays.creation import array
from axir.numpy._elementwise import arithmetic, exponential, logic, rounding
from axir.numpy._indexing import edits, indexing, placing, selection, taking
from axir.numpy._indexing.array_parts import At
from axir.numpy._products import products as linear_algebra
from axir.numpy._reductions import cumulative, moments, positions, reductions
from axir.numpy._shape import diagonals, joining, manipulation
from axir.numpy._sorting import sorting

from . import array_placement


class AbsentAttributeError(AxirError, AttributeError):
    """An attribute that other arrays have: mutable arrays, or arrays with a memory address."""


_WAYS_OUT = {
    "data": "np.asarray(x).data is the memory of an array on the CPU",
    "fill": "Make a new array: x = jnp.full_like(x, value)",
    "flags": "No array can be written to; np.asarray(x).flags tells how its memory is laid out",
    "flat": "Write x.ravel() in place of x.flat",
    "itemset": "Make a new array: x = x.at[index].set(value)",
    "partition": "Make a new array: x = jnp.partition(x, kth)",
    "put": "Make a new array: x = jnp.put(x, index, values, inplace=False)",
    "resize": "Make a new array: x = jnp.resize(x, shape)",
    "setfield": "Make a new array: x = x.at[index].set(value)",
    "setflags": "No array can be written to: leave the call out",
    "strides": "np.asarray(x).strides tells how the memory of an array is laid out",
    "tofile": "Write np.asarray(x).tofile(path), or jnp.save(path, x)",
}


_IMMUTABLE = (
    "Arrays have no attribute {!r}: they never change, and where their elements lie is not for "
    "programs to see."
)

_WAYS_OUT_OF_TRACES = {
    "copy_to_host_async": "Copy the function's results",
    "device": "Ask the function's arguments before it is called, or its results",
    "is_ready": "Ask the function's results",
    "sharding": "axir.debug.inspect_array_sharding tells how an array will be spread over devices",
}
_TRACED = (
    "Traced arrays have no attribute {!r}: they are still to be computed, wherever their program "
    "runs."
)


class _Absent:
    """A descriptor with an error that names the replacement of an attribute."""

    def __init__(self, name: str, what: str, way_out: str):
        self.message, self.way_out = what.format(name), way_out

    def __get__(self, array: object, owner: type) -> NoReturn:
        raise AbsentAttributeError(self.message, f"{self.way_out}.")


def _install_ways_out() -> None:
    """Gives arrays and tracers the errors of absent attributes."""
    for name, way_out in _WAYS_OUT.items():
        setattr(Array, name, _Absent(name, _IMMUTABLE, way_out))
    for name, way_out in _WAYS_OUT_OF_TRACES.items():
        setattr(Tracer, name, _Absent(name, _TRACED, way_out))


# Methods ------------------------------------------------------------------------------------------


# Operators -------------------------------------------------------------------------------------

_OPERANDS = frozenset((ConcreteArray, Tracer, *SCALARS))

_BINARY_OPERATORS = {
    "add": arithmetic.add,
    "sub": arithmetic.subtract,
    "mul": arithmetic.multiply,
    "truediv": arithmetic.divide,
    "floordiv": arithmetic.floor_divide,
    "mod": arithmetic.remainder,
    "divmod": arithmetic.divmod,
    "matmul": linear_algebra.matmul,
    "and": logic.bitwise_and,
    "or": logic.bitwise_or,
    "xor": logic.bitwise_xor,
    "lshift": logic.left_shift,
    "rshift": logic.right_shift,
}
_COMPARISONS = {
    "eq": logic.equal,
    "ne": logic.not_equal,
    "lt": logic.less,
    "le": logic.less_equal,
    "gt": logic.greater,
    "ge": logic.greater_equal,
}
_UNARY_OPERATORS: dict[str, UserFunction] = {
    "neg": arithmetic.negative,
    "pos": arithmetic.positive,
    "abs": arithmetic.absolute,
    "invert": logic.invert,
}


def _is_operand(other: ArrayLike) -> bool:
    """Tells whether an operator takes an object; others may have a reflected operator."""
    return isinstance(other, (np.ndarray, np.generic, *SCALARS)) or hasattr(
        type(other), "__jax_array__"
    )


def _refuse(name: str, other: ArrayLike) -> UserObject:
    """Returns NotImplemented; for lists and tuples it raises an error with the way out."""
    if type(other) in (list, tuple):
        raise not_an_array(name, other, 1)
    return NotImplemented


def _operator(
    name: str, function: Callable[[UserObject, UserObject], UserObject]
) -> Callable[[UserObject, UserObject], UserObject]:
    def operator(self: Value, other: ArrayLike) -> UserObject:
        try:
            if type(other) in _OPERANDS or _is_operand(other):
                return function(self, other)
            return _refuse(name, other)
        except Exception as error:
            leave_out_own_frames(error)
            raise

    operator.__name__ = operator.__qualname__ = f"__{name}__"
    return operator


def _reflected(
    name: str, function: Callable[[UserObject, UserObject], UserObject]
) -> Callable[[UserObject, UserObject], UserObject]:
    def operator(self: Value, other: ArrayLike) -> UserObject:
        try:
            if type(other) in _OPERANDS or _is_operand(other):
                return function(other, self)
            return _refuse(name, other)
        except Exception as error:
            leave_out_own_frames(error)
            raise

    operator.__name__ = operator.__qualname__ = f"__r{name}__"
    return operator


def _comparison_of_tracers(name: str) -> Callable[[UserObject, UserObject], UserObject]:
    """Returns an operator on tracers, which as variables of jaxprs are equal only to themselves.

    A tracer of a finished trace has no elements any more.
    """
    elementwise, is_equality = getattr(Array, name), name == "__eq__"

    def compare(self: Tracer, other: object) -> UserObject:
        if not self.owner.is_open and isinstance(other, Var):
            is_left_behind = not isinstance(other, Tracer) or not other.owner.is_open
            if is_left_behind:
                return (self is other) == is_equality
        return elementwise(self, other)

    compare.__name__ = compare.__qualname__ = name
    return compare


def _power(self: Value, other: ArrayLike, modulus: None = None) -> object:
    if modulus is not None:
        return NotImplemented
    if type(other) in _OPERANDS or _is_operand(other):
        return arithmetic.power(self, other)
    return _refuse("pow", other)


def _round(self: Value, ndigits: int | None = None) -> Value:
    """Rounds to decimals; without them to integers, as Python's `round` does."""
    if ndigits is None:
        return scalar_types.astype(rounding.round(self), int)
    return rounding.round(self, ndigits)


def _install_operators() -> None:
    for name, function in (_BINARY_OPERATORS | _COMPARISONS).items():
        setattr(Array, f"__{name}__", _operator(name, function))
    for name in ("__eq__", "__ne__"):
        setattr(Tracer, name, _comparison_of_tracers(name))
    for name, function in _BINARY_OPERATORS.items():
        setattr(Array, f"__r{name}__", _reflected(name, function))
    for name, function in _UNARY_OPERATORS.items():
        setattr(Array, f"__{name}__", function)
    _install(
        Array,
        __pow__=_power,
        __rpow__=_reflected("pow", arithmetic.power),
        __round__=_round,
    )
    _install(ConcreteArray, __getitem__=indexing.getitem_array)
    _install(Tracer, __getitem__=indexing.getitem_tracer)


def _install(target: type, **members: object) -> None:
    for name, member in members.items():
        setattr(target, name, member)


# Methods ---------------------------------------------------------------------------------------

_METHODS: dict[str, UserFunction] = {
    "all": reductions.all,
    "any": reductions.any,
    "argmax": positions.argmax,
    "argmin": positions.argmin,
    "argpartition": sorting.argpartition,
    "argsort": sorting.argsort,
    "choose": placing.choose,
    "clip": selection.clip,
    "conj": exponential.conjugate,
    "conjugate": exponential.conjugate,
    "cumprod": cumulative.cumprod,
    "cumsum": cumulative.cumsum,
    "diagonal": diagonals.diagonal,
    "dot": linear_algebra.dot,
    "max": reductions.max,
    "mean": moments.mean,
    "min": reductions.min,
    "nonzero": selection.nonzero,
    "prod": reductions.prod,
    "ptp": reductions.ptp,
    "ravel": manipulation.ravel,
    "repeat": joining.repeat,
    "round": rounding.round,
    "searchsorted": sorting.searchsorted,
    "sort": sorting.sort,
    "squeeze": manipulation.squeeze,
    "std": moments.std,
    "sum": reductions.sum,
    "swapaxes": manipulation.swapaxes,
    "take": taking.take,
    "trace": diagonals.trace,
    "var": moments.var,
}


def _reshape(
    self: Value,
    *shape: UserObject,
    order: str = "C",
    copy: bool | None = None,
    out_sharding: UserObject = None,
) -> Value:
    """Gives the array another shape: `x.reshape(2, 3)` or `x.reshape((2, 3))`."""
    new_shape = shape[0] if len(shape) == 1 else shape
    if out_sharding is None:
        return manipulation.reshape(self, new_shape, order, copy=copy)
    return manipulation.reshape(self, new_shape, order, copy=copy, out_sharding=out_sharding)


def _transpose(self: Value, *axes: object) -> Value:
    """Permutes the axes: `x.transpose()`, `x.transpose(1, 0)` or `x.transpose((1, 0))`."""
    if not axes:
        return manipulation.transpose(self)
    is_sequence = len(axes) == 1 and not hasattr(axes[0], "__index__")
    return manipulation.transpose(self, axes[0] if is_sequence else axes)


def _flatten(self: Value, order: str = "C", *, out_sharding: object = None) -> Value:
    """Flattens the array to one axis."""
    return manipulation.ravel(self, order, out_sharding=out_sharding)


def _astype(self: Value, dtype: DTypeLike, copy: bool = False, device: object = None) -> Value:
    """Converts to another dtype; see `axir.numpy.astype`."""
    return scalar_types.astype(self, dtype, copy=copy, device=device)


def _copy(self: Value) -> Value:
    """Returns a copy."""
    return array(self, copy=True)


def _to_device(self: Value, device: object, *, stream: None = None) -> Value:
    """Moves the array to a device."""
    return device_put(self, device)


def _compress(
    self: Value,
    condition: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Value:
    """Returns the slices along an axis that a condition chooses; see `axir.numpy.compress`."""
    return edits.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def _contains(self: Value, element: ArrayLike) -> bool:
    """Tells whether any element of a vector is equal to a value."""
    if self.ndim != 1:
        raise ParameterError(
            f"'in' searches arrays of one axis, and this one is {self.type}.",
            "Write jnp.any(array == element), or search one of its axes with jnp.isin.",
        )
    return bool(reductions.any(logic.equal(self, element)))


def _array_namespace(self: Value, *, api_version: str | None = None) -> object:
    """Returns the module `axir.numpy`, as the array API standard asks."""
    return sys.modules["axir.numpy"]


def _install_methods() -> None:
    _install(Array, **_METHODS)
    _install(
        Array,
        reshape=_reshape,
        transpose=_transpose,
        flatten=_flatten,
        astype=_astype,
        compress=_compress,
        copy=_copy,
        view=array_placement.view,
        byteswap=array_placement.byteswap,
        to_device=_to_device,
        __array_namespace__=_array_namespace,
        __contains__=_contains,
    )
    properties: dict[str, Callable[[UserObject], UserObject]] = {
        "T": manipulation.transpose,
        "mT": manipulation.matrix_transpose,
        "real": exponential.real,
        "imag": exponential.imag,
        "at": At,
    }
    for name, getter in properties.items():
        setattr(Array, name, property(getter))
    _install_ways_out()
    array_placement.install()
    # The class also has the names of attributes that arrays and tracers implement separately.
    for name in vars(ConcreteArray).keys() & vars(Tracer).keys():
        if not hasattr(Array, name) and (name == "__getitem__" or not name.startswith("_")):
            setattr(Array, name, vars(ConcreteArray)[name])


def install() -> None:
    """Installs all operators and methods; called once, when `axir.numpy` is imported."""
    _install_operators()
    _install_methods()
