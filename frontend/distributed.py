"""Processes that compute together, under the names of `jax.distributed`: this one, alone.

>>> initialize(num_processes=1, process_id=0)
>>> is_initialized()
True
>>> shutdown()
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.errors import ParameterError

__all__ = ["initialize", "is_initialized", "shutdown"]


@dataclass
class DistributedState:
    """What is known of the processes that compute together.

    Attributes:
        process_id: Number of this one.
        num_processes: How many there are.
        coordinator_address: Where they meet, if somebody has told.
        service: What coordinates them; there is none.
        client: What asks it; there is none.
        is_initialized: Whether `initialize` was called.
    """

    process_id: int = 0
    num_processes: int = 1
    coordinator_address: str | None = None
    service: UserObject = None
    client: UserObject = None
    is_initialized: bool = False


state = DistributedState()


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Tells that this process is all there is.

    Args:
        coordinator_address: Where processes would meet; one process meets nobody.
        num_processes: How many there are: 1.
        process_id: Number of this one: 0.
        local_device_ids: Numbers of the devices of this process; it has all.
        cluster_detection_method: How to find other processes; there are none to find.
        initialization_timeout: Seconds to wait for others.
        heartbeat_timeout_seconds: Seconds after which others count as lost.
        shutdown_timeout_seconds: Seconds to wait for others at the end.
        coordinator_bind_address: Where the coordinator would listen.
        slice_index: Which group of devices this is; there is one.
        partition_index: Which part of it this is; there is one.

    Raises:
        ParameterError: for several processes.
        RuntimeError: if it was called before.
    """
    if num_processes not in (None, 1) or process_id not in (None, 0):
        raise ParameterError(
            f"distributed.initialize: {num_processes} processes, of which this is number "
            f"{process_id}: axir computes in one process.",
            "Leave the arguments out, or pass num_processes=1 and process_id=0.",
        )
    if state.is_initialized:
        raise RuntimeError("distributed.initialize should only be called once.")
    state.coordinator_address = coordinator_address
    state.is_initialized = True


def is_initialized() -> bool:
    """Tells whether `initialize` was called."""
    return state.is_initialized


def shutdown() -> None:
    """Takes back `initialize`."""
    state.coordinator_address = None
    state.is_initialized = False
