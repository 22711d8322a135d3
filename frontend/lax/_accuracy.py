"""Options for the accuracy of functions."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from axir.dialect.core.errors import ParameterError


class AccuracyMode(enum.Enum):
    """The required accuracy of a function. There is one way to compute each: the exact one."""

    HIGHEST = 1
    DEFAULT = 2


@dataclass(frozen=True)
class Tolerance:
    """By how much results of a function may differ from the exact ones.

    Attributes:
        atol: Absolute tolerance.
        rtol: Relative tolerance.
        ulps: Tolerance in units of the last place.

    Raises:
        ParameterError: for negative tolerances, or relative ones beside units of the last place.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        if min(self.atol, self.rtol, self.ulps) < 0:
            raise ParameterError(f"{self}: tolerances are not negative.")
        if self.rtol and self.ulps:
            raise ParameterError(f"{self}: rtol and ulps both say how exact relative errors are.")
