"""`axir.ad_checkpoint`: names of values for checkpoint policies, and the saved values.

>>> import axir, axir.numpy as jnp
>>> from axir.ad_checkpoint import checkpoint_name
>>> def f(x):
...     return jnp.sin(checkpoint_name(jnp.sin(x), "inner"))
>>> policy = axir.checkpoint_policies.save_only_these_names("inner")
>>> round(float(axir.grad(axir.checkpoint(f, policy=policy))(1.0)), 4)
0.36
"""

from __future__ import annotations

from axir._transforms.checkpointing import (
    checkpoint,
    checkpoint_policies,
    print_saved_residuals,
    remat,
    saved_residuals,
)
from axir._trees import tree
from axir.dialect.core.annotations import UserObject
from axir.dialect.ops import custom_rules
from axir.dialect.ops.custom_rules.policies import Offloadable, Recompute, Saveable

__all__ = [
    "Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_name", "checkpoint_policies",
    "print_saved_residuals", "remat", "saved_residuals",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def checkpoint_name(x: object, name: str) -> UserObject:
    """Returns an array or a tree of arrays, named for checkpoint policies.

    Args:
        x: The value; it is returned unchanged.
        name: Its name for policies such as `axir.checkpoint_policies.save_only_these_names`.
    """
    return tree.map(lambda leaf: custom_rules.checkpoint.checkpoint_name(leaf, name), x)
