"""What a pullback does with the gradient of an argument, under the names of `jax.ad`.

>>> import axir, axir.numpy as jnp
>>> _, pullback = axir.vjp(jnp.dot, jnp.ones(2), jnp.arange(2.0))
>>> pullback.with_refs(GradValue(), DontWant())(1.0)
(Array([0., 1.], dtype=float32), DidntWant())
"""

from __future__ import annotations

from axir._transforms.gradient_refs import DidntWant, DontWant, GradRef, GradValue

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]
