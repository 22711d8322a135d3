"""Types of values that are no arrays, and primitives on them.

Libraries declare them on import, and use them only on request. Here only declaring works: programs
hold arrays, so binding such a primitive raises `HiPrimitiveError`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from axir.dialect.core.annotations import UserFunction, UserObject
from axir.dialect.core.errors import AxirError


class HiPrimitiveError(AxirError, NotImplementedError):
    """A primitive on values that are no arrays was bound."""


class HiPrimitive:
    """A primitive on values that are no arrays.

    Args:
        name: Its name.

    Raises:
        HiPrimitiveError: where it is bound.
    """

    multiple_results = False

    def __init__(self, name: str):
        self.name = name

    def bind(self, *args: object, **params: object) -> UserObject:
        """Raises: programs hold arrays."""
        raise HiPrimitiveError(
            f"{self.name} is a primitive on values that are no arrays, which programs here do not "
            "hold.",
            "Use the form of the library that keeps trees of arrays; it is the default.",
        )


class HiType:
    """A type of values that are no arrays."""


class MutableHiType(HiType):
    """A type of values that change."""


class HiPspec:
    """The placement of values of such a type on a mesh."""


class AvalQDD(NamedTuple):
    """A type, and its changing part."""

    aval: UserObject
    qdd: UserObject


class AvalMutableQDD(NamedTuple):
    """A type, and storage for its changing part."""

    aval: UserObject
    mutable_qdd: UserObject


class aval_property:
    """A property of tracers that their type computes."""

    def __init__(self, fget: UserFunction):
        self.fget = fget


class aval_method:
    """A method of tracers that their type computes."""

    def __init__(self, fun: UserFunction):
        self.fun = fun


class _EffectTypes:
    """Kinds of effects that control flow may have; here all may."""

    def __init__(self) -> None:
        self._types: list[type] = []

    def add_type(self, effect_type: type) -> None:
        """Adds a kind."""
        self._types.append(effect_type)

    def contains(self, effect: object) -> bool:
        """Tells whether an effect is of such a kind."""
        return isinstance(effect, tuple(self._types))


control_flow_allowed_effects = _EffectTypes()
_types: dict[type, Callable[[UserObject], HiType]] = {}


def register_hitype(val_cls: type, typeof_fn: Callable[[UserObject], HiType]) -> None:
    """Tells the type of the values of a class."""
    _types[val_cls] = typeof_fn
