"""`jax._src.sharding_impls`: the names of `axir.sharding`, and shardings without names."""

from __future__ import annotations

from axir._devices.partitions import as_sharding
from axir.sharding import *  # noqa: F403
from axir.sharding import NamedSharding, PartitionSpec

# No place: `in_shardings` and `out_shardings` are None then.
UNSPECIFIED = None
UnspecifiedValue = type(None)


def canonicalize_sharding(
    sharding: object, api_name: str, check_mesh_consistency: bool = True
) -> NamedSharding | None:
    """Returns a sharding unchanged, and a specification as a sharding over the mesh in use.

    Raises:
        TypeError: for other objects.
        MissingMeshError: for a specification if no mesh is in use.
    """
    if sharding is None or (isinstance(sharding, NamedSharding) and sharding.mesh.empty):
        return None
    if not isinstance(sharding, (NamedSharding, PartitionSpec)):
        raise TypeError(f"{api_name}: out_sharding is a {type(sharding).__name__}: {sharding}.")
    found = as_sharding(sharding, api_name)
    return found if isinstance(found, NamedSharding) else None
