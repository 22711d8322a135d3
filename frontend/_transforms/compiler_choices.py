"""Options of XLA's compiler, accepted for compatibility; axir's compiler ignores them."""

from __future__ import annotations

import enum


class CompilerEffortLevel(enum.Enum):
    """The effort of a compiler: exists for imports only; no function takes it.

    `axir_opt_level` is what axir's compiler has.
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


class Inline(enum.Enum):
    """Where a function that `jit` compiles becomes part of one that calls it.

    `JAX_EARLY` has its operations stand in the caller's program; with any other it stands in it as
    a function, until axir's compiler takes it apart.
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"
