"""Primitives under names that end in `_p`, as `axir.lax` and `axir.extend.core` offer them."""

from __future__ import annotations

from axir.dialect.program.op_table import OPS
from axir.dialect.program.primitive import Primitive

# What JAX calls otherwise than the op is called.
OTHER_NAMES = {
    "call_p": "jit",
    "closed_call_p": "jit",
    "linear_solve_p": "custom_linear_solve",
    "remat_p": "checkpoint",
}


def primitive_named(name: str) -> Primitive | None:
    """Returns the primitive behind a name that ends in `_p`, or None."""
    if not name.endswith("_p"):
        return None
    return OPS.get(OTHER_NAMES.get(name, name[:-2]))
