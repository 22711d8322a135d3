"""`ProgramTrial`: the faster of two programs of one function, found from the times of its calls.

Elsewhere: the faster CPU driver of IREE's program (`driver_trial.py`).
"""

from __future__ import annotations

from .executable import Executable
from .native_executable import NativeExecutable

# The native program has to gain clearly, since times scatter.
_WORTHWHILE_RATIO = 0.9
# Calls of the native program that are timed. It served before, so most were made then.
_CALLS = 4
# The first call warms up. If even so many times IREE's seconds do not explain it, IREE's is faster.
_CLEAR_LOSS_RATIO = 2.0


class ProgramTrial:
    """Finds whether the native program of a function or IREE's is faster.

    The cost model says only whether IREE's program may pay. Many small operations with sums and
    gathers between them run faster natively, where no queue stands between kernels. Both programs
    compute the same numbers.

    Args:
        native: The program that has served.
        follower: IREE's program, which serves from now on.
    """

    def __init__(self, native: NativeExecutable, follower: Executable):
        self._native = native
        self._follower = follower

    def next(self) -> tuple[Executable | NativeExecutable, bool]:
        """Returns the program for the next call, and whether the trial is over."""
        native, follower = self._native, self._follower
        if follower.quick is None:  # its driver is not yet found
            return follower, False
        if native.was_overtaken or native.seconds > _CLEAR_LOSS_RATIO * follower.seconds:
            return follower, True
        is_known = native.timed_calls >= _CALLS
        if is_known and native.seconds >= _WORTHWHILE_RATIO * follower.seconds:
            return follower, True
        native.serve_again(for_good=is_known)
        return native, is_known
