"""Where arrays are, `SingleDeviceSharding`, and `ShapeDtypeStruct`: as in JAX with one device."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import errors
from axir._devices.shape_dtype_struct import ImmutableStructError
from axir.sharding import NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

DEVICE = axir.devices("cpu")[0]
SHARDING = SingleDeviceSharding(DEVICE)
LIBRARIES = pytest.mark.parametrize("lib", [axir, jax], ids=["axir", "jax"])
X = np.arange(6, dtype=np.float32).reshape(2, 3)


# Arrays ------------------------------------------------------------------------------------------


@LIBRARIES
def test_an_array_lies_on_one_device_as_a_whole(lib: Any) -> None:
    x, device = lib.numpy.asarray(X), lib.devices("cpu")[0]
    assert x.device == device
    assert x.devices() == x.sharding.device_set == {device}
    assert str(device) == "cpu:0"
    assert repr(x.sharding) == ("SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)")
    assert x.is_fully_addressable
    assert x.is_fully_replicated
    assert not x.committed
    assert (x.nbytes, x.itemsize, x.on_device_size_in_bytes()) == (24, 4, 24)
    assert x.is_ready()
    assert x.copy_to_host_async() is None
    assert tuple(x.__dlpack_device__()) == (1, 0)


@LIBRARIES
def test_its_only_shard_is_the_array(lib: Any) -> None:
    x = lib.numpy.asarray(X)
    for shards in (x.addressable_shards, x.global_shards):
        (shard,) = shards
        assert (shard.index, shard.replica_id) == ((slice(None), slice(None)), 0)
        assert shard.device == x.device
        np.testing.assert_array_equal(shard.data, X)
    np.testing.assert_array_equal(x.addressable_data(0), X)


def test_the_address_is_that_of_the_elements_in_order() -> None:
    import ctypes

    x = jnp.asarray(X).T
    address = x.unsafe_buffer_pointer()
    assert list((ctypes.c_float * 6).from_address(address)) == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]


@LIBRARIES
def test_a_deleted_array_knows_its_type_and_has_no_elements(lib: Any) -> None:
    x = lib.numpy.asarray(X)
    x.delete()
    x.delete()
    assert x.is_deleted()
    assert (x.shape, x.nbytes, x.sharding) == ((2, 3), 24, lib.numpy.ones(1).sharding)
    uses = [
        lambda: x + 1, lambda: np.asarray(x), lambda: x.devices(), lambda: x.addressable_shards,
        x.block_until_ready, x.copy_to_host_async, x.unsafe_buffer_pointer,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(RuntimeError, match="deleted"):
            use()


def test_buffers_hold_the_elements_in_order() -> None:
    x = jnp.asarray(X)
    assert bytes(x) == X.tobytes()
    assert bytes(jnp.arange(3)) == np.arange(3, dtype=np.int32).tobytes()
    view = x.T.__buffer__(0)
    assert (view.format, view.shape, view.readonly, view.c_contiguous) == ("f", (3, 2), True, True)
    assert view.tolist() == X.T.tolist()
    if sys.version_info >= (3, 12):
        assert memoryview(x).tolist() == X.tolist()
    with pytest.raises(BufferError, match="immutable"):
        x.__buffer__(1)
    with pytest.raises(BufferError, match=r"no elements of dtype bfloat16.*x\.view"):
        jnp.ones(2, jnp.bfloat16).__buffer__(0)


def test_a_tracer_tells_where_its_value_is_if_that_is_known() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append((x.devices(), x.is_fully_replicated, x.committed))
        return x * 2

    axir.grad(f)(1.0)
    assert seen == [({DEVICE}, True, False)]
    with pytest.raises(errors.ConcretizationTypeError, match=r"needed by \.devices, but while 'f'"):
        axir.make_jaxpr(f)(1.0)
    # Programs ask with hasattr whether there is a sharding.
    axir.make_jaxpr(lambda x: seen.append(hasattr(x, "sharding")))(1.0)
    assert seen[-1] is False


# Shardings ---------------------------------------------------------------------------------------


@LIBRARIES
def test_a_sharding_tells_what_its_device_holds(lib: Any) -> None:
    device = lib.devices("cpu")[0]
    sharding = lib.sharding.SingleDeviceSharding(device)
    assert isinstance(sharding, lib.sharding.Sharding)
    assert sharding.addressable_devices == sharding.device_set == {device}
    assert (sharding.num_devices, sharding.memory_kind) == (1, "device")
    assert sharding.is_fully_addressable
    assert sharding.is_fully_replicated
    assert sharding.has_addressable_devices
    assert sharding.shard_shape((2, 3)) == (2, 3)
    whole = {device: (slice(None), slice(None))}
    assert sharding.devices_indices_map((2, 3)) == whole
    assert sharding.addressable_devices_indices_map((2, 3)) == whole
    other = lib.sharding.SingleDeviceSharding(device, memory_kind="device")
    assert sharding == other == sharding.with_memory_kind("device")
    assert hash(sharding) == hash(other)
    assert sharding.is_equivalent_to(lib.numpy.ones(2).sharding, 1)
    assert sharding != device


@LIBRARIES
def test_arrays_are_put_by_sharding(lib: Any) -> None:
    sharding = lib.sharding.SingleDeviceSharding(lib.devices("cpu")[0])
    put = lib.device_put({"a": X, "b": {"c": 1.0}}, {"a": sharding, "b": None}, donate=False)
    assert (put["a"].committed, put["a"].sharding) == (True, sharding)
    assert not put["b"]["c"].committed
    assert lib.device_put(X, sharding, src=sharding, may_alias=True).committed
    assert lib.numpy.zeros(2, device=sharding).committed


def test_errors_of_shardings() -> None:
    with pytest.raises(errors.ParameterError, match=r"3 is not a device\.[^$]*axir.devices\(\)"):
        SingleDeviceSharding(3)  # type: ignore[arg-type]
    with pytest.raises(errors.ParameterError, match="cpu:0 has no memory of kind 'pinned_host'"):
        SingleDeviceSharding(DEVICE, memory_kind="pinned_host")
    with pytest.raises(errors.ParameterError, match="'cpu' is neither a device nor a sharding"):
        axir.device_put(X, "cpu")
    with pytest.raises(AttributeError):
        SHARDING.device = None  # type: ignore[misc]


# ShapeDtypeStruct --------------------------------------------------------------------------------


@LIBRARIES
def test_a_struct_has_the_attributes_of_an_array(lib: Any) -> None:
    s = lib.ShapeDtypeStruct([2, 3], "float32", weak_type=True)
    assert (s.shape, s.dtype, s.ndim, s.size, len(s)) == ((2, 3), np.float32, 2, 6, 2)
    assert (s.weak_type, s.sharding) == (True, None)
    assert repr(s) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32, weak_type=True)"
    same = lib.ShapeDtypeStruct((2, 3), np.float32, weak_type=True)
    assert s == same
    assert hash(s) == hash(same)
    assert s != s.update(weak_type=False)
    assert s.update(shape=(4,), dtype="int8").shape == (4,)
    assert copy.copy(s) == pickle.loads(pickle.dumps(s)) == s
    with pytest.raises(TypeError, match="len()"):
        len(lib.ShapeDtypeStruct((), "float32"))
    with pytest.raises(TypeError, match="not iterable"):
        iter(s)


@LIBRARIES
def test_a_struct_keeps_a_sharding(lib: Any) -> None:
    sharding = lib.sharding.SingleDeviceSharding(lib.devices("cpu")[0])
    s = lib.ShapeDtypeStruct((2,), "float32", sharding=sharding)
    assert s.sharding == sharding
    assert s != lib.ShapeDtypeStruct((2,), "float32")
    assert f"dtype=float32, sharding={sharding})" in repr(s)
    assert lib.eval_shape(lambda x: x * 2, s).shape == (2,)
    assert lib.jit(lambda x: x * 2).lower(s).out_info.shape == (2,)


def test_errors_of_structs() -> None:
    with pytest.raises(errors.ParameterError, match="the dtype must be given"):
        axir.ShapeDtypeStruct((2,), None)
    with pytest.raises(errors.ParameterError, match=r"sharding=3 is no axir\.sharding\.Sharding"):
        axir.ShapeDtypeStruct((2,), "float32", sharding=3)  # type: ignore[arg-type]
    with pytest.raises(ImmutableStructError, match=r"immutable: shape.*\n.*\n.*s\.update\(shape="):
        axir.ShapeDtypeStruct((2,), "float32").shape = (3,)
    assert issubclass(SingleDeviceSharding, Sharding)


@LIBRARIES
def test_structs_are_like_arrays(lib: Any) -> None:
    like = lib.ShapeDtypeStruct.like
    assert like(np.ones((2, 3), np.int8)) == lib.ShapeDtypeStruct((2, 3), "int8")
    assert like(1.5).weak_type
    assert like(lib.numpy.ones(2)).sharding is None
    placed = lib.device_put(lib.numpy.ones(2), lib.devices()[0])
    assert like(placed).sharding == placed.sharding
    found = []
    lib.jit(lambda x: found.append(like(x)))(2)
    assert found[0].shape == ()
    assert found[0].dtype == "int32"


def test_a_sharding_of_an_abstract_mesh_means_the_mesh_in_use() -> None:
    mesh = axir.make_mesh((1, 1), ("x", "y"), axis_types=(axir.sharding.AxisType.Auto,) * 2)
    spec = axir.P("x")
    abstract = axir.sharding.NamedSharding(mesh.abstract_mesh, spec)
    with axir.set_mesh(mesh):
        placed = axir.lax.with_sharding_constraint(axir.numpy.ones(2), abstract)
    assert placed.tolist() == [1, 1]
    with pytest.raises(errors.ParameterError, match="its mesh is abstract"):
        axir.lax.with_sharding_constraint(axir.numpy.ones(2), abstract)


def test_arrays_stay_where_they_are_for_a_memory_space() -> None:
    x = axir.numpy.ones(2)
    for space in axir.memory.Space:
        assert axir.device_put({"x": x}, space)["x"].devices() == x.devices()
    assert str(axir.memory.Space.Host) == "MemorySpace.Host"
    assert axir.process_indices() == axir.host_ids() == [0]
    assert axir.host_count() == 1


def test_functions_lay_their_results_out() -> None:
    mesh = axir.make_mesh((1,), ("x",))
    spec = PartitionSpec("x")
    key = axir.random.key(0)
    makers: list[Callable[..., Any]] = [
        lambda **where: jnp.zeros(4, **where),
        lambda **where: jnp.full(4, 2.0, **where),
        lambda **where: jnp.arange(4, **where),
        lambda **where: jnp.ones_like(np.zeros(4, np.float32), **where),
        lambda **where: axir.random.normal(key, (4,), **where),
        lambda **where: axir.random.permutation(key, 4, **where),
        lambda **where: axir.lax.broadcasted_iota("int32", (4,), 0, **where),
        lambda **where: axir.lax.reshape(np.arange(4), (4,), **where),
        lambda **where: axir.lax.broadcast(2, (4,), **where),
        lambda **where: axir.lax.reduce_sum(np.ones((3, 4), np.float32), (0,), **where),
        lambda **where: axir.lax.dot(np.eye(4), np.arange(4.0), **where),
        lambda **where: jnp.matmul(np.eye(4), np.arange(4.0), **where),
        lambda **where: jnp.dot(np.eye(4), np.arange(4.0), **where),
        lambda **where: jnp.tensordot(np.eye(4), np.arange(4.0), 1, **where),
        lambda **where: jnp.einsum("ij,j", np.eye(4), np.arange(4.0), **where),
        lambda **where: jnp.arange(8).at[::2].get(**where),
        lambda **where: jnp.arange(4).at[1].set(7, **where),
        lambda **where: jnp.arange(4).at[1].apply(jnp.square, **where),
    ]
    for make in makers:
        made = make(out_sharding=NamedSharding(mesh, spec))
        assert made.sharding.spec == spec
        np.testing.assert_array_equal(made, make())
        with axir.set_mesh(mesh):
            placed = axir.jit(lambda make=make: make(out_sharding=spec))()
        np.testing.assert_array_equal(placed, make())
    with pytest.raises(errors.ParameterError, match="normal"):
        axir.random.normal(key, (4,), out_sharding="x")
