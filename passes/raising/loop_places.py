"""Indices in the body of a loop that advance with the loop's counter.

The index of a slice may be computed: converted, added to, taken from an array of indices, moved
behind the end if negative, clamped. An index `a + b * number of the iteration` is written (a, b).
Elsewhere: the loops (`loops.py`), counters (`counters.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from axir.dialect.core.annotations import Extent, HostArray
from axir.dialect.core.symbolic_dims import is_symbolic_dim, symbolic_dim_bounds
from axir.dialect.program.equation import Equation, Literal, Var

from .counters import Counter

Place: TypeAlias = tuple[Extent, int]


class Places:
    """The places of indices in a body.

    Args:
        equations: The body.
        index: The counter.
        counter: How it advances.
        held: The integers and extents that captured values hold.
    """

    def __init__(
        self,
        equations: Sequence[Equation],
        index: Var,
        counter: Counter,
        held: Mapping[Var, HostArray],
    ):
        self._makers = {v: e for e in equations for v in e.results}
        self._index, self._counter, self._held = index, counter, held

    def of(self, variable: Var, at: int = 0) -> Place | None:
        """Returns the place of an element of an index; None for other values."""
        if variable is self._index:
            return self._counter.start, self._counter.step
        number = self._number(variable, at)
        if number is not None:
            return number, 0
        equation = self._makers.get(variable)
        if equation is None or variable.type.ndim > 1:
            return None
        rule = _RULES.get(equation.primitive.name)
        return None if rule is None else rule(self, equation, at)

    def _of_constant(self, equation: Equation, at: int) -> Place | None:
        host = equation.params["value"]
        return (int(host.reshape(-1)[at]), 0) if host.dtype.kind in "iu" else None

    def _of_extent(self, equation: Equation, at: int) -> Place | None:
        return equation.params["extent"], 0

    def _moved(self, equation: Equation, at: int) -> Place | None:
        (source,) = equation.operands
        return self.of(source, at) if source.type.ndim <= 1 else None

    def _sliced(self, equation: Equation, at: int) -> Place | None:
        step = equation.params["strides"][0] if equation.params["strides"] else 1
        return self.of(equation.operands[0], equation.params["start_indices"][0] + at * step)

    def _sum(self, equation: Equation, at: int) -> Place | None:
        sides = self._of_operands(equation, at)
        if None in sides:
            return None
        (a, b), (c, d) = sides  # type: ignore[misc]
        return (a + c, b + d) if equation.primitive.name == "add" else (a - c, b - d)

    def _of_operands(self, equation: Equation, at: int) -> list[Place | None]:
        return [self.of(v, at if v.type.ndim else 0) for v in equation.operands]

    def _of_part(self, equation: Equation, at: int) -> Place | None:
        for part in equation.operands:
            if is_symbolic_dim(part.type.shape[0]):
                return None
            if at < part.type.shape[0]:
                return self.of(part, at)
            at -= part.type.shape[0]
        return None

    def _number(self, variable: Var, at: int) -> Extent | None:
        """Returns the integer or extent of a value that does not depend on the iteration."""
        if variable in self._held:
            found: Extent | None = self._held[variable].reshape(-1)[at]
            return int(found) if isinstance(found, np.integer) else found
        if type(variable) is not Literal:
            return None
        host = variable.array.host()
        return int(host.reshape(-1)[at]) if host.dtype.kind in "iu" else None

    def _not_negative(self, equation: Equation, at: int) -> Place | None:
        """Reads `i < 0 ? i + n : i` for an index that is never negative."""
        if len(equation.operands) != 3 or at:
            return None
        which, chosen, _ = equation.operands
        test = self._makers.get(which)
        place = self.of(chosen)
        if test is None or place is None or test.primitive.name != "lt":
            return None
        is_test = test.operands[0] is chosen and self.of(test.operands[1]) == (0, 0)
        return place if is_test and _is_natural(self._ends(place)[0]) else None

    def _within(self, equation: Equation, at: int) -> Place | None:
        """Reads a clamped index that is within its bounds."""
        low, place, high = self._of_operands(equation, at)
        if low is None or place is None or high is None or low[1] or high[1]:
            return None
        least, most = self._ends(place)
        is_within = _is_natural(least - low[0]) and _is_natural(high[0] - most)
        return place if is_within else None

    def _ends(self, place: Place) -> tuple[Extent, Extent]:
        """Returns the least and the greatest value of an index, in iterations that happen."""
        first, last = place[0], place[0] + place[1] * (self._counter.length - 1)
        return (first, last) if place[1] >= 0 else (last, first)


def _is_natural(extent: Extent) -> bool:
    return symbolic_dim_bounds(extent)[0] >= 0


_Rule: TypeAlias = Callable[[Places, Equation, int], Place | None]
_RULES: Mapping[str, _Rule] = {
    "add": Places._sum,
    "clamp": Places._within,
    "concatenate": Places._of_part,
    "constant": Places._of_constant,
    "convert_element_type": Places._moved,
    "dim_as_value": Places._of_extent,
    "reshape": Places._moved,
    "select_n": Places._not_negative,
    "slice": Places._sliced,
    "squeeze": Places._moved,
    "sub": Places._sum,
}
