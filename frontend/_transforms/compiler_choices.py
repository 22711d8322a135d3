"""Options of XLA's compiler, accepted for compatibility; axir's compiler ignores them."""

from __future__ import annotations

import enum


class CompilerEffortLevel(enum.Enum):
    """The effort of a compiler: exists for imports only; no function takes it.

    axir's compiler has the option `axir_opt_level`.
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


class Inline(enum.Enum):
    """The stage at which a jitted function is inlined into its caller.

    With `JAX_EARLY` its operations become part of the caller's program. With any other value it is
    a function in that program until axir's compiler inlines it.
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"
