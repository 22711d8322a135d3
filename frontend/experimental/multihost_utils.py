"""Agreement between processes that compute together: values, barriers, arrays of parts."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from axir._devices.partitions import NamedSharding, PartitionSpec
from axir._devices.placed_arrays import make_array_from_process_local_data
from axir._devices.placement import device_put
from axir._transforms.jit import jit
from axir._trees import tree
from axir.dialect.core.annotations import HostArray, PyTree, Tree, UserObject
from axir.dialect.core.array import Array
from axir.dialect.core.errors import AxirError
from axir.runtime import Device
from axir.runtime.processes.group import current
from axir.sharding import Mesh

__all__ = [
    "assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
    "host_local_array_to_global_array", "live_devices", "process_allgather",
    "reached_preemption_sync_point", "sync_global_devices",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class UnequalValuesError(AxirError, AssertionError):
    """Processes have different values where they should have the same."""


def assert_equal(in_tree: Tree, fail_message: str = "") -> None:
    """Raises an error in all processes if they have different values.

    Args:
        in_tree: A tree of arrays.
        fail_message: What to say if they differ.

    Raises:
        UnequalValuesError: if they do, naming a leaf and a process.
    """
    paths = tree.paths(in_tree)
    digests = [
        hashlib.sha256(repr((x.shape, x.dtype)).encode() + x.tobytes()).hexdigest()
        for x in map(_host, tree.leaves(in_tree))
    ]
    told = "\n".join(f"{path} {digest}" for path, digest in zip(paths, digests, strict=True))
    everywhere = [x.decode() for x in current().all_gather(told.encode(), "assert_equal")]
    for process, other in enumerate(everywhere):
        if other != everywhere[0]:
            pairs = zip(other.splitlines(), everywhere[0].splitlines(), strict=False)
            which = next((a.rpartition(" ")[0] for a, b in pairs if a != b), "the structure")
            raise UnequalValuesError(
                f"{fail_message or 'Processes have different values'}: {which or 'the array'} of "
                f"process {process} is not that of process 0.",
                "Let process 0 tell all: broadcast_one_to_all.",
            )


def broadcast_one_to_all(in_tree: Tree, is_source: bool | None = None) -> PyTree:
    """Returns the values of one process in all processes, as NumPy arrays.

    Args:
        in_tree: A tree of arrays, of the same structure, shapes and dtypes in all processes.
        is_source: Whether the values of this process are taken; by default process 0's are.

    >>> broadcast_one_to_all({"a": 1.0})
    {'a': array(1.)}
    """
    group = current()
    if is_source is None:
        is_source = group.index == 0

    def broadcast(x: object) -> HostArray:
        host = _host(x)
        content = host.tobytes() if is_source else b""
        found = [c for c in group.all_gather(content, "broadcast") if c]
        return np.frombuffer(found[0] if found else b"", host.dtype).reshape(host.shape).copy()

    return tree.map(broadcast, in_tree)


def process_allgather(in_tree: Tree, tiled: bool = False) -> PyTree:
    """Returns the values of all processes, as NumPy arrays.

    Args:
        in_tree: A tree of arrays. Of those that lie on devices of several processes the whole is
            returned, which needs `tiled`.
        tiled: Whether values are concatenated along the first axis, rather than stacked.

    >>> import axir.numpy as jnp
    >>> process_allgather(jnp.ones(2)).shape, process_allgather(jnp.ones(2), tiled=True).shape
    ((1, 2), (2,))
    """

    def gathered(x: object) -> HostArray:
        if isinstance(x, Array) and not getattr(x, "is_fully_addressable", True):
            return np.asarray(_replicated(x))
        host = _host(x)
        found = [
            np.frombuffer(content, host.dtype).reshape(host.shape)
            for content in current().all_gather(host.tobytes(), "process_allgather")
        ]
        return np.concatenate(found) if tiled and host.ndim else np.stack(found)

    return tree.map(gathered, in_tree)


def _host(x: UserObject) -> HostArray:
    return np.ascontiguousarray(np.asarray(x)).reshape(np.shape(x))


def _replicated(x: UserObject) -> object:
    """Returns an array that each device holds completely."""
    whole = NamedSharding(x.sharding.mesh, PartitionSpec())
    return jit(lambda x: x, out_shardings=whole)(x)


def sync_global_devices(name: str) -> None:
    """Waits until all processes have come here.

    Args:
        name: The name of the barrier; the same in all processes.

    Raises:
        UnequalValuesError: if others are at a place of another name.
    """
    assert_equal(np.frombuffer(name.encode(), np.uint8), f"sync_global_devices({name!r})")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Tells whether a notice that the processes will be ended asks to save now: always False."""
    return False


@contextlib.contextmanager
def live_devices(devices: Sequence[Device]) -> Iterator[list[Device]]:
    """Yields which of the devices belong to processes that are alive: all.

    A lost process ends the job, so either all processes are alive or none.
    """
    yield list(devices)


def host_local_array_to_global_array(local_inputs: Tree, global_mesh: Mesh, pspecs: Tree) -> PyTree:
    """Returns arrays of the parts of all processes, spread over a mesh.

    Args:
        local_inputs: A tree of the parts in this process.
        global_mesh: The mesh.
        pspecs: A tree of `PartitionSpec`s that is a prefix of it.
    """
    shardings = _shardings(global_mesh, pspecs)
    places = tree.broadcast_prefix(shardings, local_inputs, "pspecs")
    leaves, structure = tree.flatten(local_inputs)
    return structure.unflatten(
        [
            make_array_from_process_local_data(place, _host(x))
            for x, place in zip(leaves, places, strict=True)
        ]
    )


def global_array_to_host_local_array(
    global_inputs: Tree, global_mesh: Mesh, pspecs: Tree
) -> PyTree:
    """Returns this process's parts of arrays that are spread over a mesh.

    Args:
        global_inputs: A tree of arrays.
        global_mesh: The mesh.
        pspecs: A tree of `PartitionSpec`s that is a prefix of it.
    """
    shardings = _shardings(global_mesh, pspecs)
    if not global_mesh.is_multi_process:
        return device_put(global_inputs, shardings)
    places = tree.broadcast_prefix(shardings, global_inputs, "pspecs")
    leaves, structure = tree.flatten(global_inputs)
    return structure.unflatten([_local(x, place) for x, place in zip(leaves, places, strict=True)])


def _local(x: UserObject, place: NamedSharding) -> object:
    """Returns an array of this process's parts, on this process's part of the mesh."""
    if not x.sharding.is_equivalent_to(place, x.ndim):
        x = jit(lambda x: x, out_shardings=place)(x)
    shards = x.addressable_shards
    begins = [min(s.index[d].indices(n)[0] for s in shards) for d, n in enumerate(x.shape)]
    ends = [max(s.index[d].indices(n)[1] for s in shards) for d, n in enumerate(x.shape)]
    found = np.empty([e - b for b, e in zip(begins, ends, strict=True)], x.dtype)
    for shard in shards:
        index = tuple(
            slice(*(np.array(part.indices(n)[:2]) - b))
            for part, n, b in zip(shard.index, x.shape, begins, strict=True)
        )
        found[index] = shard.data.host()
    mesh: UserObject = place.mesh
    return device_put(found, NamedSharding(mesh.local_mesh, place.spec))


def _shardings(mesh: Mesh, specs: Tree) -> Tree:
    return tree.map(
        lambda spec: NamedSharding(mesh, spec if spec is not None else PartitionSpec()),
        specs,
        is_leaf=lambda x: x is None,
    )
