"""Where arrays lie with four devices, and what lies in parts: as in JAX."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import errors

LIBRARIES = pytest.mark.parametrize("lib", [axir, jax], ids=["axir", "jax"])
X = np.arange(16, dtype=np.float32).reshape(4, 4)


def sharding(lib: Any, *names: Any, sizes: tuple[int, ...] = (2, 2)) -> Any:
    mesh = lib.sharding.Mesh(np.array(lib.devices()).reshape(sizes), ("x", "y")[: len(sizes)])
    return lib.sharding.NamedSharding(mesh, lib.sharding.PartitionSpec(*names))


@LIBRARIES
def test_there_are_four_devices(lib: Any) -> None:
    assert lib.device_count() == lib.local_device_count() == len(lib.devices("cpu")) == 4
    assert [d.id for d in lib.local_devices()] == [0, 1, 2, 3]
    assert [str(d) for d in lib.devices()] == [f"cpu:{n}" for n in range(4)] or lib is jax


def test_the_number_of_devices_is_settled_by_their_first_use() -> None:
    axir.devices()
    with pytest.raises(ValueError, match="cannot be set to 2 any more: the devices have been used"):
        axir.config.update("axir_num_cpu_devices", 2)
    with pytest.raises(ValueError, match="AXIR_NUM_CPU_DEVICES"):
        axir.config.update("jax_num_cpu_devices", 2)


@LIBRARIES
def test_results_lie_where_the_program_ran(lib: Any) -> None:
    device = lib.devices()[2]
    x = lib.device_put(X, device)
    for y in (
        x,
        x + 1,
        x[0],
        x.sum(),
        lib.jit(lambda x: x * 2)(x),
        lib.grad(lambda x: (x * x).sum())(x),
    ):
        assert y.devices() == {device} == y.sharding.device_set
        assert y.device == device
        assert y.committed
    with lib.default_device(lib.devices()[1]):
        made = [lib.jit(lambda x: x + 1)(1.0), lib.numpy.ones(3), lib.numpy.array([1, 2]) + 1]
        made.append(lib.random.key(0))
    for z in made:
        assert (z.device, z.committed) == (lib.devices()[1], False)
    assert (made[1] + 1).device == lib.devices()[0]


def test_jit_runs_on_its_device() -> None:
    device = axir.devices()[3]
    found = axir.jit(lambda x: x + 1, device=device)(1.0)
    assert (found.device, found.committed) == (device, True)


@LIBRARIES
def test_committed_arrays_of_different_devices_do_not_meet(lib: Any) -> None:
    x, y = (lib.device_put(X, lib.devices()[n]) for n in (1, 2))
    spread = lib.device_put(X, sharding(lib, "x"))
    for pair in ((x, y), (x, spread)):
        for function in (lib.jit(lambda a, b: a["k"] + b), lambda a, b: a["k"] + b):
            with pytest.raises(ValueError, match="incompatible devices"):
                function({"k": pair[0]}, pair[1])


def test_the_error_names_arguments_and_devices() -> None:
    x, y = (axir.device_put(X, axir.devices()[n]) for n in (1, 2))

    def add(a: Any, b: Any) -> Any:
        return a["k"] + b

    with pytest.raises(errors.IncompatibleDevicesError) as caught:
        axir.jit(add)({"k": x}, y)
    text = str(caught.value)
    assert (
        "Received incompatible devices for jit of 'add': argument [0]['k'], float32[4,4], is "
        in text
    )
    assert "committed to cpu:1, and argument [1], float32[4,4], to cpu:2." in text
    assert "axir.device_put(x, device)" in text
    with pytest.raises(
        errors.IncompatibleDevicesError, match="for add: operand 0, .* cpu:1, and op"
    ):
        x + y


@LIBRARIES
@pytest.mark.parametrize("names", [("x", "y"), ("y",), (None, ("x", "y")), ()])
def test_parts_of_arrays(lib: Any, names: tuple[Any, ...]) -> None:
    place = sharding(lib, *names)
    x = lib.device_put(X, place)
    assert x.sharding == place
    assert x.committed
    assert x.devices() == set(lib.devices())
    assert x.is_fully_addressable
    assert x.is_fully_replicated == (not names)
    assert len(x.addressable_shards) == len(x.global_shards) == 4
    for shard, device in zip(x.addressable_shards, lib.devices(), strict=True):
        assert shard.device == device
        assert shard.data.devices() == {device}
        np.testing.assert_array_equal(shard.data, X[shard.index])
    replicas = sorted(shard.replica_id for shard in x.addressable_shards)
    assert (
        replicas
        == {4: [0] * 4, 2: [0, 0, 1, 1], 1: [0, 1, 2, 3]}[
            len({str(shard.index) for shard in x.addressable_shards})
        ]
    )
    np.testing.assert_array_equal(np.asarray(x), X)


@LIBRARIES
def test_trees_of_arrays_go_to_trees_of_places(lib: Any) -> None:
    places = {"a": lib.devices()[1], "b": sharding(lib, "x")}
    found = lib.device_put({"a": X, "b": [X, X + 1]}, places)
    assert found["a"].device == lib.devices()[1]
    for k, x in enumerate(found["b"]):
        assert x.sharding == places["b"]
        np.testing.assert_array_equal(x, X + k)


def test_donated_arrays_are_deleted_and_copies_are_copies() -> None:
    place = sharding(axir, "x")
    for here in (axir.devices()[0], axir.devices()[1], place, None):
        x = jnp.asarray(X) + 0
        y = axir.device_put(x, here, donate=True)
        assert x.is_deleted()
        np.testing.assert_array_equal(y, X)
        z = axir.device_put(y, here, may_alias=False)
        z.delete()
        np.testing.assert_array_equal(y, X)
    x = axir.device_put(X, place)
    y = axir.device_put(x, place, donate=True)
    assert x.is_deleted()
    assert y.sharding == place
    np.testing.assert_array_equal(y, X)
    with pytest.raises(errors.ParameterError, match="must not be an alias"):
        axir.device_put(y, place, donate=True, may_alias=False)


@LIBRARIES
def test_eager_operations_keep_what_lies_in_parts(lib: Any) -> None:
    place = sharding(lib, "x", "y")
    x = lib.device_put(X, place)
    y = lib.numpy.sin(x) + 1
    assert y.sharding.is_equivalent_to(place, 2)
    np.testing.assert_allclose(y, np.sin(X) + 1, rtol=1e-6)
    total = y.sum()
    assert total.devices() == set(lib.devices())
    np.testing.assert_allclose(total, (np.sin(X) + 1).sum(), rtol=1e-5)
    np.testing.assert_array_equal(x[1:3], X[1:3])
    np.testing.assert_array_equal(x @ x.T, X @ X.T)
    for row, expected in zip(x, X, strict=True):
        np.testing.assert_array_equal(row, expected)


@LIBRARIES
def test_sharded_arrays_can_be_deleted_copied_and_printed(lib: Any) -> None:
    x = lib.device_put(X, sharding(lib, "x"))
    assert np.asarray(x.copy()).tolist() == X.tolist()
    assert "4." in str(x)
    assert x.copy_to_host_async() is None
    x.block_until_ready()
    y = lib.device_put(x, sharding(lib, None, "y"))
    x.delete()
    assert x.is_deleted()
    assert not y.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1


@LIBRARIES
def test_axes_must_divide(lib: Any) -> None:
    with pytest.raises(ValueError, match="multiple|divi"):
        lib.device_put(np.ones(3, np.float32), sharding(lib, "x"))


@LIBRARIES
def test_shardings_that_put_the_same_parts_on_the_same_devices(lib: Any) -> None:
    flat = lib.sharding.Mesh(np.array(lib.devices()), ("z",))
    rows = lib.sharding.NamedSharding(flat, lib.sharding.PartitionSpec("z"))
    assert rows.is_equivalent_to(sharding(lib, ("x", "y")), 2)
    assert not rows.is_equivalent_to(sharding(lib, ("y", "x")), 2)
    assert not rows.is_equivalent_to(sharding(lib, None, ("x", "y")), 2)
    assert sharding(lib).is_equivalent_to(
        lib.sharding.NamedSharding(flat, lib.sharding.PartitionSpec()), 2
    )
    only = lib.sharding.SingleDeviceSharding(lib.devices()[0])
    assert not only.is_equivalent_to(rows, 2)
    single = lib.sharding.Mesh(np.array(lib.devices()[:1]), ("z",))
    one = lib.sharding.NamedSharding(single, lib.sharding.PartitionSpec("z"))
    assert only.is_equivalent_to(one, 2)
    double = lib.jit(lambda x: 2 * x, in_shardings=one)
    np.testing.assert_array_equal(double(lib.device_put(X, lib.devices()[0])), 2 * X)


def test_random_keys_lie_in_parts() -> None:
    keys = axir.random.split(axir.random.key(0), 4)
    spread = axir.device_put(keys, sharding(axir, ("x", "y")))
    assert [shard.data.shape for shard in spread.addressable_shards] == [(1,)] * 4
    expected = axir.vmap(axir.random.uniform)(keys)
    np.testing.assert_array_equal(axir.jit(axir.vmap(axir.random.uniform))(spread), expected)


@LIBRARIES
def test_guards_of_transfers(lib: Any) -> None:
    x, double = lib.numpy.asarray(X), lib.jit(lambda x: 2 * x)
    double(x)
    double(1.0)
    with lib.default_device(lib.devices()[1]):
        far = double(x)
    implicit = {
        "host_to_device": [lambda: double(X), lambda: double(1.0), lambda: lib.numpy.sin(X)],
        "device_to_device": [lambda: double(far)],
    }
    for direction, uses in implicit.items():
        for guard in (lib.transfer_guard, getattr(lib, f"transfer_guard_{direction}")):
            for use in uses:
                with guard("disallow"):
                    double(x)
                    lib.device_put(X)
                    lib.device_put(far, lib.devices()[2])
                    lib.device_get(x)
                    np.asarray(x)
                    with pytest.raises(
                        lib.errors.JaxRuntimeError,
                        match=f"Disallowed {direction.replace('_', '-')}",
                    ):
                        use()
                    with guard("allow"):
                        use()
    with lib.transfer_guard_host_to_device("disallow_explicit"):
        with pytest.raises(lib.errors.JaxRuntimeError, match="Disallowed host-to-device"):
            lib.device_put(X)
    double(X)


def test_guards_can_log(caplog: pytest.LogCaptureFixture) -> None:
    with axir.transfer_guard("log"):
        axir.device_put(X)
        assert not caplog.records
        jnp.sin(X)
    assert "host-to-device transfer of array" in caplog.text
    caplog.clear()
    with axir.transfer_guard("log_explicit"):
        axir.device_put(1.5)
    assert "host-to-device transfer of 1.5" in caplog.text
    with pytest.raises(ValueError, match="not a legal value"), axir.transfer_guard("never"):
        pass


@LIBRARIES
def test_live_arrays_are_those_that_are_used(lib: Any) -> None:
    x, y = (lib.device_put(X + n, lib.devices()[n]) for n in (0, 1))
    spread = lib.device_put(X, sharding(lib, "x"))
    y.delete()
    found = lib.live_arrays()
    for array, is_alive in ((x, True), (y, False), (spread, True)):
        assert any(array is other for other in found) == is_alive


@LIBRARIES
def test_arrays_made_of_parts(lib: Any) -> None:
    place = sharding(lib, "x", None)
    made = lib.make_array_from_callback((4, 4), place, lambda index: X[index])
    assert made.sharding == place
    np.testing.assert_array_equal(made, X)
    pieces = [lib.device_put(X[2 * (n // 2) :][:2], d) for n, d in enumerate(lib.devices())]
    joined = lib.make_array_from_single_device_arrays((4, 4), place, pieces)
    assert joined.sharding == place
    np.testing.assert_array_equal(joined, X)


@LIBRARIES
def test_arrays_that_a_function_makes_or_uses_lie_where_they_were_put(lib: Any) -> None:
    place = sharding(lib, "x", "y")
    spread = lib.device_put(lib.numpy.ones((4, 4)), place)
    made = lib.jit(lambda: lib.lax.with_sharding_constraint(lib.numpy.ones((4, 4)), place))()
    used, sums = lib.jit(lambda: (spread, spread.sum(1)))()
    # JAX leaves the place of what is only used to its compiler.
    for array in (made, lib.numpy.zeros_like(spread), *([used] if lib is axir else [])):
        assert array.sharding.is_equivalent_to(place, 2)
    assert sums.tolist() == [4, 4, 4, 4]


@LIBRARIES
def test_new_arrays_lie_like_their_operands(lib: Any) -> None:
    devices, spec = lib.devices(), lib.sharding.PartitionSpec
    auto = lib.sharding.Mesh(np.array(devices), ("x",))
    rows = lib.sharding.NamedSharding(auto, spec("x"))
    cut, put = lib.device_put(np.ones(8), rows), lib.device_put(np.ones(8), devices[2])
    made = [lib.lax.full_like, lib.numpy.full_like]
    for function in made:
        assert function(cut, 3).sharding.spec == spec("x")
        assert function(cut, 3, shape=(4,)).committed is False
        for x in (function(put, 3), function(put, 3, shape=(4,))):
            assert (x.committed, x.devices()) == (True, {devices[2]})
        assert function(lib.numpy.ones(2), 3).committed is False
    for x in (lib.lax.full((8,), 1.0, sharding=rows), lib.lax.full_like(put, 1, sharding=rows)):
        assert x.sharding == rows
    explicit = lib.make_mesh((4,), ("x",))
    assert explicit.axis_types == (lib.sharding.AxisType.Explicit,)
    rows = lib.sharding.NamedSharding(explicit, spec("x"))
    arrays = lib.numpy
    with lib.set_mesh(explicit):
        found = [
            arrays.zeros(8, out_sharding=rows),
            arrays.full((8, 2), 2.0, out_sharding=spec("x")),
            arrays.arange(8, out_sharding=rows),
            arrays.array([1.0] * 8, out_sharding=spec("x")),
        ]
    for x in found:
        assert x.sharding.spec[0] == "x"
        assert x.devices() == set(devices)
    with pytest.raises(ValueError, match="cannot contain axis names that are of type Auto"):
        arrays.zeros(8, out_sharding=lib.sharding.NamedSharding(auto, spec("x")))
    with pytest.raises((ValueError, RuntimeError), match="mesh"):
        arrays.zeros(8, out_sharding=spec("x"))


@LIBRARIES
def test_maps_over_one_device_run_on_it(lib: Any) -> None:
    device = lib.devices()[2]
    spec, mesh = lib.sharding.PartitionSpec, lib.sharding.Mesh(np.array([device]), ("x",))
    mapped = lib.shard_map(lambda x: x * 2, mesh=mesh, in_specs=spec("x"), out_specs=spec("x"))
    constrained = lib.jit(
        lambda x: lib.lax.with_sharding_constraint(x, lib.sharding.NamedSharding(mesh, spec()))
    )
    for function in (mapped, lib.jit(mapped), constrained):
        for x in (lib.numpy.arange(4.0), lib.device_put(np.arange(4.0), device)):
            result = function(x)
            assert (result.committed, result.devices()) == (True, {device})
    elsewhere = lib.device_put(np.arange(4.0), lib.devices()[1])
    with pytest.raises(ValueError, match="incompatible devices"):
        lib.jit(mapped)(elsewhere)
