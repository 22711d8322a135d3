"""The primitives of axir, under names that end in `_p`.

>>> from axir.extend.core import primitives
>>> primitives.sin_p.name
'sin'
"""

from __future__ import annotations

from typing import Any

from axir.dialect.ops.table import OPS

# What JAX calls otherwise than the op is called.
_OTHER_NAMES = {
    "call_p": "jit",
    "closed_call_p": "jit",
    "linear_solve_p": "custom_linear_solve",
    "remat_p": "checkpoint",
}


def primitive_named(name: str) -> Any:
    """Returns the primitive behind a name that ends in `_p`, or None."""
    if not name.endswith("_p"):
        return None
    return OPS.get(_OTHER_NAMES.get(name, name[:-2]))


def __getattr__(name: str) -> Any:
    """Returns the primitive behind a name: `exp_p`, `dot_general_p` ..."""
    primitive = primitive_named(name)
    if primitive is None:
        raise AttributeError(f"module 'axir.extend.core.primitives' has no attribute {name!r}")
    return primitive


def __dir__() -> list[str]:
    return sorted({*_OTHER_NAMES, *(f"{name}_p" for name in OPS)})
