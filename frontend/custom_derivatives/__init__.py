"""Functions with custom derivative rules.

`custom_jvp` and `custom_vjp` are also `axir.custom_jvp` and `axir.custom_vjp`.

>>> import axir, axir.numpy as jnp
>>> @axir.custom_jvp
... def f(x):
...     return jnp.sin(x)
>>> @f.defjvp
... def f_jvp(primals, tangents):
...     return f(*primals), 10 * tangents[0]
>>> float(axir.grad(f)(1.0))
10.0
"""

from __future__ import annotations

from axir.dialect.ops.custom_rules.custom_jvp import custom_jvp_call as custom_jvp_call_p
from axir.dialect.ops.custom_rules.custom_vjp import custom_vjp_call as custom_vjp_call_p

from ._closures import closure_convert, custom_gradient
from ._forward import custom_jvp
from ._linear import linear_call, linear_transpose
from ._reverse import custom_vjp
from ._zeros import CustomVJPPrimal, SymbolicZero, custom_vjp_primal_tree_values, zero_from_primal

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp",
    "custom_jvp_call_p", "custom_vjp", "custom_vjp_call_p", "custom_vjp_primal_tree_values",
    "linear_call", "linear_transpose", "zero_from_primal",
]  # fmt: skip
