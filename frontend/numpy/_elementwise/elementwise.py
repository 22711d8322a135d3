"""Elementwise functions of `axir.numpy`, made from the operations of the dialect.

A function promotes its arguments, broadcasts them, and applies an operation. Most calls need
neither: when the arguments are arrays of one type (or an array and a Python scalar), the operation
is applied at once. Elsewhere: the functions themselves (`arithmetic.py`, `exponential.py`,
`logic.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray, Memories
from axir.dialect.core.config import config
from axir.dialect.core.host_arrays import ignore_floating_point_warnings, restore_warnings
from axir.dialect.core.places import common_place, place_of_result, settled
from axir.dialect.core.state import state
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.primitive import Primitive, check_finite
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.promotion import (
    broadcast_arguments,
    broadcast_shape,
    constant,
    is_outgrown,
    promote_inexact,
)

Promotion = Callable[..., list[Value]]

BOOL = (dtypes.bool_,)
INTEGER = (*dtypes.SIGNED, *dtypes.UNSIGNED)
FLOAT = dtypes.FLOATS
COMPLEX = dtypes.COMPLEXES
INEXACT = (*FLOAT, *COMPLEX)
NUMBER = (*INTEGER, *INEXACT)

_UNARY_DOCUMENTATION = """{summary}

    Applied elementwise, with the dtypes of JAX: {promotion}.

    Args:
        x: Array or scalar.

    Returns:
        Array of the shape of `x`.

    Raises:
        NonArrayArgumentError: if `x` is a list or another object that is not an array.
        DTypeError: for a dtype on which the function is not defined.
    """
_BINARY_DOCUMENTATION = """{summary}

    Applied elementwise to arrays that broadcast against each other: {promotion}.

    Args:
        x: Array or scalar.
        y: Array or scalar.

    Returns:
        Array of the shape that `x` and `y` broadcast to.

    Raises:
        NonArrayArgumentError: for a list or another object that is not an array.
        BroadcastError: if the shapes do not fit.
        DTypeError: for a dtype on which the function is not defined.
    """
_PROMOTIONS = {
    "promote_inexact": "integers and bools become floats, weak types stay weak",
    "promote_numeric": "arguments promote to one dtype, and bools become integers",
    "promote_bool": "numbers count as true unless they are zero",
    "promote_arguments": "arguments promote to one dtype, in which Python scalars are weak",
}


def documented(
    function: UserObject, name: str, text: str, summary: str, promotion: Promotion
) -> UserObject:
    """Gives a function its name and documentation."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text.format(summary=summary, promotion=_PROMOTIONS[promotion.__name__])
    return function


def unary(
    name: str,
    operation: Callable[..., Value],
    summary: str,
    *,
    promotion: Promotion = promote_inexact,
    domain: Collection[np.dtype] = INEXACT,
) -> Callable[[UserObject], Value]:
    """Makes a function of one argument.

    Args:
        name: NumPy's name.
        operation: What to apply to the promoted argument.
        summary: First sentence of the documentation.
        promotion: How to promote the argument.
        domain: dtypes that need no promotion.
    """
    apply = operation.primitive.bind if hasattr(operation, "primitive") else operation
    direct = frozenset(domain)

    def function(x: ArrayLike, /) -> Value:
        if (type(x) is ConcreteArray or type(x) is Tracer) and x.type.dtype in direct:
            return apply(x)
        return apply(*promotion(name, x))

    return documented(function, name, _UNARY_DOCUMENTATION, summary, promotion)


