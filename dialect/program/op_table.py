"""The op table: every primitive of the dialect by name.

Families register here as they are imported; passes, the verifier, the IRDL text and the tests look
primitives up here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from axir.dialect.core.annotations import Decorated, Foreign, UserObject
from axir.dialect.core.array import Array

from .operation import Unsupported
from .primitive import Primitive
from .rules import Rule

_NOTHING: Mapping[str, Foreign] = MappingProxyType({})

OPS: dict[str, Primitive] = {}
# Users' own primitives, so that modules with them can be read back.
USER_OPS: dict[str, Primitive] = {}


def declare(
    name: str,
    *,
    parameters: Mapping[str, Foreign] = _NOTHING,
    unsupported: Mapping[str, str] = _NOTHING,
    **rules: Rule,
) -> Primitive:
    """Makes a primitive with the given rules and puts it into the table.

    Args:
        name: JAX's name of the primitive.
        parameters: The types of its parameters by name; see `parameters.py`.
        unsupported: For a rule that cannot exist, the reason and the alternative.
        **rules: The rules by name, and other fields of `Primitive`.

    Returns:
        The primitive.
    """
    absent: dict[str, Rule] = {
        rule: Unsupported(rule, name, reason) for rule, reason in unsupported.items()
    }
    primitive = Primitive(name, parameters=parameters, **rules, **absent)
    if name in OPS:
        raise ValueError(f"Primitive {name!r} is declared twice.")
    OPS[name] = primitive
    return primitive


class Traceable(Protocol):
    """A function of values that applies one primitive."""

    primitive: Primitive

    def __call__(self, *operands: object, **options: object) -> Array:
        """Applies the primitive."""
        ...


def traceable(function: UserObject, primitive: Primitive, documentation: str) -> Traceable:
    """Names a function after the primitive that it applies, documents it, and registers it."""
    function.__name__ = function.__qualname__ = primitive.name
    function.__doc__ = documentation
    function.primitive = primitive
    return function


def name_parameters(function: Decorated, *names: str) -> Decorated:
    """Renames a function's first parameters, so that they may be passed by these names.

    It costs a call nothing, because local variables are numbered.
    """
    code = function.__code__
    function.__code__ = code.replace(
        co_varnames=(*names, *code.co_varnames[len(names) :]), co_posonlyargcount=0
    )
    return function
