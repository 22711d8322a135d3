"""The checks of an export that can be left out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DisabledSafetyCheck:
    """A check that `export` leaves out.

    >>> DisabledSafetyCheck.rows()
    DisabledSafetyCheck(name='rows')
    """

    name: str

    @staticmethod
    def rows() -> DisabledSafetyCheck:
        """Leaves out whether a function with an open leading dimension treats rows one by one.

        The check is a proof, op by op, which refuses ops that it does not know: callbacks, and
        users' primitives. Without it, rows are treated one by one all the same: results are the
        results of the function of a single row.
        """
        return DisabledSafetyCheck("rows")

    @staticmethod
    def platform() -> DisabledSafetyCheck:
        """Leaves out whether the platform is one that was exported for; programs run on all."""
        return DisabledSafetyCheck("platform")

    @staticmethod
    def custom_call(target_name: str) -> DisabledSafetyCheck:
        """Leaves out the check of calls of library functions; exported functions have no calls."""
        return DisabledSafetyCheck(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """Returns the name of the library's function, if this is a check of its calls."""
        kind, _, target = self.name.partition(":")
        return target if kind == "custom_call" else None
