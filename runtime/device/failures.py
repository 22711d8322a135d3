"""Converts the runtime's failures to axir's errors: out of memory, device lost, and others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axir.runtime.errors import DeviceLostError, OutOfMemoryError, RuntimeExecutionError

if TYPE_CHECKING:
    from .devices import Device

_OUT_OF_MEMORY = re.compile(
    r"RESOURCE_EXHAUSTED|VK_ERROR_OUT_OF_(?:DEVICE|HOST|POOL)_MEMORY|CUDA_ERROR_OUT_OF_MEMORY"
)
# After these the driver answers all further calls with the same error.
_LOST = re.compile(
    r"VK_ERROR_DEVICE_LOST|CUDA_ERROR_(?:ILLEGAL_ADDRESS|ILLEGAL_INSTRUCTION|MISALIGNED_ADDRESS|"
    r"LAUNCH_FAILED|LAUNCH_TIMEOUT|ECC_UNCORRECTABLE|DEVICE_UNAVAILABLE|CONTEXT_IS_DESTROYED|"
    r"DEINITIALIZED|HARDWARE_STACK_ERROR|INVALID_PC|ASSERT)"
)


def device_failure(
    error: Exception,
    device: Device,
    what: str,
    where: str | None = None,
    way_out: str = "Check the driver: other programs must run on the device.",
) -> RuntimeExecutionError:
    """Returns the exception to raise for an exception of IREE's runtime.

    Args:
        error: The exception, or NumPy's where an array of the host is too large.
        device: Where it happened.
        what: The operation that failed, as the beginning of a sentence.
        where: The user's line; by default the calling thread's.
        way_out: The advice for failures other than lost memory and lost devices.
    """
    text = str(error)
    if isinstance(error, MemoryError) or _OUT_OF_MEMORY.search(text):
        return OutOfMemoryError(
            f"{what} needs an array for which {device} has no memory.",
            "Compute in smaller pieces, delete arrays (x.delete()), or look for an extent larger "
            "than it should be.",
            where,
        )
    lost = _LOST.search(text)
    if lost is not None:
        return DeviceLostError(
            f"{what} failed, since {device} is lost ({lost[0]}): its driver has given it up, and "
            "what lay in its memory is gone.",
            "Start the process anew, from the last state that you saved. If it happens again at "
            "the same place, run that on devices('cpu'), and look for a program that computes for "
            "too long or a driver that is too old.",
            where,
        )
    return RuntimeExecutionError(
        f"{what} failed on {device}: {short_status(error)}.",
        way_out,
        where,
    )


def short_status(error: BaseException) -> str:
    """Returns the message of an exception of IREE's runtime, without file names and stack.

    >>> short_status(ValueError("Error invoking function: c/a.c:103: NOT_FOUND; no such; stack"))
    'not found: no such'
    """
    text = str(error).split("\n")[0]
    match = re.search(r"\.(?:c|cc|h):\d+: (\w+); ([^;]*)", text)
    if match is None:
        return text[:200]
    return f"{match[1].lower().replace('_', ' ')}: {match[2].strip()}"[:200]
