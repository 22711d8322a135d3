"""Names for types that annotations in all rooms share.

Python objects of users pass through axir unread, and some libraries have no types. The names for
such objects are declared here, once, as `Any` with a reason; no other names are `Any`. Elsewhere:
the types of arguments and results of primitives' rules (`dialect/program/rules.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np

# Objects that pass through ------------------------------------------------------------------------

UserObject: TypeAlias = Any
"""A Python object of the user's, of which nothing is known: what a function of the user's takes and
gives, an attribute of a class of the user's, an object that is yet to be recognized."""

Tree: TypeAlias = object
"""Containers in containers, with leaves of any kind, which are looked at before they are used."""

PyTree: TypeAlias = Any
"""Containers in containers, with leaves of any kind."""

UserFunction: TypeAlias = Callable[..., Any]
"""A callable of the user's: of any arguments, with any result."""

P = ParamSpec("P")
"""The arguments of a callable, which a transformation keeps."""

R = TypeVar("R")
"""The result of a callable."""

T = TypeVar("T")
"""A tree of arrays that comes back with the structure that it had."""

Returning: TypeAlias = Callable[..., R]
"""A function with a result of a given type, whose arguments only those who call it know."""

Decorated: TypeAlias = Any
"""What a decorator of axir's makes of a callable: of the callable's own signature."""

Param: TypeAlias = Any
"""The value of a parameter of an op: a number, string, tuple, dtype, array, function, or an object
of the user's. Each rule declares the types of its own parameters."""

Params: TypeAlias = dict[str, Any]
"""Parameters of an op by name."""

Options: TypeAlias = Any
"""Keyword arguments (or all arguments) that are passed on as they are: who gets them has types."""

OptionValue: TypeAlias = Any
"""The value of an option, of the type that the table of options says."""

Made: TypeAlias = Any
"""What a table of derived things holds; who derives it knows its type."""

Foreign: TypeAlias = Any
"""An object of a library without types: of IREE's wheels, or of the standard library's depths."""

Extent: TypeAlias = Any
"""How large an array is along an axis: an int, or a `SymbolicDim` where it is not known. Rules are
written for integers, and hold for what has their operators."""

# Values that users write --------------------------------------------------------------------------

Scalar: TypeAlias = bool | int | float | complex
"""A Python number."""

NumPyLike: TypeAlias = np.ndarray | np.generic
"""What NumPy has: an array, or an element of one."""

DTypeLike: TypeAlias = np.dtype | type | str | None
"""What users write for a dtype: NumPy's or a `KeyDtype`, its class or name, or a Python type."""

HostArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]
"""A NumPy array: the elements of an array on the host."""

Dtype: TypeAlias = np.dtype[Any]
"""The dtype of an array of numbers."""

AnyDtype: TypeAlias = Any
"""The dtype of an array: NumPy's, or a `KeyDtype`, which is none but behaves like one."""

ShapeLike: TypeAlias = int | Sequence[int]
"""A shape, or the extent of the only axis."""

Axes: TypeAlias = int | Sequence[int] | None
"""Axes over which a function works: one, several, or all (None)."""

PrecisionLike: TypeAlias = Any
"""What users write for the precision of a product: a name, an algorithm, one for each operand."""

IndexLike: TypeAlias = Any
"""What stands in brackets behind an array: integers, slices, None, ..., arrays, tuples of these."""

PaddingLike: TypeAlias = str | Sequence[tuple[int, int]]
"""What is added around an array: places before and after along each axis, or a rule by name."""

NestedNumbers: TypeAlias = Any
"""The elements of an array as a number or as lists in lists, as deep as the array has axes."""
