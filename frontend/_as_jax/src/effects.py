"""Names of `jax._src.effects`: side effects of primitives.

Here an effect may be anywhere: in loops, in recomputed code, in compiled programs. The sets of
allowed effects contain all of axir's types. An effect is ordered only if it is declared as ordered.
"""

from __future__ import annotations

from collections.abc import Iterable

from axir.extend.core import Effect, Effects, no_effects

__all__ = [
    "Effect", "EffectTypeSet", "Effects", "control_flow_allowed_effects",
    "custom_derivatives_allowed_effects", "lowerable_effects", "no_effects", "ordered_effects",
    "partial_eval_kept_effects", "remat_allowed_effects",
    "shardable_ordered_effects",
]  # fmt: skip


class EffectTypeSet:
    """Types of effects: the added types and their subclasses."""

    def __init__(self, *types: type) -> None:
        self._types = [*types]

    def add_type(self, effect_type: type) -> None:
        """Adds a type."""
        self._types.append(effect_type)

    def contains(self, effect: object) -> bool:
        """Tells whether an effect is of one of the types."""
        return isinstance(effect, tuple(self._types))

    def filter_in(self, effects: Iterable[Effect]) -> list[Effect]:
        """Returns the effects that are of one of the types."""
        return list(filter(self.contains, effects))

    def filter_not_in(self, effects: Iterable[Effect]) -> list[Effect]:
        """Returns the effects that are not of one of the types."""
        return [effect for effect in effects if not self.contains(effect)]


control_flow_allowed_effects = EffectTypeSet(Effect)
custom_derivatives_allowed_effects = EffectTypeSet(Effect)
lowerable_effects = EffectTypeSet(Effect)
ordered_effects = EffectTypeSet()
partial_eval_kept_effects = EffectTypeSet(Effect)
remat_allowed_effects = EffectTypeSet(Effect)
shardable_ordered_effects = EffectTypeSet()
