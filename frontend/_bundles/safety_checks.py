"""Checks of exported functions that can be skipped."""

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
        """Skips the check that a function with an open leading dimension treats rows independently.

        The check is a proof, op by op, which refuses unknown ops: callbacks, and users' primitives.
        If it is skipped, rows are still treated one by one: the results are the function's results
        on single rows.
        """
        return DisabledSafetyCheck("rows")

    @staticmethod
    def platform() -> DisabledSafetyCheck:
        """Leaves out whether the platform is one that was exported for; programs run on all."""
        return DisabledSafetyCheck("platform")

    @staticmethod
    def custom_call(target_name: str) -> DisabledSafetyCheck:
        """Skips the check for calls of a library's function; exported functions have none."""
        return DisabledSafetyCheck(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """Returns the name of the function, if this is a check of such a call."""
        kind, _, target = self.name.partition(":")
        return target if kind == "custom_call" else None
