"""The way to define derivatives before `custom_jvp` and `custom_vjp`."""

from __future__ import annotations

import functools
from collections.abc import Callable

from axir import custom_gradient, custom_jvp, tree
from axir import numpy as jnp
from axir.dialect.core.annotations import UserFunction, UserObject

__all__ = ["custom_transforms", "defjvp", "defjvp_all", "defvjp", "defvjp_all"]


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
