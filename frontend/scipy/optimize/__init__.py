"""`axir.scipy.optimize`: minima of functions of several variables.

>>> import axir.numpy as jnp
>>> from axir.scipy.optimize import minimize
>>> result = minimize(lambda x: ((x - 3) ** 2).sum(), jnp.zeros(2), method="BFGS")
>>> bool(result.success), result.x.round(3)
(True, Array([3., 3.], dtype=float32))
"""

from __future__ import annotations

from ._minimize import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]
