"""Refs: assignments, and functions that use refs under each transformation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import ad, lax
from axir.errors import (
    GradientError,
    NonArrayArgumentError,
    RefArgumentError,
    RefScopeError,
    TreeError,
    UnexpectedTracerError,
)
from axir.ref import AbstractRef, FrozenRefError, addupdate, empty_ref, get, swap

X = jnp.array([1.0, 2.0, 3.0])


def test_assignments() -> None:
    ref = axir.new_ref(np.arange(4.0))
    ref[1] = 5
    ref[2:] += 1
    ref.at[2:][1] = 9
    addupdate(ref, jnp.array([0, 0]), 2.0)
    ref.addupdate(1.0)
    assert ref[...].tolist() == [5.0, 6.0, 4.0, 10.0]
    assert (float(swap(ref, 0, 7.0)), float(get(ref, 0)), float(ref.at[1:].at[2][...])) == (
        5,
        7,
        10,
    )
    assert (ref.shape, ref.dtype, ref.ndim, ref.size, len(ref)) == ((4,), np.float32, 1, 4, 4)
    assert repr(ref) == "Ref([ 7.,  6.,  4., 10.], dtype=float32)"
    assert repr(ref.aval) == "Ref{float32[4]}"
    assert empty_ref(axir.ShapeDtypeStruct((2,), "int32")).at[1:].shape == (1,)
    assert axir.freeze(ref).tolist() == [7.0, 6.0, 4.0, 10.0]


def test_jit_takes_refs_and_uses_others() -> None:
    total, calls = axir.new_ref(jnp.zeros(3)), []

    @axir.jit
    def add(ref: Any, x: Any, other: Any = None) -> Any:
        calls.append(x)
        ref[0] = x
        total[...] += ref[...]
        if other is not None:
            other[1] = -1.0
        return ref[1]

    ref = axir.new_ref(X)
    assert [float(add(ref, value)) for value in (4.0, 5.0)] == [2.0, 2.0]
    assert ref[...].tolist() == [5.0, 2.0, 3.0]
    assert total[...].tolist() == [9.0, 4.0, 6.0]
    traced = len(calls)
    assert float(add(axir.new_ref(2 * X), 1.0)) == 4.0
    assert len(calls) == traced  # another ref of the type is no other program
    assert float(add(ref, 1.0, ref)) == -1.0  # one ref, passed twice
    assert ref[...].tolist() == [1.0, -1.0, 3.0]


def test_static_arguments_and_nested_jit() -> None:
    total = axir.new_ref(0.0)
    inner = axir.jit(lambda x: total.__setitem__(..., total[...] + x))

    @functools.partial(axir.jit, static_argnums=0)
    def outer(count: int, x: Any) -> Any:
        for _ in range(count):
            inner(x)
        return total[...]

    assert float(outer(3, 2.0)) == 6.0
    assert float(outer(2, 1.0)) == float(total[...]) == 8.0


def sums(x: Any) -> Any:
    """Computes with local refs in all kinds of loops."""
    total = axir.new_ref(jnp.zeros_like(x))

    def add(i: Any, _: Any) -> None:
        total[i] += jnp.sin(x[i]) * x[0]

    lax.fori_loop(0, 3, add, None)
    lax.scan(lambda c, t: (total.addupdate(t), c)[::-1], (), x)
    lax.while_loop(
        lambda i: total[0] < 20, lambda i: (total.__setitem__(0, 2 * total[0]), i + 1)[1], 0
    )
    lax.cond(x[1] > 0, lambda: total.__setitem__(1, 3 * total[1]), lambda: None)
    lax.switch(1, [lambda: None, lambda: total.addupdate(1.0)])
    return axir.freeze(total)


def sums_of_arrays(x: Any) -> Any:
    total = np.sin(x) * x[0] + x.sum()
    while total[0] < 20:
        total[0] *= 2
    total[1] *= 3
    return total + 1


@pytest.mark.parametrize(
    "transformed", [sums, axir.jit(sums), lambda x: axir.vmap(sums)(x[None])[0]]
)
def test_control_flow(transformed: Callable[..., Any]) -> None:
    np.testing.assert_allclose(transformed(X), sums_of_arrays(np.asarray(X)), rtol=1e-5)


def test_outer_refs_in_loops() -> None:
    total = axir.new_ref(0)

    def count(i: Any, x: Any) -> Any:
        total[...] += i
        return x

    lax.fori_loop(0, 4, count, None)
    assert int(total[...]) == 6
    axir.jit(lambda n: lax.fori_loop(0, n, count, None))(3)
    assert int(total[...]) == 9
    lax.map(lambda x: count(x, x), jnp.arange(3))
    assert int(total[...]) == 12
    lax.cond(total[...] > 5, lambda: count(1, None), lambda: None)
    assert int(total[...]) == 13


def test_derivatives() -> None:
    seen = axir.new_ref(jnp.zeros(3))

    def f(x: Any) -> Any:
        inner = axir.new_ref(x)
        inner[0] *= x[1]
        lax.fori_loop(0, 3, lambda i, _: inner.__setitem__(i, inner[i] ** 2), None)
        seen[...] += x
        return inner[...]

    jacobian = np.array([[8.0, 4.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]])
    first = jnp.eye(3)[0]
    rows: list[Callable[[], Any]] = [
        lambda: axir.jacrev(f)(X)[0],
        lambda: axir.jit(axir.jacfwd(f))(X)[0],
        lambda: axir.grad(lambda x: f(x)[0])(X),
        lambda: axir.vjp(f, X)[1](first)[0],
    ]
    columns: list[Callable[[], Any]] = [
        lambda: axir.jacfwd(f)(X)[:, 0],
        lambda: axir.jvp(f, (X,), (first,))[1],
        lambda: axir.linearize(f, X)[1](first),
    ]
    for count, found in enumerate((*rows, *columns), 1):
        expected = jacobian[0] if found in rows else jacobian[:, 0]
        np.testing.assert_allclose(found(), expected, rtol=1e-6)
        np.testing.assert_allclose(seen[...], count * X)
    (value, auxiliary), _ = axir.value_and_grad(lambda x: (f(x)[0], x), has_aux=True)(X)
    assert (float(value), auxiliary.tolist()) == (4.0, X.tolist())


def test_vmap() -> None:
    count = axir.new_ref(0)

    def f(x: Any) -> Any:
        count[...] += 1
        own = axir.new_ref(x)
        own[0] = x.sum()
        return own[...]

    found = axir.vmap(f)(jnp.stack([X, 2 * X]))
    assert found.tolist() == [[6.0, 2.0, 3.0], [12.0, 4.0, 6.0]]
    assert int(count[...]) == 1
    axir.jit(axir.vmap(f, out_axes=1))(X[None])
    assert int(count[...]) == 2


def test_refs_along_mapped_axes() -> None:
    def distance(x: Any, y: Any, out: Any) -> None:
        assert out.shape == ()
        out[...] = jnp.sum((x - y) ** 2)

    points, out = jnp.arange(6.0).reshape(3, 2), axir.new_ref(jnp.zeros((3, 3)))
    axir.vmap(axir.vmap(distance, (0, None, 0)), (None, 0, 0))(points, points, out)
    expected = ((points[:, None] - points[None]) ** 2).sum(-1)
    assert out[...].tolist() == expected.tolist()
    columns = axir.new_ref(jnp.arange(6.0).reshape(2, 3))
    axir.vmap(lambda x, column: column.addupdate(x), (0, 1))(X, columns)
    assert columns[...].tolist() == [[1.0, 3.0, 5.0], [4.0, 6.0, 8.0]]


def test_gradients_go_into_refs() -> None:
    def squared_sine(ref: Any, scale: Any) -> Any:
        ref[...] = jnp.sin(ref[...])
        return scale * ref[...] ** 2

    ref, total = axir.new_ref(2.0), axir.new_ref(0.0)
    _, pullback = axir.vjp(squared_sine, ref, 3.0)
    assert float(ref[...]) == pytest.approx(np.sin(2))
    seen = pullback.with_refs(total, ad.GradValue())(1.0)
    assert seen[0] == ad.GradRef()
    assert float(seen[1]) == pytest.approx(np.sin(2) ** 2)
    assert float(total[...]) == pytest.approx(3 * np.sin(4))
    with pytest.raises(GradientError, match="must be accumulated into a ref"):
        pullback(1.0)
    with pytest.raises(GradientError, match="must be accumulated into a ref"):
        pullback.with_refs(ad.GradValue(), ad.GradValue())
    with pytest.raises(GradientError, match="more than one argument"):
        axir.vjp(lambda a, b: a[...] * b[...], ref, ref)


def test_gradients_that_are_added_or_left_out() -> None:
    total = axir.new_ref(jnp.zeros(4))
    for index in (1, 3, 1):
        _, pullback = axir.vjp(lambda x, i: x[i], jnp.arange(4.0), index)
        pullback.with_refs(total, ad.GradValue())(1.0)
    assert total[...].tolist() == [0.0, 2.0, 0.0, 1.0]

    def both(w: Any, x: Any) -> Any:
        _, pullback = axir.vjp(jnp.matmul, w, x)
        return pullback(x)

    def one(w: Any, x: Any) -> Any:
        _, pullback = axir.vjp(jnp.matmul, w, x)
        return pullback.with_refs(ad.GradValue(), ad.DontWant())(x)

    w = jnp.arange(9.0).reshape(3, 3)
    counts = [str(axir.make_jaxpr(f)(w, X)).count("dot_general") for f in (both, one)]
    assert counts == [3, 2]
    found = one(w, X)
    assert found[0].tolist() == np.outer(X, X).tolist()
    assert found[1] == ad.DidntWant()
    _, pullback = axir.vjp(jnp.matmul, w, X)
    with pytest.raises(TreeError, match="expected"):
        pullback.with_refs(ad.GradValue())
    with pytest.raises(GradientError, match="1 is no ref"):
        pullback.with_refs(1, 1)


@pytest.mark.parametrize("wrap", [lambda f: f, axir.jit])
def test_refs_carry_data_out_of_backward_passes(wrap: Callable[..., Any]) -> None:
    @axir.custom_vjp
    def stash(ref: Any, x: Any) -> Any:
        return x

    def backward(ref: Any, ct: Any) -> Any:
        ref[...] = ct
        return None, ct

    stash.defvjp(lambda ref, x: (x, ref), backward)
    ref = axir.new_ref(0.0)
    gradient = wrap(axir.grad(lambda x, ref: jnp.sin(stash(ref, x))))(1.0, ref)
    assert float(ref[...]) == float(gradient) == pytest.approx(np.cos(1))


def test_misuse() -> None:
    ref = axir.new_ref(0.0)
    with pytest.raises(
        RefScopeError, match=r"Ref\(0\., dtype=float32\) is used in a traced function"
    ):
        axir.make_jaxpr(lambda x: ref[...] + x)(1.0)
    with pytest.raises(RefScopeError, match="those of jit may take them as arguments"):
        axir.grad(lambda r: r[...])(ref)
    with pytest.raises(TreeError, match="one for all elements, but is assigned"):
        axir.vmap(lambda x: ref.__setitem__(..., x))(X)
    with pytest.raises(UnexpectedTracerError, match="A ref leaked"):
        axir.jit(lambda x: axir.new_ref(x))(1.0)
    with pytest.raises(RefArgumentError, match="a ref, where an array is needed"):
        jnp.sin(ref)
    with pytest.raises(NonArrayArgumentError, match="new_ref takes an array, not a ref"):
        axir.new_ref(ref)
    with pytest.raises(NonArrayArgumentError, match="freeze takes a ref"):
        axir.freeze(X)
    axir.free_ref(ref)
    with pytest.raises(FrozenRefError, match="has been frozen or freed"):
        ref[...] = 1.0


def test_the_type_of_a_ref_is_that_of_a_ref() -> None:
    found = axir.typeof(axir.new_ref(jnp.zeros(3)))
    assert isinstance(found, AbstractRef)
    assert found.inner_aval == axir.typeof(jnp.zeros(3))


def test_checkpointed_functions_carry_refs() -> None:
    total = axir.new_ref(jnp.zeros(2))

    @axir.checkpoint
    def add(x: Any) -> Any:
        total[...] += x
        return jnp.sin(x) * 2

    np.testing.assert_allclose(add(jnp.ones(2)), 2 * np.sin(np.ones(2)), rtol=1e-6)
    np.testing.assert_array_equal(axir.jit(add)(jnp.ones(2)), add(jnp.ones(2)))
    np.testing.assert_array_equal(total[...], [3, 3])
    scale = axir.new_ref(jnp.float32(2))
    scaled = axir.checkpoint(lambda x: jnp.sin(x) * scale[...])
    expected = 2 * np.cos(np.float32(1))
    assert axir.grad(scaled)(1.0) == pytest.approx(expected)
    assert axir.jit(axir.grad(scaled))(1.0) == pytest.approx(expected)
    slopes = axir.vmap(axir.grad(scaled))(jnp.ones(2))
    np.testing.assert_allclose(slopes, [expected, expected], rtol=1e-6)


def test_functions_with_many_refs_in_nested_loops_are_traced_a_few_times() -> None:
    traced = []

    def program(values: Any) -> Any:
        refs = [axir.new_ref(x) for x in values]

        def inner(i: Any, _: None) -> None:
            traced.append(i)
            for ref in refs:
                ref[...] += refs[0][...]

        def outer(i: Any, _: None) -> None:
            axir.lax.cond(i >= 0, lambda: axir.lax.fori_loop(0, 2, inner, None), lambda: None)

        axir.lax.fori_loop(0, 1, outer, None)
        return [ref[...] for ref in refs]

    got = axir.jit(program)([jnp.float32(n) for n in range(1, 7)])
    np.testing.assert_array_equal(got, [4, 8, 9, 10, 11, 12])
    assert len(traced) < 20
