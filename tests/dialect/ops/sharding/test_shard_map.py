"""`shard_map` under transformations equals its function on whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import P, lax
from axir._shard_mapping import ReplicationError
from axir.dialect.ops.calls.jit_call import set_executor
from axir.dialect.text.module_reader import parse_module, read_module
from axir.sharding import AbstractMesh

MESH = AbstractMesh((2, 3), ("a", "b"))
X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
W = np.linspace(0, 2, 18, dtype=np.float32).reshape(6, 3)


@pytest.fixture(autouse=True)
def _evaluated() -> Iterator[None]:
    executor = set_executor(None)
    yield
    set_executor(executor)


def mapped(f: Callable[..., Any], ins: Any, outs: Any, **options: Any) -> Callable[..., Any]:
    return axir.shard_map(f, mesh=MESH, in_specs=ins, out_specs=outs, **options)


def network(x: Any, w: Any) -> tuple[Any, ...]:
    """A product with a sum that devices share, and a value that does not depend on the device."""
    hidden = jnp.tanh(lax.psum(x @ w, "b"))
    return hidden, lax.pmean(jnp.sum(hidden**2), "a"), jnp.sin(w)


parts = mapped(network, (P("a", "b"), P("b")), (P("a"), P(), P("b")))


def whole(x: Any, w: Any) -> tuple[Any, ...]:
    hidden = jnp.tanh(x @ w)
    return hidden, jnp.sum(hidden**2) / 2, jnp.sin(w)


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: sum(jnp.sum(y * (n + 1)) for n, y in enumerate(f(*xs)))


def close(first: Any, second: Any) -> None:
    pairs = zip(axir.tree.leaves(first), axir.tree.leaves(second), strict=True)
    for got, want in pairs:
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-5)


def test_derivatives() -> None:
    close(parts(X, W), whole(X, W))
    ones = (jnp.ones_like(X), jnp.ones_like(W))
    close(axir.jvp(parts, (X, W), ones), axir.jvp(whole, (X, W), ones))
    for argnums in (0, 1, (0, 1)):
        close(axir.grad(total(parts), argnums)(X, W), axir.grad(total(whole), argnums)(X, W))
    hessian = axir.jacfwd(axir.grad(total(parts), 1), 1)(X, W)
    close(hessian, axir.jacfwd(axir.grad(total(whole), 1), 1)(X, W))


def test_the_backward_pass_is_a_map_with_residuals_of_each_device() -> None:
    text = str(axir.make_jaxpr(axir.grad(total(parts)))(X, W))
    assert text.count("shard_map[") == 2
    # The residuals of the forward pass have a first dimension, one entry for each device.
    assert "(('a', 'b'), (), ())" in text


def test_what_all_devices_hold_gets_the_sum_of_their_cotangents() -> None:
    scaled = mapped(lambda x, s: x * s, (P("a", "b"), P()), P("a", "b"))
    close(axir.grad(lambda s: jnp.sum(scaled(X, s)))(2.0), np.sum(X))
    copied = mapped(lambda s: 3 * s, P(), P())
    close(axir.grad(copied)(2.0), 3.0)


def test_vectorized() -> None:
    xs = np.stack([X, 2 * X, X - 1, 1 - X, X, X], 1)
    for name in (None, "a"):
        first = axir.vmap(mapped(jnp.sin, P(None, "b"), P(None, "b")), 1, spmd_axis_name=name)
        close(first(xs), jnp.sin(jnp.moveaxis(xs, 1, 0)))
    text = str(axir.make_jaxpr(first)(xs))
    assert "in_layouts=(((), ('a',), ('b',)),)" in text
    # A name of the mesh hides one outside.
    hiding = axir.vmap(lambda x: parts(x, W)[0], 1, axis_name="a")
    close(hiding(xs), axir.vmap(lambda x: whole(x, W)[0], 1)(xs))
    outer = mapped(lambda x: lax.psum(x, ("i", "b")), P("a", "b"), P("a"))
    columns = xs.sum(1).reshape(4, 3, 2).sum(1)
    close(axir.vmap(outer, 1, axis_name="i")(xs)[0], columns)


def test_constraints_of_what_is_vectorized() -> None:
    def constrained(x: Any) -> Any:
        with axir.sharding.use_abstract_mesh(MESH):
            return lax.with_sharding_constraint(x, P("b"))

    text = str(axir.make_jaxpr(axir.vmap(constrained, spmd_axis_name="a"))(X))
    assert "layout=(('a',), ('b',))" in text


def test_maps_in_maps_and_axes_left_alone() -> None:
    def outer(x: Any) -> Any:
        inner = mapped(lambda y: lax.psum(y, "b"), P(None, "b"), P(), axis_names={"b"})
        return lax.psum(inner(x), "a")

    nested = mapped(outer, P("a"), P(), axis_names={"a"})
    expected = (X[:2] + X[2:]).reshape(2, 3, 2).sum(1)
    close(nested(X), expected)
    close(axir.grad(lambda x: jnp.sum(nested(x) * expected))(X), np.tile(expected, (2, 3)))
    text = str(axir.make_jaxpr(nested)(X))
    assert "auto=('b',)" in text
    assert "auto=('a',)" in text


def test_effects_and_values_of_the_surroundings() -> None:
    seen: list[float] = []

    def told(x: Any) -> Any:
        axir.debug.callback(lambda v: seen.append(float(v)), jnp.sum(x))
        return x * scale

    scale = jnp.float32(2)
    close(mapped(told, P("a"), P("a"))(X), 2 * X)
    close(sorted(set(seen)), [X[:2].sum(), X[2:].sum()])
    close(axir.grad(lambda s: jnp.sum(mapped(lambda x: x * s, P("a"), P("a"))(X)))(2.0), X.sum())


def test_keys_are_cut_as_numbers_are() -> None:
    keys = axir.random.split(axir.random.key(0), 6)
    drawn = mapped(axir.vmap(lambda k: axir.random.uniform(k, (2,))), P(("a", "b")), P(("a", "b")))
    close(drawn(keys), axir.vmap(lambda k: axir.random.uniform(k, (2,)))(keys))


# Values that are equal on all devices ------------------------------------------------------------


def counted(lib: Any, x: Any, n: Any) -> Any:
    return lib.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2), (0.0, n * 0))[1]


def carried(lib: Any, first: Any, x: Any, shift: bool) -> Any:
    def step(carry: Any, _: Any) -> Any:
        a, b = carry
        return (b, (lib.lax.ppermute(x.sum(), "a", [(0, 1)]) if shift else a)), a

    return lib.lax.scan(step, (first, first), None, length=3)[0]


CASES: dict[str, tuple[Any, bool]] = {
    "cut": (lambda lib, x, s: x, False),
    "whole": (lambda lib, x, s: 2 * s + 1, True),
    "summed over one": (lambda lib, x, s: lib.lax.psum(x, "a"), False),
    "summed": (lambda lib, x, s: lib.lax.psum(x, ("a", "b")) * s, True),
    "largest": (lambda lib, x, s: lib.lax.pmax(lib.lax.pmin(x, "b"), "a"), True),
    "position": (lambda lib, x, s: lib.lax.axis_index("a"), False),
    "moved": (lambda lib, x, s: lib.lax.ppermute(s, "a", [(0, 1)]), False),
    "scattered": (
        lambda lib, x, s: lib.lax.psum_scatter(x * 0 + s, "a", scatter_dimension=0, tiled=True),
        False,
    ),
    "exchanged": (lambda lib, x, s: lib.lax.all_to_all(x, "a", 0, 0, tiled=True), False),
    "jit": (lambda lib, x, s: lib.jit(lambda y: lib.lax.psum(y, ("a", "b")))(x), True),
    "jit of a part": (lambda lib, x, s: lib.jit(lambda y: y + 1)(x), False),
    "derivative": (lambda lib, x, s: lib.grad(lambda v: (v * lib.numpy.sin(v)).sum())(s), True),
    "loop": (lambda lib, x, s: carried(lib, s, s, False), True),
    "loop of a part": (lambda lib, x, s: carried(lib, x.sum(), x, False), False),
    "loop that ends everywhere": (lambda lib, x, s: counted(lib, x, s), True),
    "loop that ends somewhere": (lambda lib, x, s: counted(lib, x, x.sum()), False),
    "choice": (lambda lib, x, s: lib.lax.cond(s > 0, lambda: s, lambda: 2 * s), True),
    "choice of a part": (lambda lib, x, s: lib.lax.cond(s > 0, lambda: x, lambda: 2 * x), False),
    "checkpoint": (
        lambda lib, x, s: lib.checkpoint(lambda y: lib.lax.psum(y, ("a", "b")))(x),
        True,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results_that_may_differ_are_refused(name: str) -> None:
    function, is_same = CASES[name]
    for lib in (axir, jax):
        sharding = lib.sharding
        mapped = lib.shard_map(
            lambda x, s, lib=lib: function(lib, x, s),
            mesh=sharding.AbstractMesh((2, 3), ("a", "b")),
            in_specs=(sharding.PartitionSpec("a", "b"), sharding.PartitionSpec()),
            out_specs=sharding.PartitionSpec(),
        )
        if is_same:
            lib.eval_shape(mapped, X, np.float32(2))
        else:
            with pytest.raises(ValueError, match="out_specs"):
                lib.eval_shape(mapped, X, np.float32(2))


def test_what_is_refused_is_told_and_may_be_allowed() -> None:
    def body(x: Any) -> Any:
        return {"rows": x, "total": [lax.psum(x.sum(), "a")]}

    with pytest.raises(ReplicationError) as caught:
        mapped(body, P("a", "b"), {"rows": P("a", "b"), "total": P()})(X)
    assert "shard_map of 'body': out_specs do not name 'b' for result['total'][0] of type" in str(
        caught.value
    )
    assert "pass check_vma=False" in str(caught.value)
    allowed = mapped(body, P("a", "b"), {"rows": P("a", "b"), "total": P()}, check_vma=False)
    close(allowed(X)["total"][0], X[:, :2].sum())
    gather = partial(lax.all_gather, axis_name="a", tiled=True)
    with pytest.raises(ReplicationError, match="do not name 'a'"):
        mapped(gather, P("a"), P())(X)
    close(mapped(gather, P("a"), P(), check_vma=False)(X), X)
    slope = axir.grad(lambda s, x: (s * x).sum())
    close(mapped(slope, (P(), P("a", "b")), P())(2.0, X), X.sum())


def test_modules_keep_what_varies() -> None:
    def body(s: Any, x: Any) -> Any:
        slope = axir.grad(lambda s: (jnp.sin(s * x) * x).sum())(s)
        return lax.scan(lambda c, row: (c * slope + row.sum(), None), 0.0, x)[0].reshape(1, 1) * x

    function = mapped(body, (P(), P("a", "b")), P("a", "b"))
    module = axir.make_jaxpr(function)(0.3, X)
    text = str(module.module())
    assert "tensor<f32, [" in text
    assert "f32[]{V:(a,b)} = pvary[axes=('a', 'b')]" in str(module)
    again = read_module(parse_module(text))["main"].evaluate

    def total(f: Any) -> Any:
        return axir.jit(axir.value_and_grad(lambda s, x: (f(s, x) ** 2).sum(), (0, 1)))(0.3, X)

    value, slopes = total(lambda s, x: again(s, x)[0])
    expected, expected_slopes = total(function)
    close(value, expected)
    for a, b in zip(slopes, expected_slopes, strict=True):
        close(a, b)
