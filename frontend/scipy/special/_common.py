"""Shared by the functions of `axir.scipy.special`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeGuard

import numpy as np

from axir.dialect.core.annotations import HostArray, UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.host_arrays import ignore_floating_point_warnings, restore_warnings
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import scipy_function
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import (
    broadcast_arguments,
    constant,
    promote_inexact,
    require_real,
)


def real_arguments(name: str, *args: object) -> list[Value]:
    """Promotes real arguments to a float dtype and broadcasts them."""
    values = promote_inexact(name, *args)
    require_real(name, *values)
    return broadcast_arguments(name, *values)


def evaluated_by(
    reference: str | Callable[..., HostArray], is_strong: bool = False
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Replaces a formula of several ops by one SciPy function if its values are known.

    Traces contain the formula. Its ops, one by one in Python, would take a hundred times as long as
    SciPy's function. The formula agrees with SciPy's function up to rounding, as a test checks,
    except at the edges. If the results contain a zero, an infinity or nan, the formula computes all
    of them, so that compiled programs give the same results.

    Args:
        reference: Name of a function in `scipy.special`, or a function of NumPy arrays.
        is_strong: Whether the formula's result has no weak type, whatever its operands have.

    Returns:
        A decorator for functions of values of one dtype, also the dtype of the result, and of one
        shape, save for scalars.
    """
    by_scipy: Callable[..., HostArray] = (
        (lambda *hosts: scipy_function(reference)(*hosts))
        if isinstance(reference, str)
        else reference
    )

    def decorate(formula: Callable[..., Value]) -> Callable[..., Value]:
        @functools.wraps(formula)
        def function(*values: Value) -> Value:
            if not all(map(is_known, values)):
                return formula(*values)
            hosts: list[HostArray] = [x.host() for x in values]  # type: ignore[attr-defined]
            if values[0].dtype.itemsize < 4:  # half precision, computed in single
                hosts = [host.astype(np.float32) for host in hosts]
            token = ignore_floating_point_warnings()
            try:
                result = np.asarray(by_scipy(*hosts), dtype=values[0].dtype)
            finally:
                restore_warnings(token)
            if not _is_regular(result):
                return formula(*values)
            kind = next(x.type for x in values if x.type.shape == result.shape)
            if is_strong and kind.weak_type:
                kind = ShapedArray(kind.shape, kind.dtype)
            return ConcreteArray(kind, result)

        return function

    return decorate


def _is_regular(x: HostArray) -> bool:
    """Tells whether all numbers are finite, and none is zero."""
    if x.size == 1:
        value = x.item()
        return value != 0 and value - value == 0
    return bool(np.isfinite(x).all() and x.all())


def is_known(x: Value) -> TypeGuard[ConcreteArray]:
    """Tells whether the elements of a value are known, and no device was chosen for them."""
    return type(x) is ConcreteArray and x._device is None


def weak_constant(value: float, x: Value) -> Value:
    """Returns a constant of the dtype of a value, without a part in its weak type."""
    return constant(value, x.type.dtype, True)


def unary_function(
    name: str, apply: Callable[[Value], Value], summary: str
) -> Callable[[UserObject], Value]:
    """Returns the function of one real argument that applies another to it, documented."""

    def function(x: ArrayLike) -> Value:
        return apply(*real_arguments(name, x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    Args:
        x: Array or scalar of real numbers.

    Raises:
        DTypeError: for complex numbers.
    """
    return function
