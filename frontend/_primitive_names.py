"""Primitives under names that end in `_p`, as `axir.lax` and `axir.extend.core` offer them."""

from __future__ import annotations

from collections.abc import Mapping

from axir._later import later
from axir.dialect.program.op_table import OPS
from axir.dialect.program.primitive import Primitive

# What JAX calls otherwise than the op is called.
OTHER_NAMES = {
    "add_jaxvals_p": "add",
    "call_p": "jit",
    "closed_call_p": "jit",
    "linear_solve_p": "custom_linear_solve",
    "remat_p": "checkpoint",
}


def primitive_named(name: str) -> Primitive | None:
    """Returns the primitive behind a name that ends in `_p`, or None."""
    if not name.endswith("_p"):
        return None
    primitive = OPS.get(OTHER_NAMES.get(name, name[:-2]))
    return primitive if primitive is not None else composite_primitives().get(name[:-2])


def composite_primitives() -> Mapping[str, Primitive]:
    """Returns the primitives of JAX's that are made of ops of axir's, by name."""
    return later.COMPOSITE_PRIMITIVES
