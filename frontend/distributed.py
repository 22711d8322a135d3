"""Processes that compute together, under the names of `jax.distributed`.

Each process calls `initialize` before it asks for devices. Then `axir.devices()` lists the devices
of all processes. A program over a mesh of these devices runs in all processes: each process runs
the same program. Processes started by `mpirun` find each other by MPI; other processes need an
address.

>>> initialize(num_processes=1, process_id=0)
>>> is_initialized()
True
>>> shutdown()
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.config import config
from axir.dialect.core.errors import ParameterError
from axir.runtime.device.devices import are_made, forget
from axir.runtime.device.gpu_devices import VISIBLE_DEVICES
from axir.runtime.device.workers import cpu_device_count
from axir.runtime.errors import DistributedSetupError
from axir.runtime.processes.group import is_under_mpi
from axir.runtime.processes.job import Job, Times, meet_by_mpi, meet_by_sockets

__all__ = ["initialize", "is_initialized", "shutdown"]


def __dir__() -> list[str]:
    return __all__


_METHODS = (None, "mpi4py", "ompi", "deactivate")


@dataclass
class DistributedState:
    """The processes that compute together, as far as they are known.

    Attributes:
        process_id: Number of this process.
        num_processes: How many there are.
        coordinator_address: The address where they meet, if given.
        service: The coordinator, in process 0; None for a single process.
        client: The connection to the coordinator; None for a single process.
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
    mtls_cert_file: str | None = None,
    mtls_key_file: str | None = None,
    mtls_ca_file: str | None = None,
    mtls_peer_uri_prefix: str | None = None,
    verify_secure_credentials: bool | None = None,
) -> None:
    """Meets the other processes; from now on they compute together.

    Without an address, processes started by `mpirun` meet by MPI (mpi4py). A process started
    otherwise computes as a single process. Omitted arguments are read from the environment
    variables `JAX_COORDINATOR_ADDRESS`, `JAX_NUM_PROCESSES`, `JAX_PROCESS_ID`.

    Args:
        coordinator_address: `host:port` of process 0, where the others reach it.
        num_processes: How many processes there are.
        process_id: Number of this one, from 0.
        local_device_ids: Numbers of the machine's GPUs that this process uses; on the CPU it has as
            many devices as are named, since they are alike.
        cluster_detection_method: `"mpi4py"` meets by MPI; `"deactivate"` asks neither MPI nor the
            environment.
        initialization_timeout: Seconds to wait until all are there.
        heartbeat_timeout_seconds: Seconds after which a process that says nothing counts as lost.
            One that is killed is noticed at once.
        shutdown_timeout_seconds: Seconds to wait for others at the end.
        coordinator_bind_address: `host:port` where process 0 listens; everywhere by default.
        slice_index: Accepted for compatibility.
        partition_index: Accepted for compatibility.
        mtls_cert_file, mtls_key_file, mtls_ca_file, mtls_peer_uri_prefix,
        verify_secure_credentials: Only None or False, because messages between processes are not
            encrypted.

    Raises:
        DistributedSetupError: if the processes do not find each other, or do not match, if MPI is
            missing, or if devices were requested before.
        ParameterError: if the number of processes or of this one cannot be, or for certificates.
        RuntimeError: if it was called before.
    """
    if state.is_initialized:
        raise RuntimeError("distributed.initialize should only be called once.")
    secrets = (mtls_cert_file, mtls_key_file, mtls_ca_file, mtls_peer_uri_prefix)
    if any(secrets) or verify_secure_credentials:
        raise ParameterError(
            "distributed.initialize: there are certificates, or they are to be verified, but "
            "processes do not encrypt.",
            "Leave them out, and let the processes meet in a network that nobody else reads.",
        )
    if cluster_detection_method not in _METHODS:
        raise ParameterError(
            f"distributed.initialize: cluster_detection_method={cluster_detection_method!r}.",
            f"Choose one of {_METHODS}.",
        )
    if cluster_detection_method != "deactivate":
        coordinator_address = coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS")
        num_processes = _number(num_processes, "JAX_NUM_PROCESSES")
        process_id = _number(process_id, "JAX_PROCESS_ID")
    times = Times(initialization_timeout, heartbeat_timeout_seconds, shutdown_timeout_seconds)
    is_asked = cluster_detection_method in ("mpi4py", "ompi")
    if coordinator_address is None and cluster_detection_method != "deactivate":
        if is_asked or (num_processes is None and is_under_mpi()):
            _begin(meet_by_mpi(_device_count(local_device_ids), times))
            return
    count, index = _checked(coordinator_address, num_processes, process_id)
    if count == 1 or coordinator_address is None:
        state.coordinator_address, state.is_initialized = coordinator_address, True
        return
    bind = coordinator_bind_address or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS")
    devices = _device_count(local_device_ids)
    state.coordinator_address = coordinator_address
    _begin(meet_by_sockets(coordinator_address, count, index, devices, bind, times))


def _number(given: int | None, variable: str) -> int | None:
    text = os.environ.get(variable)
    return int(text) if given is None and text and text.isdigit() else given


def _checked(address: str | None, count: int | None, index: int | None) -> tuple[int, int]:
    """Returns the number of processes and of this one, after a look at them."""
    if address is None and count in (None, 1) and index in (None, 0):
        return 1, 0
    is_number = isinstance(count, int) and isinstance(index, int)
    if address is None or not is_number or not 0 <= int(index or 0) < int(count or 0):
        raise ParameterError(
            f"distributed.initialize: coordinator_address={address!r}, num_processes={count!r}, "
            f"process_id={index!r} do not tell which of how many processes this is.",
            "Pass all three, process_id from 0 to num_processes - 1; start the processes by mpirun "
            "and pass none; or pass none for one process alone.",
        )
    return int(count or 0), int(index or 0)


def _device_count(local_device_ids: int | Sequence[int] | None) -> int:
    """Returns how many devices the CPU of this process is, which is settled from now on."""
    if are_made():
        raise DistributedSetupError(
            "distributed.initialize: devices were asked for before, by a computation or by "
            "axir.devices().",
            "Call axir.distributed.initialize() first, when the program begins.",
        )
    if local_device_ids is not None:
        chosen = [local_device_ids] if isinstance(local_device_ids, int) else local_device_ids
        config.update("jax_num_cpu_devices", len(chosen))
        for option in VISIBLE_DEVICES.values():
            config.update(option, ",".join(map(str, chosen)))
    return cpu_device_count()


def _begin(job: Job) -> None:
    state.process_id, state.num_processes = job.member.index, job.member.count
    state.client, state.service = job, job.coordinator
    state.is_initialized = True


def is_initialized() -> bool:
    """Tells whether `initialize` was called."""
    return state.is_initialized


def shutdown() -> None:
    """Leaves the other processes after all have called this; called automatically at exit."""
    if state.client is not None:
        state.client.end()
        forget()
    fresh = DistributedState()
    for name, value in vars(fresh).items():
        setattr(state, name, value)
