"""Modes of a pullback for the gradient of an argument, under the names of `jax.ad`.

In 2020 `jax.ad` was today's `axir.interpreters.ad`; the names of that module are also here.

>>> import axir, axir.numpy as jnp
>>> _, pullback = axir.vjp(jnp.dot, jnp.ones(2), jnp.arange(2.0))
>>> pullback.with_refs(GradValue(), DontWant())(1.0)
(Array([0., 1.], dtype=float32), DidntWant())
"""

from __future__ import annotations

from axir._transforms.gradient_refs import DidntWant, DontWant, GradRef, GradValue
from axir.dialect.core.annotations import UserObject

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> UserObject:
    from axir.interpreters import ad  # late: programs of today do not ask for it

    try:
        return getattr(ad, name)
    except AttributeError:
        raise AttributeError(f"module 'axir.ad' has no attribute {name!r}") from None
