"""A job of two processes of which the second ends in the middle, in the way that is asked for.

Usage: losses.py WAY [HOST:PORT INDEX]
"""

from __future__ import annotations

import os
import signal
import sys

import numpy as np

import axir
from axir.experimental import multihost_utils
from axir.sharding import Mesh, NamedSharding
from axir.sharding import PartitionSpec as P


def main(way: str, *place: str) -> None:
    if place:
        axir.distributed.initialize(place[0], 2, int(place[1]), initialization_timeout=120)
    else:
        axir.distributed.initialize(initialization_timeout=120)
    mesh = Mesh(np.array(axir.devices()), ("all",))
    x = axir.device_put(np.arange(2.0), NamedSharding(mesh, P("all")))
    total = axir.jit(
        axir.shard_map(
            lambda x: axir.lax.psum(x, "all"), mesh=mesh, in_specs=P("all"), out_specs=P()
        )
    )
    assert float(total(x)[0]) == 1.0
    multihost_utils.sync_global_devices("all have computed")
    if axir.process_index() == 1:
        if way == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("a mistake of mine")
    total(x).block_until_ready()


if __name__ == "__main__":
    main(*sys.argv[1:])
