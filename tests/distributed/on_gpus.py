"""What two processes with a GPU each check together; a GPU that both share will do.

Usage: on_gpus.py PLATFORM [HOST:PORT INDEX]: by MPI, or by sockets.
"""

from __future__ import annotations

import sys

import numpy as np

import axir
import axir.numpy as jnp
from axir import lax
from axir.sharding import Mesh, NamedSharding
from axir.sharding import PartitionSpec as P

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def main() -> None:
    platform = sys.argv[1]
    if len(sys.argv) > 2:
        axir.distributed.initialize(sys.argv[2], 2, int(sys.argv[3]), 0)
    else:
        axir.distributed.initialize(local_device_ids=0)
    me = axir.process_index()
    gpus = axir.devices(platform)
    assert [(gpu.id, gpu.process_index, gpu.local_hardware_id) for gpu in gpus] == [
        (0, 0, 0),
        (1, 1, 0),
    ]
    assert axir.local_devices(backend=platform) == [gpus[me]]
    assert gpus[0].device_kind == gpus[1].device_kind

    mesh = Mesh(np.array(gpus), ("rows",))
    x = axir.device_put(X, NamedSharding(mesh, P("rows")))
    assert [shard.device for shard in x.addressable_shards] == [gpus[me]]
    # The compiler puts the collective in: each device has the sum of its rows only.
    total = axir.jit(lambda x: jnp.sin(x).sum(0))(x)
    assert gpus[me] in total.devices()
    np.testing.assert_allclose(total, np.sin(X).sum(0), rtol=1e-5)

    def exchange(x: axir.Array) -> axir.Array:
        return lax.ppermute(x, "rows", [(0, 1), (1, 0)]) * lax.psum(x[0, 0], "rows")

    spec = P("rows")
    swapped = axir.jit(axir.shard_map(exchange, mesh=mesh, in_specs=spec, out_specs=spec))(x)
    (shard,) = swapped.addressable_shards
    np.testing.assert_array_equal(shard.data, np.roll(X, 2, 0)[shard.index] * 6)
    # What one computes alone stays on its own GPU.
    assert (axir.device_put(X, gpus[me]) + me).devices() == {gpus[me]}
    print(f"process {me} is content", flush=True)


if __name__ == "__main__":
    main()
