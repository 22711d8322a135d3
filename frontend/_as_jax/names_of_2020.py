"""Functions and classes of JAX of 2020 that have another name or form today, or none.

Documents and programs of that time use them. Elsewhere: names that `axir` always has, such as
`axir.numpy.msort` or `axir.experimental.stax`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from axir import Device, custom_gradient, custom_jvp, jit, process_count, tree
from axir import numpy as jnp
from axir.core import ShapedArray
from axir.dialect.core.annotations import UserFunction, UserObject
from axir.dialect.core.array import Array, ConcreteArray
from axir.stages import Lowered

DeviceArray = Array
host_count = process_count


def host_ids() -> list[int]:
    """Returns the indices of the processes."""
    return list(range(process_count()))


class Computation:
    """A program as text. It is StableHLO; in 2020 it was XLA's own form."""

    def __init__(self, lowered: Lowered):
        self._lowered = lowered

    def as_hlo_text(self) -> str:
        """Returns the program."""
        return self._lowered.as_text()

    GetHloText = as_hlo_text


def xla_computation(
    fun: Callable[..., object], static_argnums: int | tuple[int, ...] = ()
) -> UserFunction:
    """Returns a function of example arguments that returns the program of `fun`.

    Args:
        fun: Function of arrays or trees of arrays.
        static_argnums: Positions of arguments that are part of the program.

    >>> computation = xla_computation(lambda x: x + x)(1.0)
    >>> "stablehlo.add" in computation.as_hlo_text()
    True
    """
    compiled = jit(fun, static_argnums=static_argnums)

    def computation(*args: object, **kwargs: object) -> Computation:
        return Computation(compiled.lower(*args, **kwargs))

    return computation


# Derivatives before `custom_jvp` and `custom_vjp` -------------------------------------------------


class custom_transforms:
    """A function with a derivative that may be given by `defjvp`, `defvjp` and similar functions.

    >>> import axir
    >>> f = custom_transforms(lambda x: x ** 2)
    >>> defvjp(f, lambda cotangent, out, x: 10 * cotangent * x)
    >>> float(axir.grad(f)(3.0))
    30.0
    """

    def __init__(self, fun: UserFunction):
        self.fun = fun
        self.with_rule = fun
        functools.update_wrapper(self, fun)

    def __call__(self, *args: object) -> UserObject:
        return self.with_rule(*args)


def defjvp_all(fun: custom_transforms, custom_jvp_rule: UserFunction) -> None:
    """Defines the rule `(primals, tangents) -> (output, tangent)`."""
    ruled = custom_jvp(fun.fun)
    ruled.defjvp(custom_jvp_rule)
    fun.with_rule = ruled


def defjvp(fun: custom_transforms, *jvprules: Callable[..., object] | None) -> None:
    """Defines for each argument `(tangent, output, *primals) -> tangent`; None is zero."""
    ruled = custom_jvp(fun.fun)
    ruled.defjvps(*jvprules)
    fun.with_rule = ruled


def defvjp_all(fun: custom_transforms, custom_vjp_rule: Callable[..., object]) -> None:
    """Defines `(*primals) -> (output, pullback)`; the pullback returns a tuple of cotangents."""
    fun.with_rule = custom_gradient(custom_vjp_rule)


def defvjp(fun: custom_transforms, *vjprules: Callable[..., object] | None) -> None:
    """Defines for each argument `(cotangent, output, *primals) -> cotangent`; None is zero."""

    def rule(*primals: object) -> tuple[UserObject, UserFunction]:
        out = fun.fun(*primals)

        def pullback(cotangent: object) -> tuple[UserObject, ...]:
            return tuple(
                tree.map(jnp.zeros_like, primal) if one is None else one(cotangent, out, *primals)
                for one, primal in zip(vjprules, primals, strict=True)
            )

        return out, pullback

    defvjp_all(fun, rule)


# Types and memory of arrays -----------------------------------------------------------------------


def raise_to_shaped(aval: ShapedArray, weak_type: bool | None = None) -> ShapedArray:
    """Returns a type unchanged: it is one of shape and dtype already.

    Args:
        aval: The type.
        weak_type: Whether the dtype yields to others; None leaves it as it is.
    """
    return aval if weak_type is None else aval.update(weak_type=weak_type)


class DeviceBuffer:
    """The memory of an array."""

    def __init__(self, array: Array):
        self._array = array

    def device(self) -> Device:
        """Returns the device that the memory belongs to."""
        array: UserObject = self._array
        (device,) = array.devices()
        return device

    def to_py(self) -> np.ndarray:
        """Returns the elements as an array of NumPy's."""
        return np.asarray(self._array)


def give_arrays_buffers() -> None:
    """Gives arrays the attribute `device_buffer`."""
    setattr(ConcreteArray, "device_buffer", property(DeviceBuffer))  # noqa: B010
