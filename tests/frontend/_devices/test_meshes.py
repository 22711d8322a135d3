"""Meshes and shardings on one device, and parts of arrays computed there."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.errors import HostCallNeededError, ParameterError, ShapeError
from axir.experimental import (
    compilation_cache,
    layout,
    mesh_utils,
    multihost_utils,
    pjit,
    serialize_executable,
)
from axir.runtime.errors import LoadError
from axir.sharding import (
    AbstractMesh,
    AxisType,
    DuplicateSpecError,
    Mesh,
    NamedSharding,
    SingleDeviceSharding,
    auto_axes,
    explicit_axes,
    get_abstract_mesh,
    get_mesh,
    make_single_device_sharding,
)
from axir.sharding import PartitionSpec as P

MESH = axir.make_mesh((1, 1), ("x", "y"))
PLACE = NamedSharding(MESH, P("x", ("y",)))
GRID = AbstractMesh((2, 3), ("a", "b"))
X = np.arange(24.0, dtype=np.float32).reshape(4, 6)


def test_meshes() -> None:
    assert dict(MESH.shape) == {"x": 1, "y": 1}
    assert MESH == axir.make_mesh((1, 1), ("x", "y"))
    assert hash(MESH) == hash(axir.make_mesh((1, 1), ("x", "y")))
    assert (MESH.size, MESH.empty, MESH.axis_types) == (1, False, (AxisType.Explicit,) * 2)
    assert MESH.abstract_mesh == AbstractMesh((1, 1), ("x", "y"), AxisType.Explicit)
    assert (MESH.device_ids.tolist(), MESH.local_devices) == ([[0]], [axir.devices()[0]])
    assert repr(GRID) == "AbstractMesh('a': 2, 'b': 3, axis_types=(Auto, Auto))"
    assert GRID.update(axis_types=AxisType.Manual).manual_axes == ("a", "b")
    assert mesh_utils.create_hybrid_device_mesh((1, 1), (1, 1)).shape == (1, 1)


def test_the_mesh_in_use() -> None:
    assert get_mesh().empty
    assert get_abstract_mesh().empty
    with MESH:
        assert get_mesh() is MESH
        with axir.set_mesh(GRID):
            assert get_abstract_mesh() == GRID
        placed = axir.device_put(X, P("x"))
        assert placed.sharding == NamedSharding(MESH, P("x"))
        assert lax.with_sharding_constraint(X, P()).sharding.spec == P()
    axir.set_mesh(MESH)
    assert get_mesh() is MESH
    axir.set_mesh(None)
    assert get_mesh().empty


def test_specifications() -> None:
    spec = P("x", None, ("y", "z"))
    assert (len(spec), spec[1], list(spec)) == (3, None, ["x", None, ("y", "z")])
    assert spec == P("x", None, ["y", "z"])
    assert (spec != ("x", None, ("y", "z")), spec + P("w")) == (True, P("x", None, ("y", "z"), "w"))
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert (repr(P("x")), repr(P())) == ("PartitionSpec('x',)", "PartitionSpec()")
    assert (spec.index("x"), spec.count(None)) == (0, 1)


def test_arrays_know_where_they_are() -> None:
    x = axir.device_put(X, PLACE)
    assert (x.sharding, x.committed) == (PLACE, True)
    (shard,) = x.addressable_shards
    assert (shard.index, shard.replica_id) == ((slice(None), slice(None)), 0)
    assert (x + 1).sharding == SingleDeviceSharding(axir.devices()[0])
    assert PLACE.is_equivalent_to(make_single_device_sharding(axir.devices()[0]), 2)
    assert PLACE.is_fully_replicated
    assert PLACE.num_devices == 1


def test_parts_of_arrays() -> None:
    sharding = NamedSharding(GRID, P(("a", "b"), None))
    assert sharding.shard_shape((12, 5)) == (2, 5)
    assert (sharding.parts(0), sharding.parts(1), sharding.replicated_axes) == (6, 1, ())
    assert NamedSharding(GRID, P("b")).replicated_axes == ("a",)


def test_shardings_of_jit() -> None:
    replicated = NamedSharding(MESH, P())
    f = axir.jit(
        lambda x, y: (x + y, y), in_shardings=(PLACE, None), out_shardings=(PLACE, replicated)
    )
    first, second = f(X, 1.0)
    assert (first.sharding, second.sharding) == (PLACE, replicated)
    np.testing.assert_array_equal(first, X + 1)
    assert float(axir.grad(lambda x: f(x, 1.0)[0].sum())(jnp.ones((2, 2)))[0, 0]) == 1
    assert pjit.pjit(lambda x: x, out_shardings=PLACE)(X).sharding == PLACE
    with pytest.raises(ParameterError, match="does not support keyword arguments"):
        f(X, y=1.0)


def test_arrays_made_of_parts() -> None:
    made = axir.make_array_from_callback((4, 6), PLACE, lambda index: X[index])
    np.testing.assert_array_equal(made, X)
    assert made.sharding == PLACE
    local = axir.make_array_from_process_local_data(PLACE, {"a": X})
    assert local["a"].sharding == PLACE
    single = SingleDeviceSharding(axir.devices()[0])
    whole = axir.make_array_from_single_device_arrays((4, 6), single, [X])
    np.testing.assert_array_equal(whole, X)


def product(x: Any, y: Any) -> tuple[Any, ...]:
    total = lax.psum(x, "a") + lax.axis_index("b")
    return total, x * y, lax.psum(y, "b")


def test_shard_map() -> None:
    specs: Any = {
        "in_specs": (P("a", "b"), P(None, "b")),
        "out_specs": (P(None, "b"), P("a", "b"), P()),
    }
    mapped = axir.shard_map(product, mesh=GRID, **specs)
    y = X[:1]
    for run in (mapped, axir.jit(mapped)):
        total, scaled, summed = run(X, y)
        np.testing.assert_array_equal(total, X[:2] + X[2:] + np.repeat(np.arange(3), 2))
        np.testing.assert_array_equal(scaled, X * y)
        np.testing.assert_array_equal(summed, y.reshape(1, 3, 2).sum(1))
    gradient = axir.grad(lambda x: mapped(x, y)[1].sum())(X)
    np.testing.assert_array_equal(gradient, np.broadcast_to(y, X.shape))
    with axir.set_mesh(MESH):
        inferred = axir.shard_map(lambda x: lax.psum(x, "x"), out_specs=P())
        np.testing.assert_array_equal(inferred(X), X)


def test_the_order_of_axes_in_a_specification() -> None:
    mapped = axir.shard_map(
        lambda x: x + 10 * lax.axis_index("a") + 100 * lax.axis_index("b"),
        mesh=GRID, in_specs=P(("b", "a")), out_specs=P(("b", "a")),
    )  # fmt: skip
    expected = [100 * (n // 2) + 10 * (n % 2) for n in range(6)]
    np.testing.assert_array_equal(mapped(jnp.zeros(6)), expected)


def test_modes_of_axes() -> None:
    doubled = auto_axes(lambda x: 2 * x, out_sharding=PLACE)
    assert doubled(X).sharding == PLACE
    assert explicit_axes(lambda x: x, in_sharding=PLACE)(X).sharding == PLACE
    assert axir.reshard(X, PLACE).sharding == PLACE


def _mesh_of(names: Any) -> Callable[[], Any]:
    return lambda: Mesh(np.array(axir.devices()[:1]), names)


@pytest.mark.parametrize(
    ("call", "error", "expected"),
    [
        (
            lambda: NamedSharding(MESH, P("z")),
            ParameterError,
            r"Resource axis: z of .* is not found",
        ),
        (lambda: NamedSharding(MESH, P("x", "x")), DuplicateSpecError, "has duplicate entries"),
        (lambda: axir.device_put(jnp.ones(3), PLACE), ShapeError, "for arrays of at least 2 dim"),
        (lambda: NamedSharding(GRID, P("a")).shard_shape((3,)), ShapeError, "is no multiple"),
        (_mesh_of(("a", "b")), ParameterError, "Mesh requires the ndim of its first argument"),
        (lambda: Mesh([3], ("a",)), ParameterError, "3 is not a device"),
        (lambda: AbstractMesh((1, 1), ("a", "a")), ParameterError, "names an axis twice"),
        (lambda: AbstractMesh((1,), ("a", "b")), ParameterError, "not equally many"),
        (lambda: axir.make_mesh((2,), ("x",)), ParameterError, "Number of devices 1 must be >="),
        (lambda: axir.set_mesh(3), ParameterError, "3 is not a mesh"),
        (
            lambda: lax.with_sharding_constraint(X, P("x")),
            RuntimeError,
            "requires a non-empty mesh",
        ),
        (lambda: axir.device_put(X, 3), ParameterError, "3 is neither a device nor a sharding"),
        (lambda: axir.device_put(X, NamedSharding(GRID, P())), ParameterError, "has no devices"),
        (lambda: axir.shard_map(jnp.sin, out_specs=P())(X), ParameterError, "no mesh was given"),
        (
            lambda: axir.shard_map(jnp.sin, mesh=GRID, in_specs=P("a"), out_specs=P())(X[:3]),
            ShapeError,
            "cuts dimension 0 into 2 parts",
        ),
        (
            lambda: axir.shard_map(jnp.sin, mesh=GRID, in_specs=P("z"), out_specs=P())(X),
            ValueError,
            "but the mesh has the axes 'a', 'b'",
        ),
        (
            lambda: axir.shard_map(jnp.sin, mesh=GRID, in_specs=3, out_specs=P())(X),
            ValueError,
            "in_specs holds 3, which is no PartitionSpec",
        ),
        (
            lambda: axir.make_array_from_callback((2,), PLACE.update(spec=P()), lambda i: X[0]),
            ShapeError,
            r"has shape \(2,\), but \(6,\) came",
        ),
        (lambda: mesh_utils.create_device_mesh((2,)), ParameterError, "must equal the product"),
        (lambda: layout.Layout((0, 2)), ParameterError, "does not name each axis once"),
    ],
)
def test_misuse(call: Callable[[], Any], error: type[Exception], expected: str) -> None:
    with pytest.raises(error, match=expected):
        call()


def test_processes_agree_with_themselves() -> None:
    multihost_utils.assert_equal(X)
    multihost_utils.sync_global_devices("here")
    assert not multihost_utils.reached_preemption_sync_point(1)
    gathered = multihost_utils.process_allgather({"a": jnp.ones(2)})
    assert gathered["a"].shape == (1, 2)
    placed = multihost_utils.host_local_array_to_global_array([X], MESH, [P("x")])
    assert placed[0].sharding.spec == P("x")
    back = multihost_utils.global_array_to_host_local_array(placed, MESH, P())
    np.testing.assert_array_equal(back[0], X)
    with multihost_utils.live_devices(axir.devices()) as alive:
        assert alive == axir.devices()


def test_layouts() -> None:
    row_major = layout.Layout((0, 1))
    assert layout.with_layout_constraint(X, row_major) is X
    assert axir.device_put(X, layout.Format(row_major, PLACE)).sharding == PLACE
    with pytest.raises(ParameterError, match="is for arrays of 2 axes"):
        layout.with_layout_constraint(X[0], row_major)


def test_the_folder_of_the_cache(tmp_path: Any) -> None:
    compilation_cache.compilation_cache.set_cache_dir(tmp_path)
    assert compilation_cache.compilation_cache.get_cache_dir() == str(tmp_path)
    assert axir.config.axir_cache_dir == str(tmp_path)


def test_serialized_programs() -> None:
    table = (jnp.arange(3) + 0.5).astype(jnp.bfloat16)

    def f(tree: Any, key: Any) -> tuple[Any, ...]:
        return table[tree["n"]], tree["a"] + 1, axir.random.split(key)

    key, tree = axir.random.key(0), {"a": X, "n": jnp.array([2, 0])}
    compiled = axir.jit(f).lower(tree, key)
    saved, in_tree, out_tree = serialize_executable.serialize(compiled.compile())
    loaded = serialize_executable.deserialize_and_load(saved, in_tree, out_tree)
    first, second, keys = loaded(tree, key)
    assert first.tolist() == [2.5, 0.5]
    np.testing.assert_array_equal(second, X + 1)
    assert (
        axir.random.key_data(keys).tolist() == axir.random.key_data(axir.random.split(key)).tolist()
    )
    with pytest.raises(ShapeError, match="argument .* is of type float32"):
        loaded({"a": X[:1], "n": tree["n"]}, key)
    with pytest.raises(LoadError):
        serialize_executable.deserialize_and_load(saved[:-9], in_tree, out_tree)
    with pytest.raises(LoadError, match="hold no serialized function"):
        serialize_executable.deserialize_and_load(b"nothing", in_tree, out_tree)
    with pytest.raises(ParameterError, match="is not a compiled function"):
        serialize_executable.serialize(3)  # type: ignore[arg-type]
    calling = axir.jit(lambda x: axir.pure_callback(np.sin, x, x)).lower(1.0).compile()
    with pytest.raises(HostCallNeededError):
        serialize_executable.serialize(calling)
