"""What processes that compute together agree on: here they are one, which agrees with itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from axir._devices.partitions import NamedSharding, PartitionSpec
from axir._devices.placement import device_put
from axir._trees import tree
from axir.dialect.core.annotations import PyTree, UserObject
from axir.runtime import Device
from axir.sharding import Mesh

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "live_devices",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]


def assert_equal(in_tree: PyTree, fail_message: str = "") -> None:
    """Raises an error if processes have different values: the one has its own.

    Args:
        in_tree: A tree of arrays.
        fail_message: What to say if they differ.
    """


def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> PyTree:
    """Returns the values of one process in all: as NumPy arrays.

    Args:
        in_tree: A tree of arrays.
        is_source: Whether this is the process whose values are taken.

    >>> broadcast_one_to_all({"a": 1.0})
    {'a': array(1.)}
    """
    return tree.map(np.asarray, in_tree)


def process_allgather(in_tree: PyTree, tiled: bool = False) -> PyTree:
    """Returns the values of all processes, as NumPy arrays.

    Args:
        in_tree: A tree of arrays.
        tiled: Whether they are concatenated along the first axis, rather than stacked.

    >>> import axir.numpy as jnp
    >>> process_allgather(jnp.ones(2)).shape, process_allgather(jnp.ones(2), tiled=True).shape
    ((1, 2), (2,))
    """

    def gathered(x: UserObject) -> np.ndarray:
        host = np.asarray(x)
        return host if tiled and host.ndim else host[None]

    return tree.map(gathered, in_tree)


def sync_global_devices(name: str) -> None:
    """Waits until all processes have come here, which the one has.

    Args:
        name: What this place is called.
    """


def reached_preemption_sync_point(step_id: int) -> bool:
    """Tells whether a notice that the processes will be ended asks to save now: there is none."""
    return False


@contextlib.contextmanager
def live_devices(devices: Sequence[Device]) -> Iterator[list[Device]]:
    """Yields which of the devices belong to processes that are alive: all."""
    yield list(devices)


def host_local_array_to_global_array(
    local_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree
) -> PyTree:
    """Returns arrays of the parts of all processes, spread over a mesh.

    Args:
        local_inputs: A tree of what this process has: all.
        global_mesh: The mesh.
        pspecs: A tree of `PartitionSpec`s that is a prefix of it.
    """
    return device_put(local_inputs, _shardings(global_mesh, pspecs))


def global_array_to_host_local_array(
    global_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree
) -> PyTree:
    """Returns what this process has of arrays that are spread over a mesh: all.

    Args:
        global_inputs: A tree of arrays.
        global_mesh: The mesh.
        pspecs: A tree of `PartitionSpec`s that is a prefix of it.
    """
    return device_put(global_inputs, _shardings(global_mesh, pspecs))


def _shardings(mesh: Mesh, specs: PyTree) -> PyTree:
    return tree.map(
        lambda spec: NamedSharding(mesh, spec if spec is not None else PartitionSpec()),
        specs,
        is_leaf=lambda x: x is None,
    )
