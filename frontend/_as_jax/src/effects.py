"""Names of `jax._src.effects`: what primitives do besides giving results.

Here an effect may be anywhere: in loops, in what is computed anew, in compiled programs. The sets
that say so know all types.
"""

from __future__ import annotations

from axir.extend.core import Effect, Effects, no_effects

__all__ = [
    "Effect", "EffectTypeSet", "Effects", "control_flow_allowed_effects",
    "custom_derivatives_allowed_effects", "lowerable_effects", "no_effects", "ordered_effects",
    "partial_eval_kept_effects", "remat_allowed_effects",
]  # fmt: skip


class EffectTypeSet:
    """Types of effects; all belong to it that were added, and those of axir's."""

    def __init__(self) -> None:
        self._types: list[type] = []

    def add_type(self, effect_type: type) -> None:
        """Adds a type."""
        self._types.append(effect_type)

    def contains(self, effect: object) -> bool:
        """Tells whether an effect is of one of the types."""
        return isinstance(effect, (Effect, *self._types))


control_flow_allowed_effects = EffectTypeSet()
custom_derivatives_allowed_effects = EffectTypeSet()
lowerable_effects = EffectTypeSet()
ordered_effects = EffectTypeSet()
partial_eval_kept_effects = EffectTypeSet()
remat_allowed_effects = EffectTypeSet()
