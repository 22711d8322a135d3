"""The attributes of `jax.export.Exported` that are the same for all of axir's functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from axir.dialect.core.annotations import UserObject
from axir.runtime.compiler.target import BACKENDS

from .manifest import VERSION, FunctionEntry

if TYPE_CHECKING:
    from .safety_checks import DisabledSafetyCheck


class Facts:
    """The attributes of `jax.export.Exported` that do not differ between functions.

    Attributes:
        platforms: The platforms that the function runs on.
        nr_devices: The number of devices it uses.
        ordered_effects: Effects of a call; saved functions have no effects.
        unordered_effects: The same for unordered effects.
        uses_global_constants: Whether its module refers to anything outside.
        calling_convention_version: Version of the format in which it is saved.
    """

    platforms: tuple[str, ...] = BACKENDS
    nr_devices: int = 1
    ordered_effects: tuple[UserObject, ...] = ()
    unordered_effects: tuple[UserObject, ...] = ()
    disabled_safety_checks: Sequence[DisabledSafetyCheck] = ()
    uses_global_constants: bool = False
    calling_convention_version: int = VERSION
    entry: FunctionEntry

    @property
    def module_kept_var_idx(self) -> tuple[int, ...]:
        """Numbers of the arguments that the module takes: all."""
        return tuple(range(len(self.entry.signature.arguments)))

    @property
    def in_shardings_hlo(self) -> tuple[None, ...]:
        """Shardings of arguments: none."""
        return (None,) * len(self.entry.signature.arguments)

    @property
    def out_shardings_hlo(self) -> tuple[None, ...]:
        """Shardings of results: none."""
        return (None,) * len(self.entry.signature.results)

    def has_vjp(self) -> bool:
        """Tells whether the function can be differentiated, which all can."""
        return True
