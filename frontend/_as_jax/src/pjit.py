"""Names of `jax._src.pjit`: the public ones, and the primitive of nested `jit`s."""

from __future__ import annotations

from axir.dialect.program.op_table import OPS
from axir.experimental.pjit import *  # noqa: F403
from axir.sharding import auto_axes as auto_axes
from axir.sharding import explicit_axes as explicit_axes
from axir.sharding import reshard as reshard

from .sharding_impls import UNSPECIFIED as UNSPECIFIED
from .sharding_impls import UnspecifiedValue as UnspecifiedValue

jit_p = pjit_p = OPS["jit"]
