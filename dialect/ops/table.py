"""The op table: every primitive of the dialect by name.

Families register here as they are imported; passes, the verifier, the IRDL text and the tests look
primitives up here and nowhere else.
"""

from __future__ import annotations

from typing import Any, Protocol

from ..primitive import RULES, Primitive, Unsupported

# What a declaration may set besides the seven rules.
_FURTHER = (
    "value_and_jvp",
    "linearize",
    "body",
    "deferred_params",
    "simplify",
    "chosen_body",
    "reduced",
    "is_call",
    "is_commutative",
    "is_memoized",
    "is_staged",
    "is_effectful",
    "is_observer",
    "axis_names",
    "batch_named",
    "param_types",
    "takes_keys",
    "moves_elements",
)

OPS: dict[str, Primitive] = {}
# Users' own primitives, so that modules which contain them can be read back.
USER_OPS: dict[str, Primitive] = {}


def declare(
    name: str,
    *,
    multiple_results: bool = False,
    unsupported: dict[str, str] | None = None,
    **rules: Any,
) -> Primitive:
    """Makes a primitive with the given rules and puts it into the table.

    Args:
        name: JAX's name of the primitive.
        multiple_results: Whether it returns a list.
        unsupported: For a rule that cannot exist, why, and what to use instead.
        **rules: The rules by name; see `Primitive`.

    Returns:
        The primitive.
    """
    primitive = Primitive(name, multiple_results)
    for rule, function in rules.items():
        if rule not in (*RULES, *_FURTHER):
            raise TypeError(f"{name}: {rule!r} is not the name of a rule.")
        setattr(primitive, rule, function)
    for rule, reason in (unsupported or {}).items():
        setattr(primitive, rule, Unsupported(rule, name, reason))
    if name in OPS:
        raise ValueError(f"Primitive {name!r} is declared twice.")
    OPS[name] = primitive
    return primitive


class Traceable(Protocol):
    """A function of values that applies one primitive."""

    primitive: Primitive

    def __call__(self, *operands: Any, **options: Any) -> Any:
        """Applies the primitive."""
        ...


def traceable(function: Any, primitive: Primitive, documentation: str) -> Traceable:
    """Names a function after the primitive that it applies, documents it, and lets it be found."""
    function.__name__ = function.__qualname__ = primitive.name
    function.__doc__ = documentation
    function.primitive = primitive
    return function
