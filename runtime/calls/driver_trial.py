"""`DriverTrial`: which CPU driver runs a function faster, found from the times of its calls.

Elsewhere: the calls (`executable.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from axir.dialect.program.costs import PARALLEL_OPERATIONS
from axir.runtime.device.workers import thread_count

# A call of local-task costs 13 us more than one of local-sync: shorter calls cannot gain.
_SHORT_CALL_SECONDS = 40e-6
# The first call of each driver warms up, and does not count.
_CALLS_PER_DRIVER = 4
# Several cores must be clearly faster, since times scatter, and other programs may need the cores.
_WORTHWHILE_RATIO = 0.9
# Other programs may keep the cores busy during a trial, or start to later: then local-task, which
# has threads that wait for each other, loses its gain. So there are further trials after this many
# calls, then after four times as many, and so on up to a limit, at which trials cost nothing that
# could be measured.
_CALLS_BETWEEN_TRIALS = 8
_MOST_CALLS_BETWEEN_TRIALS = 2048
FOR_GOOD = -1
"""The number of calls for which a driver stays when there will be no further trial."""
# A call that takes this long on one core is not tried there.
_LONGEST_TRIAL_SECONDS = 1.0
# A first call that takes longer is slow for another reason than the warm-up.
_LONGEST_WARM_UP = 20e-3
# For calls of this length, one trial shows whether a driver is slower; three more would be noticed.
_LONG_CALL_SECONDS = 2e-3
_CLEAR_LOSS_RATIO = 1.3
_SYNC_FIRST = ("local-sync", "local-task")


class DriverTrial:
    """Finds the faster CPU driver of a function from the times of its calls.

    Unless calls are too short to gain, it tries again from time to time, and rests in between. With
    one driver only, it learns how long calls take.

    Args:
        work: as for `Executable`.
        drivers: the candidates: the two of the CPU, or one.

    Attributes:
        driver: the driver for the next call.
        seconds: how long the function takes, as far as that is known; else 0.
        calls_to_rest: once the driver is decided, for how many calls it stays: a number, or
            `FOR_GOOD`; 0 during a trial.
    """

    def __init__(self, work: int, drivers: Sequence[str] = _SYNC_FIRST):
        starts_parallel = len(drivers) > 1 and work >= PARALLEL_OPERATIONS
        self._order = ("local-task", "local-sync") if starts_parallel else tuple(drivers)
        self._rest = _CALLS_BETWEEN_TRIALS
        self._lock = threading.Lock()
        self.calls_to_rest = 0
        self.seconds = 0.0
        self._begin()

    def _begin(self) -> None:
        self._times: dict[str, list[float]] = {driver: [] for driver in self._order}
        self.driver = self._order[0]

    def record(self, driver: str, seconds: float) -> None:
        """Records the time of a call, and sets `driver` for the next call."""
        with self._lock:  # threads share an executable
            if driver == self.driver and not self.calls_to_rest:
                self._times[driver].append(seconds)
                self._estimate(self._times[driver])
                if len(self._times[driver]) == _CALLS_PER_DRIVER or self._loses():
                    self._go_on(min(self._times[driver]))

    def _estimate(self, times: list[float]) -> None:
        counted = _counted(times)
        if counted:
            self.seconds = min(counted)

    def _loses(self) -> bool:
        """Tells whether the second driver need not be timed to the end."""
        if self.driver == self._order[0]:
            return False
        first = min(_counted(self._times[self._order[0]]))
        counted = _counted(self._times[self.driver])
        is_long = first >= _LONG_CALL_SECONDS
        return is_long and bool(counted) and min(counted) > first * _CLEAR_LOSS_RATIO

    def begin_again(self) -> None:
        """Begins the next trial after a rest."""
        with self._lock:
            self.calls_to_rest = 0
            self._begin()

    def _go_on(self, best: float) -> None:
        """Decides, or turns to the second driver, after the calls of one."""
        first, second = self._order[0], self._order[-1]
        if first == second:
            self.calls_to_rest = FOR_GOOD
        elif self.driver == second:
            self._settle()
        elif first == "local-sync" and best < _SHORT_CALL_SECONDS:
            self.calls_to_rest = FOR_GOOD
        elif first == "local-task" and best * thread_count() > _LONGEST_TRIAL_SECONDS:
            self.calls_to_rest = FOR_GOOD
        else:
            self.driver = second

    def _settle(self) -> None:
        sync, task = (np.median(_counted(self._times[name])) for name in _SYNC_FIRST)
        self.driver = "local-task" if task < sync * _WORTHWHILE_RATIO else "local-sync"
        self._estimate(self._times[self.driver])
        self.calls_to_rest = self._rest
        self._rest = min(4 * self._rest, _MOST_CALLS_BETWEEN_TRIALS)


def _counted(times: list[float]) -> list[float]:
    """Returns the times of calls that do not warm up."""
    return times[times[0] < _LONGEST_WARM_UP :] if times else []
