"""Functions of scalars that reductions take: traced, checked, applied, and recognized.

Elsewhere: the reductions by such functions (`variadic_reduce.py`,
`dialect/ops/windows/reduce_window_by_function.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from axir.dialect.core.annotations import Foreign, UserFunction, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.memo import derived
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import as_value, instantiate
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import function_name, trace_function
from axir.dialect.program.rules import Operand, Value

from .folding import all_ones, greatest, least

_PYTHON_SCALARS = (bool, int, float, complex)


class Computation:
    """The arguments of a reduction by a function: arrays, initial values and the function.

    Args:
        name: The op, as named in messages.
        operands: An array, or a tuple or list of arrays.
        init_values: A scalar for each array; Python numbers take the dtype of the array.
        computation: Combines accumulators and elements: two scalars, or two tuples of scalars.

    Attributes:
        arrays: The operands.
        inits: The initial values.
        function: The computation as a function of all accumulators, then all elements.

    Raises:
        ShapeError: for operands of different shapes, or initial values that are not scalars.
        DTypeError: for initial values or results of other dtypes than the operands.
        ParameterError: for different numbers of operands and initial values, and for a computation
            that uses traced values from outside.
    """

    def __init__(
        self, name: str, operands: UserObject, init_values: UserObject, computation: UserFunction
    ):
        self._is_single = not isinstance(operands, (tuple, list))
        self._container: Foreign = None if self._is_single else type(operands)
        self.arrays = [as_value(x) for x in ([operands] if self._is_single else operands)]
        is_sequence = isinstance(init_values, (tuple, list))
        inits = list(init_values) if is_sequence else [init_values]
        _check_counts(name, self.arrays, inits)
        self.inits = [_init_value(i, x.dtype) for i, x in zip(inits, self.arrays, strict=True)]
        _check_inits(name, self.arrays, self.inits)
        self._name, self._computation = name, computation

    @functools.cached_property
    def function(self) -> Function:
        """The computation, traced."""
        types = [ShapedArray((), x.dtype) for x in self.arrays] * 2
        function = trace_function(self._body, types, name=function_name(self._computation))
        _check_computation(self._name, function, self.inits)
        return function

    def _body(self, *scalars: Value) -> Sequence[Value]:
        if self._is_single:
            return [self._computation(*scalars)]
        count = len(self.arrays)
        accumulators, elements = scalars[:count], scalars[count:]
        results = self._computation(self._container(accumulators), self._container(elements))
        return results if isinstance(results, (tuple, list)) else [results]

    def packed(self, results: Sequence[Value]) -> UserObject:
        """Returns results in the form of the operands."""
        return results[0] if self._is_single else self._container(results)

    def monoid(self) -> str | None:
        """Returns the name of the computation's only op, if it starts from the op's identity.

        The names are the keys of `IDENTITIES`.
        """
        if len(self.arrays) != 1:
            return None
        primitive = getattr(self._computation, "primitive", None)
        name = primitive.name if primitive is not None else single_op(self.function)
        return name if _starts_from_identity(name, self.inits[0]) else None


def _init_value(init: Operand, dtype: np.dtype) -> Value:
    if type(init) in _PYTHON_SCALARS:
        return convert_element_type(init, dtype)
    return as_value(init)


def _check_counts(name: str, arrays: Sequence[Value], inits: Sequence[Value]) -> None:
    if not arrays:
        raise ParameterError(f"{name} needs at least one operand.")
    if len(arrays) != len(inits):
        raise ParameterError(
            f"{name}: {len(arrays)} operands, but {len(inits)} initial values.",
            "Give each operand its own initial value.",
        )


def _check_inits(name: str, arrays: Sequence[Value], inits: Sequence[Value]) -> None:
    for x, init in zip(arrays, inits, strict=True):
        if init.shape:
            raise ShapeError(f"{name}: initial values are scalars, but one is {init.aval}.")
        if x.dtype != init.dtype:
            raise DTypeError(
                f"{name}: the initial value {init.aval} of operand {x.aval} has another dtype.",
                f"Write numpy.{x.dtype}(...).",
            )


def check_equal_shapes(name: str, operands: Sequence[ShapedArray]) -> None:
    """Raises `ShapeError` unless all operands are of one shape."""
    if any(x.shape != operands[0].shape for x in operands):
        raise ShapeError(
            f"{name}: operands must be of one shape, but are {' and '.join(map(str, operands))}.",
            "Broadcast them first.",
        )


def check_captures(name: str, function: Function) -> None:
    """Raises `ParameterError` if a computation uses traced values from outside."""
    if function.captures:
        raise ParameterError(
            f"{name}: the computation {function.name!r} uses values from around it "
            f"({', '.join(str(v.type) for v in function.captures)}).",
            "Compute with its arguments and with constants only; apply the rest after the "
            "reduction.",
        )


def _check_computation(name: str, function: Function, inits: Sequence[Value]) -> None:
    check_captures(name, function)
    expected = [(init.shape, init.dtype) for init in inits]
    if [(t.shape, t.dtype) for t in function.output_types] != expected:
        raise DTypeError(
            f"{name}: the computation {function.name!r} must return values of the types of the "
            f"initial values ({', '.join(str(i.aval) for i in inits)}), but returns "
            f"({', '.join(map(str, function.output_types))}).",
            "Cast its results with x.astype(dtype).",
        )


# Application -----------------------------------------------------------------------------------


def apply_elementwise(function: Function, arguments: Sequence[Value]) -> list[Value]:
    """Applies a function of scalars to each element of arrays of one shape."""
    shape = arguments[0].shape
    if shape == ():
        return function.evaluate(*arguments)
    size = math.prod(shape)
    if size == 0:
        return [instantiate(Zero(ShapedArray(shape, t.dtype))) for t in function.output_types]
    axes = (0,) * len(arguments)
    batched = derive(function, "vmap", size, axes, (0,) * len(function.outputs)).function
    results = batched.evaluate(*(reshape(x, (size,)) for x in arguments))
    return [reshape(x, shape) for x in results]


@derived
def paired_with_tangents(function: Function, is_inexact: tuple[bool, ...]) -> Function:
    """Returns the computation on accumulators with tangents and elements with tangents."""
    tangent = derive(function, "jvp", is_inexact * 2, True).function
    count, active = len(is_inexact), sum(is_inexact)
    types = tangent.input_types

    def body(*arguments: Value) -> list[Value]:
        half = count + active
        lhs, rhs = arguments[:half], arguments[half:]
        return tangent.evaluate(*lhs[:count], *rhs[:count], *lhs[count:], *rhs[count:])

    primal, moving = types[: 2 * count], types[2 * count :]
    paired = [*primal[:count], *moving[:active], *primal[count:], *moving[active:]]
    return trace_function(body, paired, name=f"{function.name}_pairs")


# Recognition -----------------------------------------------------------------------------------

IDENTITIES: dict[str, Callable[[np.dtype], Any]] = {
    "add": lambda dtype: 0,
    "mul": lambda dtype: 1,
    "max": least,
    "min": greatest,
    "and": all_ones,
    "or": lambda dtype: 0,
    "xor": lambda dtype: 0,
}
"""The ops that are associative and commutative, and their neutral elements by dtype."""


def single_op(function: Function) -> str | None:
    """Returns the name of the only op of a function of two scalars, or None."""
    if len(function.equations) != 1:
        return None
    (equation,) = function.equations
    if set(equation.operands) != set(function.inputs) or len(function.inputs) != 2:
        return None
    is_result = function.outputs[0] is equation.results[0]
    return equation.primitive.name if is_result else None


def _starts_from_identity(name: str | None, init: Value) -> bool:
    """Tells whether an initial value is known to be the identity of an op."""
    if name not in IDENTITIES or type(init) is not ConcreteArray:
        return False
    return bool(init.host() == IDENTITIES[name](init.dtype))
