"""`jit` with shardings, `shard_map` and `pmap` on four devices: values, places, errors of JAX."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import errors
from axir.runtime.spmd.program import MeshProgram
from axir.sharding import NamedSharding
from axir.sharding import PartitionSpec as P

LIBRARIES = pytest.mark.parametrize("lib", [axir, jax], ids=["axir", "jax"])
X = np.arange(16, dtype=np.float32).reshape(4, 4) / 8
ALL = set(axir.devices())


def mesh_of(lib: Any, sizes: tuple[int, ...] = (2, 2)) -> Any:
    return lib.sharding.Mesh(np.array(lib.devices()).reshape(sizes), ("x", "y")[: len(sizes)])


def at(*names: Any) -> NamedSharding:
    return NamedSharding(mesh_of(axir), P(*names))


def mapped_over(mesh: Any) -> Any:
    return axir.shard_map(lambda x: x, mesh=mesh, in_specs=P("x"), out_specs=P("x"))


HALF = axir.sharding.Mesh(np.array(axir.devices()[:2]), ("x",))
DOUBLED = axir.sharding.Mesh(np.array([axir.devices()[0]] * 2), ("x",))


# pmap --------------------------------------------------------------------------------------------


def normalized(lib: Any) -> Any:
    return lambda x, scale: (x * scale / lib.lax.psum(x.sum(), "i"), lib.lax.axis_index("i"))


@LIBRARIES
def test_pmap_runs_on_its_devices(lib: Any) -> None:
    mapped = lib.pmap(normalized(lib), "i", in_axes=(1, None), out_axes=(1, 0))
    for _ in range(2):
        result, index = mapped(X, 2.0)
        np.testing.assert_allclose(result, 2 * X / X.sum(), rtol=1e-6)
        np.testing.assert_array_equal(index, range(4))
        assert result.devices() == set(lib.devices())
        assert [s.data.shape for s in result.addressable_shards] == [(4, 1)] * 4


@LIBRARIES
def test_pmap_of_some_devices_and_what_is_not_mapped(lib: Any) -> None:
    chosen = lib.devices()[1:3]
    mapped = lib.pmap(
        lambda n, x, y: (x * n, y, lib.lax.pmean(x, "i")), "i", in_axes=(None, 0, None),
        out_axes=(0, None, None), static_broadcasted_argnums=0, devices=chosen,
    )  # fmt: skip
    rows, same, mean = mapped(3, X[:2], X[0])
    assert rows.devices() == set(chosen)
    np.testing.assert_allclose(rows, 3 * X[:2])
    np.testing.assert_allclose(same, X[0])
    np.testing.assert_allclose(mean, X[:2].mean(0))


@LIBRARIES
def test_gradients_through_pmap_lie_on_its_devices(lib: Any) -> None:
    mapped = lib.pmap(
        lambda x, w: lib.numpy.sin(x @ w) * lib.lax.psum(x, "i"), "i", in_axes=(0, None)
    )
    plain = lib.vmap(
        lambda x, w: lib.numpy.sin(x @ w) * lib.lax.psum(x, "i"), (0, None), axis_name="i"
    )

    def loss(function: Any) -> Any:
        return lambda x, w: (function(x, w) ** 2).sum()

    gradient, expected = lib.grad(loss(mapped), (0, 1)), lib.grad(loss(plain), (0, 1))(X, X)
    for function in (gradient, lib.jit(gradient)):
        for found, wanted in zip(function(X, X), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4)
            assert found.devices() == set(lib.devices())
    _, tangent = lib.jvp(lambda x: mapped(x, X), (X,), (X,))
    np.testing.assert_allclose(tangent, lib.jvp(lambda x: plain(x, X), (X,), (X,))[1], rtol=1e-4)


@LIBRARIES
def test_pmap_within_vmap(lib: Any) -> None:
    stack = np.stack([X, X + 1])
    mapped = lib.vmap(lib.pmap(lambda x: x - lib.lax.pmax(x, "i"), "i"))
    np.testing.assert_array_equal(mapped(stack), stack - stack.max(1, keepdims=True))


def test_pmap_within_pmap() -> None:
    stack = np.stack([X[:2], X[2:]])
    inner = axir.pmap(lambda x: x / axir.lax.psum(x, ("a", "b")), "b")
    found = axir.pmap(inner, "a")(stack)
    np.testing.assert_allclose(found, stack / stack.sum((0, 1)), rtol=1e-6)
    assert len(found.devices()) == 2


def test_pmap_reuses_what_is_donated_and_where_results_lie() -> None:
    step = axir.pmap(lambda w, g: w - axir.lax.pmean(g, "i"), "i", donate_argnums=0)
    w = axir.pmap(lambda x: x)(X)
    for _ in range(3):
        before, w = w, step(w, X)
        assert before.is_deleted()
    np.testing.assert_allclose(w, X - 3 * X.mean(0), rtol=1e-5)


def test_what_maps_capture_is_whole_everywhere() -> None:
    w = jnp.asarray(X)
    rows = axir.pmap(lambda n: n * w[0])
    np.testing.assert_array_equal(rows(np.arange(4, dtype=np.float32)), np.outer(range(4), X[0]))
    mapped = axir.shard_map(
        lambda x: x + w[0], mesh=mesh_of(axir), in_specs=P("x"), out_specs=P("x")
    )
    for function in (mapped, axir.jit(lambda x: mapped(x) - w + X)):
        np.testing.assert_allclose(function(X), X + X[0])


def test_more_elements_than_devices() -> None:
    with pytest.raises(
        errors.TooFewDevicesError, match="extent 5, but there are 4 devices: cpu:0, "
    ):
        axir.pmap(lambda x: x)(np.ones(5, np.float32))
    assert issubclass(errors.TooFewDevicesError, ValueError)


# shard_map ---------------------------------------------------------------------------------------


@LIBRARIES
def test_shard_map_runs_on_its_mesh(lib: Any) -> None:
    spec = lib.sharding.PartitionSpec

    @partial(
        lib.shard_map, mesh=mesh_of(lib), in_specs=(spec("x", "y"), spec("y", None)),
        out_specs=(spec("x"), spec(None, ("x", "y"))),
    )  # fmt: skip
    def product(a: Any, b: Any) -> Any:
        return lib.lax.psum(a @ b, "y"), lib.lax.all_to_all(b, "x", 1, 0, tiled=True)[:1]

    for function in (product, lib.jit(product)):
        found, other = function(X, X)
        np.testing.assert_allclose(found, X @ X, rtol=1e-6)
        assert found.devices() == other.devices() == set(lib.devices())
        assert other.shape == (1, 8)
        assert {s.data.shape for s in found.addressable_shards} == {(2, 4)}


@LIBRARIES
def test_gradients_through_shard_map(lib: Any) -> None:
    spec = lib.sharding.PartitionSpec
    part = lib.shard_map(
        lambda w, x: lib.lax.pmean(lib.numpy.tanh(x @ w).sum(), ("x", "y")),
        mesh=mesh_of(lib), in_specs=(spec(), spec(("x", "y"))), out_specs=spec(),
    )  # fmt: skip
    expected = jax.grad(lambda w: jax.numpy.tanh(X @ w).sum() / 4)(X)
    for function in (lib.grad(part), lib.jit(lib.grad(part))):
        np.testing.assert_allclose(function(X, X), expected, rtol=1e-4, atol=1e-6)


def test_eager_calls_trace_anew_and_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    compiled = MeshProgram._compiled
    monkeypatch.setattr(MeshProgram, "_compiled", lambda self: made.append(self) or compiled(self))
    seen, scale, w = [], 2.0, jnp.asarray(X)

    def body(x: Any) -> Any:
        seen.append(x.shape)
        return x * scale + w[0]

    mapped = axir.shard_map(body, mesh=mesh_of(axir), in_specs=P("x"), out_specs=P("x"))
    for _ in range(3):
        np.testing.assert_allclose(mapped(X), 2 * X + X[0])
    assert (len(seen), len(made)) == (3, 1)
    w = w + 1  # a value that is captured is no part of the program; a Python number is
    np.testing.assert_allclose(mapped(X), 2 * X + X[0] + 1)
    assert len(made) == 1
    scale = -0.0
    np.testing.assert_allclose(mapped(X), X - X + X[0] + 1)
    assert len(made) == 2


# jit with shardings ------------------------------------------------------------------------------


def network(lib: Any) -> Any:
    def loss(w: Any, x: Any) -> Any:
        hidden = lib.numpy.tanh(x @ w["a"])
        return ((hidden @ w["b"]) ** 2).mean()

    return lambda w, x: (loss(w, x), lib.grad(loss)(w, x))


@LIBRARIES
def test_jit_follows_arguments_and_shardings(lib: Any) -> None:
    def sharded(*names: Any) -> Any:
        spec = lib.sharding.PartitionSpec(*names)
        return lib.sharding.NamedSharding(mesh_of(lib), spec)

    weights = {"a": X, "b": X.T.copy()}
    expected, gradients = jax.jit(network(jax))(weights, X)
    by_shardings = lib.jit(
        network(lib), in_shardings=({"a": sharded(None, "y"), "b": sharded("y")}, sharded("x")),
        out_shardings=(sharded(), {"a": sharded(None, "y"), "b": sharded("y")}),
    )  # fmt: skip
    placed = lib.device_put(weights, {"a": sharded(None, "y"), "b": sharded("y")})
    x = lib.device_put(X, sharded("x"))
    for found in (
        by_shardings(weights, X),
        by_shardings(placed, x),
        lib.jit(network(lib))(placed, x),
    ):
        np.testing.assert_allclose(found[0], expected, rtol=1e-5)
        for name, gradient in found[1].items():
            np.testing.assert_allclose(gradient, gradients[name], rtol=1e-4, atol=1e-6)
            assert gradient.devices() == set(lib.devices())
    first = by_shardings(placed, x)[1]
    assert first["a"].sharding == sharded(None, "y")
    assert first["b"].sharding == sharded("y")


@LIBRARIES
def test_programs_that_are_compiled_ahead(lib: Any) -> None:
    rows = lib.sharding.NamedSharding(mesh_of(lib), lib.sharding.PartitionSpec("x"))
    columns = lib.sharding.NamedSharding(mesh_of(lib), lib.sharding.PartitionSpec(None, "y"))
    function = lib.jit(lambda x: x + 1, in_shardings=rows, out_shardings=columns)
    ahead = function.lower(lib.ShapeDtypeStruct((4, 4), np.float32)).compile()
    assert ahead.output_shardings.is_equivalent_to(columns, 2)
    assert ahead.input_shardings[0][0].is_equivalent_to(rows, 2)
    assert ahead.memory_analysis().generated_code_size_in_bytes > 0 or lib is jax
    found = ahead(lib.device_put(X, rows))
    np.testing.assert_array_equal(found, X + 1)
    assert found.sharding.is_equivalent_to(columns, 2)
    struct = lib.ShapeDtypeStruct((4, 4), np.float32, sharding=rows)
    assert lib.jit(lambda x: 2 * x).lower(struct).compile()(
        lib.device_put(X, rows)
    ).devices() == set(lib.devices())


@LIBRARIES
def test_constraints_are_kept(lib: Any) -> None:
    place = lib.sharding.NamedSharding(mesh_of(lib), lib.sharding.PartitionSpec("y"))

    @partial(lib.jit, out_shardings=place)
    def doubled(x: Any) -> Any:
        return lib.lax.with_sharding_constraint(2 * x, place)

    found = doubled(X)
    np.testing.assert_array_equal(found, 2 * X)
    assert found.sharding.is_equivalent_to(place, 2)
    moved = lib.device_put(X, place)
    assert lib.lax.with_sharding_constraint(moved, place).sharding == place


@LIBRARIES
def test_committed_arguments_must_lie_where_in_shardings_says(lib: Any) -> None:
    place, other = (
        lib.sharding.NamedSharding(mesh_of(lib), lib.sharding.PartitionSpec(name)) for name in "xy"
    )
    function = lib.jit(lambda x: x + 1, in_shardings=place)
    assert function(X).sharding.is_equivalent_to(place, 2) or lib is axir
    np.testing.assert_array_equal(function(lib.device_put(X, place)), X + 1)
    with pytest.raises(ValueError, match="[Ss]harding"):
        function(lib.device_put(X, other))


def test_meshes_that_differ_are_named() -> None:
    reordered = axir.sharding.Mesh(np.array(axir.devices())[[1, 0, 2, 3]], ("x",))
    mapped = axir.shard_map(lambda x: x + 1, mesh=reordered, in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_array_equal(mapped(X), X + 1)
    with pytest.raises(
        errors.IncompatibleDevicesError, match="written for the mesh of cpu:1, cpu:0"
    ):
        axir.jit(mapped)(axir.device_put(X, at("x")))
    with pytest.raises(errors.IncompatibleDevicesError, match="an argument is committed to cpu:3"):
        axir.jit(mapped)(axir.device_put(X, axir.devices()[3]))


@pytest.mark.parametrize(
    ("call", "error", "expected"),
    [
        (
            lambda: axir.shard_map(jnp.sin, mesh=DOUBLED, in_specs=P("x"), out_specs=P("x"))(X),
            errors.DuplicateDevicesError,
            "'sin' is to run on a mesh that has cpu:0 more than once",
        ),
        (
            lambda: axir.pmap(jnp.sin, devices=[axir.devices()[1]] * 2)(X[:2]),
            errors.DuplicateDevicesError,
            "has cpu:1 more than once",
        ),
        (
            lambda: axir.device_put(X[:3], at("x")),
            errors.ShapeError,
            r"cuts dimension 0 into 2 parts, of which the extent in \(3, 4\) is no multiple",
        ),
        (
            lambda: axir.jit(lambda x: x, out_shardings=at("x"))(X[:3]),
            errors.ShapeError,
            "Result 0: the layout .* cuts dimension 0 into 2 parts",
        ),
        (
            lambda: axir.jit(lambda x: mapped_over(at("x").mesh)(mapped_over(HALF)(x)))(X),
            errors.IncompatibleDevicesError,
            "for the mesh of cpu:0, cpu:1, but it is written for the mesh of cpu:0, cpu:1, cpu:2",
        ),
        (
            lambda: (
                axir.device_put(X, at("x"))
                + axir.device_put(X, NamedSharding(HALF, P("x")))
            ),
            errors.IncompatibleDevicesError,
            "operand 1, float32.4,4., to the mesh of cpu:0, cpu:1",
        ),
    ],
)  # fmt: skip
def test_meshes_and_axes_that_do_not_fit(call: Any, error: Any, expected: str) -> None:
    with pytest.raises(error, match=expected):
        call()


def test_captured_arrays_that_lie_in_parts() -> None:
    w = axir.device_put(X, at("x", "y"))
    found = axir.jit(lambda x: x @ w)(axir.device_put(X, at(None, "x")))
    np.testing.assert_allclose(found, X @ X, rtol=1e-6)
    np.testing.assert_allclose(axir.jit(lambda x: jnp.sum(x @ w))(X), (X @ X).sum(), rtol=1e-6)
