"""A dictionary of rules by primitive that is a view of the primitives' own attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping

from axir.dialect.core.annotations import UserFunction
from axir.dialect.program.op_table import OPS, USER_OPS
from axir.dialect.program.primitive import Primitive

Rule = UserFunction


class RuleTable(MutableMapping[Primitive, Rule]):
    """Reads and writes one rule of each primitive.

    Args:
        attribute: The rule's name.
        read: Returns the rule of a primitive that lacks the attribute but has another form of it.
    """

    def __init__(self, attribute: str, read: Callable[[Primitive], Rule | None] | None = None):
        self._attribute = attribute
        self._read = read

    def __getitem__(self, primitive: Primitive) -> Rule:
        rule = getattr(primitive, self._attribute)
        if rule is None and self._read is not None:
            rule = self._read(primitive)
        if rule is None:
            raise KeyError(primitive)
        return rule

    def __setitem__(self, primitive: Primitive, rule: Rule) -> None:
        setattr(primitive, self._attribute, rule)

    def __delitem__(self, primitive: Primitive) -> None:
        self[primitive]
        setattr(primitive, self._attribute, None)

    def __iter__(self) -> Iterator[Primitive]:
        for primitive in (*OPS.values(), *USER_OPS.values()):
            if primitive in self:
                yield primitive

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, primitive: object) -> bool:
        try:
            self[primitive]  # type: ignore[index]
        except (KeyError, AttributeError):
            return False
        return True
