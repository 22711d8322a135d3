"""Later parts of the frontend that earlier ones name: the one place where its imports point back.

Also what few programs use: `import axir` does not load it. A name is imported when it is first
asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

from axir.dialect.core.annotations import UserFunction
from axir.dialect.core.late_modules import LateNames
from axir.dialect.program.primitive import Primitive


class Later(LateNames):
    """Names of later parts, with their types."""

    # Primitives that are made of all of `lax`, by name.
    COMPOSITE_PRIMITIVES: Mapping[str, Primitive]
    Format: UserFunction
    Layout: UserFunction
    ndtr: UserFunction
    scan: UserFunction
    # `lax.rng_uniform` draws numbers, and `axir.random` is made of loops of `axir.lax`.
    randint: UserFunction
    uniform: UserFunction
    sharded_jit: UserFunction
    shards_of: UserFunction
    sharding_of: UserFunction
    with_sharding_constraint: UserFunction


later = Later(
    "axir",
    {
        "_composite_primitives": ["COMPOSITE_PRIMITIVES"],
        "_devices.partitions": ["shards_of", "sharding_of"],
        "_transforms.sharded": ["sharded_jit", "with_sharding_constraint"],
        "experimental.layout": ["Format", "Layout"],
        "lax": ["scan"],
        "random": ["randint", "uniform"],
        "scipy.special": ["ndtr"],
    },
)