def binary(  # noqa: C901
    name: str,
    operation: Callable[..., Value],
    summary: str,
    *,
    promotion: Promotion,
    domain: Collection[np.dtype] = INEXACT,
    on_bool: Callable[..., Value] | None = None,
) -> Callable[[UserObject, UserObject], Value]:
    """Makes a function of two arguments.

    Args:
        name: NumPy's name.
        operation: What to apply to arguments of one dtype and one shape (or rank 0).
        summary: First sentence of the documentation.
        promotion: How to promote the arguments.
        domain: dtypes that need no promotion when both arguments have them; without bool.
        on_bool: What to apply instead to bools.
    """
    primitive = getattr(operation, "primitive", None)
    apply = operation if primitive is None else primitive.bind
    apply_promoted = apply if on_bool is None else _with_bool(apply, on_bool)
    direct = frozenset(domain)
    numbers = direct & frozenset(NUMBER)
    inexact = direct & frozenset(INEXACT)

    # One flat body: each call of a Python function costs a twentieth of an operation.
    def function(x: UserObject, y: UserObject, /) -> Value:  # noqa: C901
        x_class, y_class = type(x), type(y)
        if x_class is ConcreteArray or x_class is Tracer:
            x_type = x.type
            dtype = x_type.dtype
            if dtype in direct:
                if y_class is ConcreteArray or y_class is Tracer:
                    if y.type is x_type:
                        return apply(x, y)
                elif (y_class is int and dtype in numbers) or (
                    y_class is float and dtype in inexact
                ):
                    if not (x_type.weak_type and is_outgrown(dtype)):
                        return apply(x, constant(y, dtype, x_type.weak_type))
        elif y_class is ConcreteArray or y_class is Tracer:
            y_type = y.type
            dtype = y_type.dtype
            if (x_class is int and dtype in numbers) or (x_class is float and dtype in inexact):
                if not (y_type.weak_type and is_outgrown(dtype)):
                    return apply(constant(x, dtype, y_type.weak_type), y)
        x, y = promotion(name, x, y)
        if x.type.shape != y.type.shape:
            if (
                type(x) is ConcreteArray
                and type(y) is ConcreteArray
                and x.type.dtype in direct
                and primitive
                and are_local(x, y)
            ):
                return evaluate_broadcast(primitive, name, x, y)
            x, y = broadcast_arguments(name, x, y)
        return apply_promoted(x, y)

    return documented(function, name, _BINARY_DOCUMENTATION, summary, promotion)


def _with_bool(
    operation: Callable[..., Value], on_bool: Callable[..., Value]
) -> Callable[..., Value]:
    def apply(x: Value, y: Value) -> Value:
        return on_bool(x, y) if x.type.dtype == dtypes.bool_ else operation(x, y)

    return apply


def are_local(*arrays: ConcreteArray) -> bool:
    """Tells whether arrays are in the host's memory, and NumPy may compute with them there."""
    if state.keeps_origins:
        return False
    return not Memories.has_remote or all([x.remote_device is None for x in arrays])


def evaluate_broadcast(
    primitive: Primitive, name: str, x: ConcreteArray, y: ConcreteArray
) -> ConcreteArray:
    """Evaluates a primitive on arrays of different shapes; NumPy broadcasts them."""
    shape = broadcast_shape(name, (x.type.shape, y.type.shape))
    types = tuple([ShapedArray(shape, t.dtype, t.weak_type) for t in (x.type, y.type)])
    result_type = primitive.apply_to(types, {}).results
    assert primitive.evaluate is not None
    return evaluate(name, primitive.evaluate, result_type, x, y)


def evaluate(
    name: str, function: Callable[..., object], result_type: ShapedArray, *operands: ConcreteArray
) -> ConcreteArray:
    """Computes a NumPy function of concrete arrays, as a single operation."""
    device = None
    hosts = []
    for operand in operands:
        hosts.append(operand.host())
        place = operand._device
        if place is not None and place is not device:
            device = place if device is None else common_place(name, operands)
    token = ignore_floating_point_warnings()
    try:
        host = function(*hosts)
    finally:
        restore_warnings(token)
    if type(host) is not np.ndarray or host.dtype != result_type.dtype:
        host = np.asarray(host, dtype=result_type.dtype)
    if config.jax_debug_nans or config.jax_debug_infs:
        check_finite(name, host)
    if device is not None:
        device = place_of_result(device, operands, result_type.shape)
    made = ConcreteArray(result_type, host, None, device)
    return made if config.jax_default_device is None or device is not None else settled(made)


def evaluated_by(
    numpy_function: Callable[..., object], domain: Collection[np.dtype]
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Makes a composed function of two operands evaluate concrete ones in one step (a decorator).

    Args:
        numpy_function: The NumPy function that computes the same.
        domain: dtypes for which it does, exactly or to rounding.
    """
    direct = frozenset(domain)

    def decorate(composed: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
        def apply(x: Value, y: Value) -> Value:
            if (
                type(x) is ConcreteArray
                and type(y) is ConcreteArray
                and x.type.dtype in direct
                and are_local(x, y)
            ):
                x_type, y_type = x.type, y.type
                shape = x_type.shape or y_type.shape
                is_weak = x_type.weak_type and y_type.weak_type
                result_type = ShapedArray(shape, x_type.dtype, is_weak)
                return evaluate(composed.__name__, numpy_function, result_type, x, y)
            return composed(x, y)

        return apply

    return decorate
