"""Jaxprs and primitives, for custom interpreters and users' primitives.

>>> import axir, axir.numpy as jnp
>>> from axir.extend import core
>>> closed = axir.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
>>> [equation.primitive.name for equation in closed.jaxpr.eqns]
['sin', 'mul']
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Set

import numpy as np

from axir._arguments.arguments import type_of
from axir._made_modules import LazyModule
from axir._primitive_names import OTHER_NAMES, composite_primitives, primitive_named
from axir._user_primitives import Primitive, gensym, jaxpr_as_fun, new_jaxpr_eqn
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import Array, ConcreteArray
from axir.dialect.core.dtypes import as_dtype
from axir.dialect.core.errors import AxirError, AxisError, ConcretizationTypeError
from axir.dialect.core.errors import VerificationError as JaxprTypeError
from axir.dialect.core.symbolic.terms import SymbolicDimError as InconclusiveDimensionOperation
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.equation import Equation as JaxprEqn
from axir.dialect.program.equation import Literal, Var
from axir.dialect.program.function import functions_in
from axir.dialect.program.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr
from axir.dialect.program.module_writer import write_module
from axir.dialect.program.op_table import OPS
from axir.dialect.program.primitive import Primitive as PrimitiveOfTable
from axir.dialect.program.tracer import Trace
from axir.dialect.text.module_reader import parse_module

from ._tracing import (
    find_top_trace,
    get_opaque_trace_state,
    nonempty_axis_env_DO_NOT_USE,
    set_current_trace,
    take_current_trace,
    unsafe_am_i_under_a_jit_DO_NOT_USE,
    unsafe_am_i_under_a_vmap_DO_NOT_USE,
    unsafe_get_axis_names_DO_NOT_USE,
)

__all__ = [
    "ClosedJaxpr", "DebugInfo", "DropVar", "Effect", "Effects", "InconclusiveDimensionOperation",
    "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal", "Primitive", "Trace", "TraceTag", "Var",
    "array_types", "check_jaxpr", "concrete_or_error", "find_top_trace", "gensym",
    "get_opaque_trace_state", "jaxpr_as_fun", "jaxprs_in_params", "mapped_aval", "new_jaxpr_eqn",
    "no_effects", "nonempty_axis_env_DO_NOT_USE", "primal_dtype_to_tangent_dtype", "primitives",
    "set_current_trace", "subjaxprs", "take_current_trace", "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE", "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE", "valid_jaxtype",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class TraceTag:
    """A tag shared by the traces of one transformation, for libraries that make traces."""


class Effect(ABC):  # noqa: B024 - effects share no methods
    """A side effect of a primitive.

    The effects of a jaxpr are the primitives that act in it: these count as effects.
    """


Effect.register(PrimitiveOfTable)
Effects = Set[Effect]
no_effects: Effects = frozenset()


class DropVar(Var):
    """An unused result in an equation.

    In traced jaxprs such results are variables like others.
    """


array_types = {ConcreteArray, np.ndarray, np.generic}


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Raises `JaxprTypeError` if the ops of a jaxpr do not fit together.

    >>> import axir
    >>> check_jaxpr(axir.make_jaxpr(lambda x: x + 1)(1.0))
    """
    parse_module(str(write_module({"main": jaxpr.function})))


def jaxprs_in_params(params: Mapping[str, object]) -> Iterator[Jaxpr]:
    """Yields the jaxprs that parameters of an equation are or hold."""
    for value in params.values():
        for function in functions_in(value):
            yield Jaxpr.of(function, is_called=True)


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Yields the jaxprs that a jaxpr's equations call.

    >>> import axir
    >>> closed = axir.make_jaxpr(axir.jit(lambda x: x + 1))(1.0)
    >>> [len(inner.eqns) for inner in subjaxprs(closed.jaxpr)]
    [1]
    """
    for equation in jaxpr.eqns:
        yield from jaxprs_in_params(equation.params)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Returns the type of one element of a mapped axis; None maps nothing.

    Raises:
        AxisError: if the type has no such axis of that extent.

    >>> mapped_aval(3, 1, ShapedArray((2, 3), np.float32))
    ShapedArray(float32[2])
    """
    if axis is None:
        return aval
    if not 0 <= axis < aval.ndim or aval.shape[axis] != size:
        raise AxisError(f"mapped_aval: {aval} has no axis {axis} of extent {size}.")
    return aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1 :]))


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Returns the type of all elements of a mapped axis, given the type of one.

    >>> unmapped_aval(3, 0, ShapedArray((2,), np.float32))
    ShapedArray(float32[3,2])
    """
    if axis is None:
        return aval
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def primal_dtype_to_tangent_dtype(primal_dtype: object) -> np.dtype:
    """Returns the dtype of the tangents of values: float0 for integers and bools.

    >>> primal_dtype_to_tangent_dtype("bfloat16")
    dtype(bfloat16)
    """
    return ShapedArray((), as_dtype(primal_dtype)).to_tangent_aval().dtype


def concrete_or_error(
    force: Callable[[UserObject], UserObject] | None, val: object, context: str = ""
) -> UserObject:
    """Returns a value that must be known, passed through a function such as `int`.

    Args:
        force: The function; None returns an array.
        val: The value.
        context: The purpose of the value, named in the error.

    Raises:
        ConcretizationTypeError: if only its type is known.

    >>> concrete_or_error(int, np.int32(3))
    3
    """
    convert = force or np.asarray
    try:
        return convert(val)
    except ConcretizationTypeError as error:
        if not context:
            raise
        raise type(error)(f"{context}: {error.message}", error.way_out) from error


def valid_jaxtype(x: object) -> bool:
    """Tells whether a value is an array, a tracer or a scalar.

    >>> valid_jaxtype(1.0), valid_jaxtype("1.0")
    (True, False)
    """
    if isinstance(x, Array):
        return True
    try:
        type_of(x)
    except (AxirError, TypeError, ValueError):
        return False
    return True


def _primitive_names() -> list[str]:
    return sorted({*OTHER_NAMES, *(f"{name}_p" for name in (*OPS, *composite_primitives()))})


primitives = LazyModule(
    f"{__name__}.primitives",
    """The primitives of axir, under names that end in `_p`.

    >>> from axir.extend.core import primitives
    >>> primitives.sin_p.name
    'sin'
    """,
    {},
    primitive_named,
    _primitive_names,
)
