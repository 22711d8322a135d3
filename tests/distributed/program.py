"""What two processes of two devices each check together, in one program: starts are expensive.

Usage: program.py FOLDER [HOST:PORT INDEX]: by MPI, or by sockets.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import axir
import axir.numpy as jnp
from axir import checkpoint, lax
from axir.experimental import multihost_utils
from axir.sharding import Mesh, NamedSharding
from axir.sharding import PartitionSpec as P

W = np.arange(32, dtype=np.float32).reshape(8, 4)


def begin() -> None:
    axir.config.update("jax_num_cpu_devices", 2)
    if len(sys.argv) > 2:
        axir.distributed.initialize(sys.argv[2], 2, int(sys.argv[3]), initialization_timeout=120)
    else:
        axir.distributed.initialize(initialization_timeout=120)


def check_devices() -> None:
    me = axir.process_index()
    assert axir.distributed.is_initialized()
    assert (axir.process_count(), axir.device_count(), axir.local_device_count()) == (2, 4, 2)
    assert [d.process_index for d in axir.devices()] == [0, 0, 1, 1]
    assert [d.id for d in axir.local_devices()] == [2 * me, 2 * me + 1]
    assert [d.local_hardware_id for d in axir.devices()] == [0, 1, 0, 1]
    assert axir.local_devices(1 - me)[0].process_index == 1 - me
    # What each computes alone stays its own.
    assert axir.jit(lambda x: x + me)(jnp.ones(2)).devices() == {axir.local_devices()[0]}
    other = axir.local_devices(1 - me)[0]
    told = raised(lambda: axir.device_put(jnp.ones(2), other))
    assert isinstance(told, axir.errors.NotAddressableError), repr(told)
    assert f"belongs to process {1 - me}" in str(told)


def raised(act: object) -> Exception:
    try:
        act()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def mesh() -> Mesh:
    return axir.make_mesh((2, 2), ("data", "model"), (axir.sharding.AxisType.Auto,) * 2)


def check_arrays() -> axir.Array:
    me = axir.process_index()
    both = NamedSharding(mesh(), P("data", "model"))
    x = axir.make_array_from_callback(W.shape, both, lambda index: W[index])
    assert x.shape == W.shape
    assert not x.is_fully_addressable
    assert not both.is_fully_addressable
    assert len(x.addressable_shards) == 2
    assert len(x.global_shards) == 4
    for shard in x.addressable_shards:
        assert shard.device.process_index == me
        np.testing.assert_array_equal(shard.data, W[shard.index])
    told = raised(lambda: np.asarray(x))
    assert isinstance(told, RuntimeError)
    assert "non-addressable" in str(told)
    assert "process_allgather" in str(told)
    mine = W[4 * me : 4 * me + 4]
    y = axir.make_array_from_process_local_data(both, mine)
    z = axir.make_array_from_process_local_data(both, W, W.shape)
    v = axir.device_put(W, both)
    for other in (y, z, v):
        assert other.shape == W.shape
        assert same(other, x)
    rows = axir.make_array_from_process_local_data(NamedSharding(mesh(), P("data")), mine)
    assert rows.shape == (8, 4)
    assert multihost_utils.process_allgather(x, tiled=True).tolist() == W.tolist()
    local = multihost_utils.global_array_to_host_local_array(x, mesh(), P("data", "model"))
    np.testing.assert_array_equal(local, mine)
    back = multihost_utils.host_local_array_to_global_array(mine, mesh(), P("data", "model"))
    assert same(back, x)
    return x


def same(one: axir.Array, other: axir.Array) -> bool:
    pairs = zip(one.addressable_shards, other.addressable_shards, strict=True)
    return all(np.array_equal(a.data, b.data) and a.index == b.index for a, b in pairs)


def check_agreement() -> None:
    me = axir.process_index()
    found = multihost_utils.broadcast_one_to_all({"a": np.arange(3) + me, "b": float(me)})
    assert found["a"].tolist() == [0, 1, 2]
    assert found["b"] == 0.0
    found = multihost_utils.broadcast_one_to_all(np.int32(me), is_source=me == 1)
    assert found == 1
    stacked = multihost_utils.process_allgather(np.full(2, me))
    assert stacked.tolist() == [[0, 0], [1, 1]]
    assert multihost_utils.process_allgather(np.full(2, me), tiled=True).tolist() == [0, 0, 1, 1]
    multihost_utils.sync_global_devices("here")
    multihost_utils.assert_equal({"w": W})
    told = raised(lambda: multihost_utils.assert_equal({"w": W, "b": W + me}, "Weights differ"))
    assert isinstance(told, AssertionError)
    assert "Weights differ: ['b'] of process 1" in str(told)


def check_programs(x: axir.Array) -> None:
    where = mesh()

    @axir.jit
    @axir.shard_map(
        mesh=where,
        in_specs=P("data", "model"),
        out_specs=(P(), P("data"), P()),
        # What is gathered counts as varying along the axis.
        check_vma=False,
    )
    def collectives(part: axir.Array) -> tuple[axir.Array, ...]:
        total = lax.psum(part.sum(), ("data", "model"))
        rows = lax.all_gather(part, "model", axis=1, tiled=True)
        moved = lax.ppermute(part, "data", [(0, 1), (1, 0)])
        largest = lax.pmax(lax.pmax((part * moved).max(), "data"), "model")
        scattered = lax.psum_scatter(rows, "model", scatter_dimension=1, tiled=True)
        exchanged = lax.all_to_all(scattered, "data", 0, 1, tiled=True)
        back = lax.all_to_all(exchanged, "data", 1, 0, tiled=True)
        return total, rows + 0 * lax.psum(back.sum(), ("data", "model")), largest

    total, rows, largest = collectives(x)
    assert float(total) == W.sum()
    swapped = np.concatenate([W[4:], W[:4]])
    assert float(largest) == (W * swapped).max()
    for shard in rows.addressable_shards:
        np.testing.assert_array_equal(shard.data, W[shard.index])

    @axir.jit
    def loss(w: axir.Array, x: axir.Array) -> axir.Array:
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    w = axir.device_put(W[:4] / 32, NamedSharding(where, P(None, "model")))
    data = axir.device_put(W / 32, NamedSharding(where, P("data")))
    value, slope = axir.jit(axir.value_and_grad(loss))(w, data)
    expected, slopes = axir.value_and_grad(loss)(jnp.array(W[:4] / 32), jnp.array(W / 32))
    np.testing.assert_allclose(float(value), float(expected), rtol=1e-6)
    for shard in slope.addressable_shards:
        np.testing.assert_allclose(shard.data, slopes[shard.index], rtol=1e-5)


def check_checkpoints(folder: Path, x: axir.Array) -> None:
    host = np.arange(3.0) + axir.process_index()
    tree = {"x": x, "local": host, "step": 7}
    path = checkpoint.save(folder, tree, 7)
    assert sorted(f.name for f in path.iterdir())[1:] == [
        f"process_0000{n}.safetensors" for n in range(2)
    ]
    found = checkpoint.restore(folder, tree)
    assert same(found["x"], x)
    assert found["local"].tolist() == [0, 1, 2]
    columns = NamedSharding(mesh(), P(None, ("model", "data")))
    again = checkpoint.restore(folder, shardings={"x": columns, "local": None, "step": None})
    for shard in again["x"].addressable_shards:
        np.testing.assert_array_equal(shard.data, W[shard.index])
    told = raised(lambda: checkpoint.save(folder, tree, 7))
    assert "step 7 already" in str(told)


def check_unequal_programs() -> None:
    """Comes last: afterwards these processes cannot go on."""
    me = axir.process_index()
    everywhere = Mesh(np.array(axir.devices()), ("all",))
    apply = axir.lax.psum if me else axir.lax.pmax
    different = axir.shard_map(
        lambda x: apply(x, "all"), mesh=everywhere, in_specs=P("all"), out_specs=P()
    )
    x = axir.device_put(np.arange(4.0), NamedSharding(everywhere, P("all")))
    told = raised(lambda: axir.jit(different)(x).block_until_ready())
    assert isinstance(told, axir.errors.UnequalProgramsError), repr(told)
    assert "process 0 has come to step 1 of run" in str(told)
    assert "pmax of" in str(told)
    assert "psum of" in str(told)


def main() -> None:
    begin()
    check_devices()
    x = check_arrays()
    check_agreement()
    check_programs(x)
    check_checkpoints(Path(sys.argv[1]), x)
    multihost_utils.sync_global_devices("end")
    print(f"process {axir.process_index()} is content", flush=True)
    check_unequal_programs()
    print(f"process {axir.process_index()} was told", flush=True)


if __name__ == "__main__":
    main()
