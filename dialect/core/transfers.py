"""Guards of transfers: the options `jax_transfer_guard...` log or refuse moves of arrays.

A transfer is explicit if a function requests it (`device_put`, `device_get`), and implicit if an
operation needs an array on another device. On the CPU a device's memory is the host's, so reading
an array is no transfer.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

from .config import config
from .errors import TransferGuardError
from .options import TRANSFER_LEVELS
from .state import state

_logger = logging.getLogger(__name__)
_ALLOW, _LOG, _DISALLOW, _LOG_EXPLICIT, _DISALLOW_EXPLICIT = TRANSFER_LEVELS


class _OfThread(threading.local):
    is_explicit = False


_of_thread = _OfThread()


@contextlib.contextmanager
def explicit_transfers() -> Iterator[None]:
    """Marks the transfers of a block as explicit."""
    before, _of_thread.is_explicit = _of_thread.is_explicit, True
    try:
        yield
    finally:
        _of_thread.is_explicit = before


def check_transfer(direction: str, what: object) -> None:
    """Lets a transfer happen, logs it, or refuses it, as the options say.

    Args:
        direction: `host_to_device`, `device_to_device` or `device_to_host`.
        what: The moved object, as named in the message.

    Raises:
        TransferGuardError: it is not allowed.
    """
    level = config.read(f"jax_transfer_guard_{direction}") or config.jax_transfer_guard
    if level in (None, _ALLOW) or state.ambient is not None:
        return
    is_explicit = _of_thread.is_explicit
    described = f"{direction.replace('_', '-')} transfer of {what}"
    if level == _DISALLOW_EXPLICIT or (level == _DISALLOW and not is_explicit):
        raise TransferGuardError(
            f"Disallowed {described}.",
            "Ask for it with axir.device_put or axir.device_get, or allow it with "
            "axir.transfer_guard('allow')."
            if not is_explicit
            else "Allow it with axir.transfer_guard('allow').",
        )
    if level == _LOG_EXPLICIT or (level == _LOG and not is_explicit):
        _logger.warning(described)
