"""`axir.scipy.integrate`: integrals of functions given at points.

>>> import axir.numpy as jnp
>>> from axir.scipy.integrate import trapezoid
>>> trapezoid(jnp.array([0.0, 1.0, 4.0]), dx=0.5)
Array(1.5, dtype=float32)
"""

from __future__ import annotations

from axir.numpy import trapezoid

__all__ = ["trapezoid"]
