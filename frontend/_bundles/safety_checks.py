"""What is looked at when a function is exported, and can be left out."""

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

        The check is a proof, op by op, which refuses what it does not know: callbacks, and
        primitives of a user's own. Where it is left out, rows are treated one by one all the same:
        results are those of the function of a single row.
        """
        return DisabledSafetyCheck("rows")

    @staticmethod
    def platform() -> DisabledSafetyCheck:
        """Leaves out whether the platform is one that was exported for; programs run on all."""
        return DisabledSafetyCheck("platform")

    @staticmethod
    def custom_call(target_name: str) -> DisabledSafetyCheck:
        """Leaves out a call of a library's function; what is exported has none."""
        return DisabledSafetyCheck(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """Returns the name of the function, if this is a check of such a call."""
        kind, _, target = self.name.partition(":")
        return target if kind == "custom_call" else None
