"""Semaphores and copies of a kernel: counters, and copies that are done when they begin."""

from __future__ import annotations

import dataclasses
import enum

from axir._transforms.refs import AnyRef
from axir._trees import tree
from axir.dialect.core.annotations import Tree, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.numpy import asarray

from ._accelerators import AcceleratorOnlyError
from ._memory import SEMAPHORE_DTYPE, MemoryRef, Space


class DeviceIdType(enum.Enum):
    """How another device is named."""

    MESH = "mesh"
    LOGICAL = "logical"


def semaphore_signal(
    sem_or_view: AnyRef,
    inc: ArrayLike = 1,
    *,
    device_id: object = None,
    device_id_type: DeviceIdType = DeviceIdType.MESH,
    core_index: object = None,
) -> None:
    """Adds to a semaphore.

    Args:
        sem_or_view: The semaphore.
        inc: How much.
        device_id: A semaphore of another device cannot be reached.
        device_id_type: How the device is named.
        core_index: Accepted for compatibility: there is one core.

    Raises:
        AcceleratorOnlyError: for another device's.
    """
    if device_id is not None:
        raise remote_error("semaphore_signal(..., device_id=...)")
    sem_or_view[...] = sem_or_view[...] + _count(inc)


def semaphore_wait(sem_or_view: AnyRef, value: ArrayLike = 1, *, decrement: bool = True) -> None:
    """Subtracts from a semaphore without waiting, because instances run in order.

    Args:
        sem_or_view: The semaphore.
        value: How much.
        decrement: Whether to subtract.
    """
    if decrement:
        sem_or_view[...] = sem_or_view[...] - _count(value)


def semaphore_read(sem_or_view: AnyRef) -> Value:
    """Returns the count of a semaphore, an int32."""
    return sem_or_view[...].astype("int32")


def _count(number: ArrayLike) -> Value:
    return asarray(number, SEMAPHORE_DTYPE)


def remote_error(what: str) -> AcceleratorOnlyError:
    """Returns the error for access to other devices."""
    return AcceleratorOnlyError(
        f"{what} reaches into the memory of another device; a kernel here has one CPU's.",
        "Exchange parts between devices around the kernel: axir.lax.ppermute, all_gather, psum "
        "in axir.shard_map.",
    )


# Copies ------------------------------------------------------------------------------------------


@dataclasses.dataclass
class AsyncCopyDescriptor:
    """A copy that is about to begin."""

    src_ref: AnyRef
    dst_ref: AnyRef

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Copies; or adds."""
        new = self.src_ref[...]
        self.dst_ref[...] = self.dst_ref[...] + new if add else new

    def wait(self) -> None:
        """Does nothing: a copy is done when it has begun."""

    def wait_recv(self) -> None:
        """Does nothing."""

    def wait_send(self) -> None:
        """Does nothing."""


def make_async_copy(
    src_ref: AnyRef, dst_ref: AnyRef, sem: object = None, *, src_sem: object = None
) -> UserObject:
    """Returns a copy that begins with `start()`.

    Args:
        src_ref: The source, a ref or part of one.
        dst_ref: Where to, a ref or part of one.
        sem, src_sem: Accepted for compatibility: waiting for the copy returns at once.
    """
    return AsyncCopyDescriptor(src_ref, dst_ref)


def async_copy(
    src_ref: AnyRef,
    dst_ref: AnyRef,
    sem: object = None,
    *,
    priority: int = 0,
    add: bool = False,
    src_sem: object = None,
) -> UserObject:
    """Copies; returns an object to wait for."""
    copy = AsyncCopyDescriptor(src_ref, dst_ref)
    copy.start(priority, add=add)
    return copy


def sync_copy(src_ref: Tree, dst_ref: Tree, *, add: bool = False) -> None:
    """Copies a tree of refs to another one."""
    sources, targets = tree.leaves(src_ref), tree.leaves(dst_ref)
    for source, target in zip(sources, targets, strict=True):
        async_copy(source, target, add=add)


def make_async_remote_copy(*args: object, **kwargs: object) -> UserObject:
    """Raises: a kernel has the memory of one device."""
    raise remote_error("make_async_remote_copy")


def async_remote_copy(*args: object, **kwargs: object) -> UserObject:
    """Raises: a kernel has the memory of one device."""
    raise remote_error("async_remote_copy")


def semaphore_memory(space: Space, shape: tuple[int, ...] = ()) -> MemoryRef:
    """Returns the request for semaphores: counters that begin with 0."""
    return space(shape, SEMAPHORE_DTYPE)
