"""Collectives under mapped axes: values and derivatives as JAX's, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import axir
import axir.numpy as anp
from axir import lax
from axir.dialect.core.errors import ParameterError, ShapeError, UnboundAxisNameError

GROUPS = [[0, 3], [2, 1]]
X = np.random.default_rng(0).standard_normal((4, 4, 8, 3)).astype(np.float32)

# name -> program(library) of one element `x[4, 8, 3]` and a scalar that is not mapped
PROGRAMS: dict[str, Callable[..., Any]] = {
    "psum": lambda lib, x, s: lib.lax.psum(x * s, "i") * x,
    "psum of a tree": lambda lib, x, s: lib.lax.psum({"a": x, "b": (s, x[0])}, "i"),
    "pmean": lambda lib, x, s: lib.lax.pmean(x * x, "i"),
    "pmax": lambda lib, x, s: lib.lax.pmax(x, "i"),
    "pmin": lambda lib, x, s: lib.lax.pmin(x * s, "i"),
    "of what is not mapped": lambda lib, x, s: (
        lib.lax.psum(s, "i"),
        lib.lax.pmax(s, "i"),
        lib.lax.all_gather(s, "i"),
    ),
    "axis_index": lambda lib, x, s: x * lib.lax.axis_index("i"),
    "ppermute": lambda lib, x, s: lib.lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0), (3, 3)]),
    "pshuffle": lambda lib, x, s: lib.lax.pshuffle(x * s, "i", [2, 0, 3, 1]),
    "all_gather": lambda lib, x, s: lib.lax.all_gather(x, "i", axis=1) * s,
    "all_gather tiled": lambda lib, x, s: lib.lax.all_gather(x, "i", axis=2, tiled=True),
    "psum_scatter": lambda lib, x, s: lib.lax.psum_scatter(x, "i", scatter_dimension=0),
    "psum_scatter tiled": lambda lib, x, s: lib.lax.psum_scatter(
        x * s, "i", scatter_dimension=1, tiled=True
    ),
    "all_to_all": lambda lib, x, s: lib.lax.all_to_all(x, "i", 0, 2),
    "all_to_all back": lambda lib, x, s: lib.lax.all_to_all(x, "i", 0, 0),
    "all_to_all tiled": lambda lib, x, s: lib.lax.all_to_all(x, "i", 1, 0, tiled=True),
    "pswapaxes": lambda lib, x, s: lib.lax.pswapaxes(x * x, "i", 0),
}


def _leaves(result: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.tree.map(np.asarray, result))]


def _check(ours: Any, theirs: Any) -> None:
    ours, theirs = axir.tree.leaves(ours), jax.tree.leaves(theirs)
    assert len(ours) == len(theirs)
    for got, want in zip(ours, theirs, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("in_axis", [0, 1])
def test_values_are_those_of_jax(name: str, in_axis: int) -> None:
    def mapped(lib: Any) -> Any:
        program = PROGRAMS[name]
        return lib.vmap(lambda x, s: program(lib, x, s), (in_axis, None), axis_name="i")

    _check(mapped(axir)(X, 1.5), mapped(jax)(X, 1.5))


# What JAX cannot differentiate.
_EXTREMA = {"pmax", "pmin", "of what is not mapped"}


@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - _EXTREMA))
def test_gradients_are_those_of_jax(name: str) -> None:
    def gradient(lib: Any, np_: Any) -> Any:
        def loss(x: Any, s: Any) -> Any:
            run = lib.vmap(lambda x, s: PROGRAMS[name](lib, x, s), (0, None), axis_name="i")
            return sum(np_.sum(np_.sin(y)) for y in lib.tree.leaves(run(x, s)))

        return lib.grad(loss, argnums=(0, 1))

    _check(gradient(axir, anp)(X, 1.5), gradient(jax, jnp)(X, 1.5))


def test_gradients_taken_inside_the_map() -> None:
    def inside(lib: Any, np_: Any) -> Any:
        def loss(x: Any) -> Any:
            return np_.sum(lib.lax.psum(np_.sin(x), "i") * x)

        return lib.vmap(lib.grad(loss), axis_name="i")

    x = X[0, 0]
    _check(inside(axir, anp)(x), inside(jax, jnp)(x))


@pytest.mark.parametrize("name", ["psum", "all_gather", "all_to_all", "ppermute"])
def test_a_map_within_a_map_leaves_the_outer_axis_alone(name: str) -> None:
    def nested(lib: Any) -> Any:
        inner = lib.vmap(lambda x: PROGRAMS[name](lib, x, 0.5), in_axes=2, axis_name="j")
        return lib.vmap(inner, axis_name="i")

    x = np.stack([X, 2 * X], 3)
    _check(nested(axir)(x), nested(jax)(x))


def test_several_axes_at_once() -> None:
    def both(lib: Any) -> Any:
        def element(x: Any) -> Any:
            return (
                lib.lax.psum(x, ("i", "j")),
                lib.lax.pmax(x, ("j", "i")),
                lib.lax.axis_index(("i", "j")),
                lib.lax.psum(1, ("i", "j")) + lib.lax.axis_size("j"),
            )

        return lib.vmap(lib.vmap(element, axis_name="j"), axis_name="i")

    _check(both(axir)(X[:3]), both(jax)(X[:3]))


def test_gathering_over_two_axes_counts_the_last_one_fastest() -> None:
    gather = axir.vmap(lambda x: lax.all_gather(x, ("i", "j")), axis_name="j")
    (result, *_) = np.asarray(axir.vmap(gather, axis_name="i")(X[:3]))
    for copy in result:
        np.testing.assert_array_equal(copy, X[:3].reshape(12, 8, 3))


def test_scattering_a_sum_within_a_map() -> None:
    scatter = axir.vmap(lambda x: lax.psum_scatter(x, "i"), in_axes=2, axis_name="j")
    result = np.asarray(axir.vmap(scatter, axis_name="i")(X))
    np.testing.assert_allclose(result, np.moveaxis(X.sum(0), 2, 1), rtol=1e-5)


@pytest.mark.parametrize(("name", "pick"), [("pmax", np.argmax), ("pmin", np.argmin)])
def test_the_gradient_of_an_extremum_goes_to_where_it_is(name: str, pick: Any) -> None:
    x = X[0, 0, :, 0]

    def loss(x: Any) -> Any:
        scaled = axir.vmap(lambda e, w: w * getattr(lax, name)(e, "i"), axis_name="i")
        return anp.sum(scaled(x, anp.arange(8.0)))

    expected = np.zeros(8, np.float32)
    expected[pick(x)] = np.arange(8.0).sum()
    np.testing.assert_array_equal(np.asarray(axir.grad(loss)(x)), expected)


def test_jit_between_the_map_and_the_collective() -> None:
    def through_jit(lib: Any, np_: Any) -> Any:
        inner = lib.jit(lambda x: np_.cos(lib.lax.psum(x, "i")) * lib.lax.axis_index("i"))
        return lib.vmap(lambda x, s: inner(x) + inner(s), (0, None), axis_name="i")

    ours, theirs = through_jit(axir, anp), through_jit(jax, jnp)
    _check(ours(X, 0.25), theirs(X, 0.25))
    _check(axir.jit(ours)(X, 0.25), theirs(X, 0.25))


@pytest.mark.parametrize("transform", ["grad", "jit"])
def test_a_collective_of_a_value_of_the_surroundings(transform: str) -> None:
    def program(lib: Any, np_: Any) -> Any:
        total = lib.jit(lambda s: lib.lax.psum(s, "i"))

        def f(s: Any) -> Any:
            mapped = lib.vmap(lambda x: x * lib.lax.psum(s, "i") * total(s), axis_name="i")
            return mapped(np_.arange(3.0)).sum()

        return getattr(lib, transform)(f)(2.0)

    assert float(program(axir, anp)) == float(program(jax, jnp))


def test_positions_that_are_sent_nothing_hold_zeros() -> None:
    shift = axir.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 3)]), axis_name="i")
    expected = np.stack([np.zeros_like(X[0]), X[0], np.zeros_like(X[0]), X[1]])
    np.testing.assert_array_equal(np.asarray(shift(X)), expected)
    _, pullback = axir.vjp(shift, X)
    (cotangent,) = pullback(anp.asarray(X))
    expected = np.stack([X[1], X[3], np.zeros_like(X[0]), np.zeros_like(X[0])])
    np.testing.assert_array_equal(np.asarray(cotangent), expected)


def test_groups_communicate_separately() -> None:
    def element(x: Any) -> Any:
        return (
            lax.psum(x, "i", axis_index_groups=GROUPS),
            lax.pmax(x, "i", axis_index_groups=GROUPS),
            lax.all_gather(x, "i", axis_index_groups=GROUPS),
            lax.psum_scatter(x[:2], "i", axis_index_groups=GROUPS),
            lax.all_to_all(x, "i", 0, 1, axis_index_groups=GROUPS, tiled=True),
        )

    total, largest, gathered, scattered, exchanged = map(
        np.asarray, axir.vmap(element, axis_name="i")(X)
    )
    for group in GROUPS:
        members = X[group]
        for place, index in enumerate(group):
            np.testing.assert_allclose(total[index], members.sum(0), rtol=1e-6)
            np.testing.assert_array_equal(largest[index], members.max(0))
            np.testing.assert_array_equal(gathered[index], members)
            np.testing.assert_allclose(scattered[index], members[:, place].sum(0), rtol=1e-6)
            parts = [np.split(member, 2)[place] for member in members]
            np.testing.assert_array_equal(exchanged[index], np.concatenate(parts, 1))


def test_the_text_keeps_the_name_until_it_is_mapped() -> None:
    def element(x: Any) -> Any:
        return x / lax.psum(x, "i")

    with_axis = axir.vmap(lambda x: x, axis_name="i")
    assert with_axis(anp.ones(2)).shape == (2,)

    texts = []

    def remember(x: Any) -> Any:
        texts.append(str(axir.make_jaxpr(element)(x)))
        return x

    axir.vmap(remember, axis_name="i")(anp.ones(2))
    assert "psum[axes=('i',) axis_index_groups=None] a" in texts[0]
    assert "psum" not in str(axir.make_jaxpr(axir.vmap(element, axis_name="i"))(anp.ones(2)))


def test_an_axis_that_nobody_maps_is_named() -> None:
    with pytest.raises(UnboundAxisNameError, match="unbound axis name: 'rows'.*in scope are: 'i'"):
        axir.vmap(lambda x: lax.psum(x, "rows"), axis_name="i")(anp.ones(2))
    with pytest.raises(NameError, match="scope are: none"):
        lax.axis_index("i")


@pytest.mark.parametrize(
    ("program", "error", "message"),
    [
        (lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), ParameterError, "sources in perm"),
        (lambda x: lax.ppermute(x, "i", [(0, 7)]), ParameterError, "outside an axis of extent 4"),
        (lambda x: lax.pshuffle(x, "i", [0, 0, 1, 2]), ParameterError, "no permutation"),
        (lambda x: lax.psum_scatter(x, "i", scatter_dimension=1), ShapeError, "must equal"),
        (
            lambda x: lax.psum_scatter(x, "i", scatter_dimension=2, tiled=True),
            ShapeError,
            "divisible",
        ),
        (lambda x: lax.all_to_all(x, "i", 1, 0), ShapeError, "4 elements exchange"),
        (lambda x: lax.all_to_all(x, "i", 2, 0, tiled=True), ShapeError, "not divisible"),
        (
            lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2]]),
            ParameterError,
            "do not partition",
        ),
    ],
)
def test_errors_name_what_does_not_fit(
    program: Callable[[Any], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        axir.vmap(program, axis_name="i")(X)


def test_a_jitted_function_is_traced_for_each_extent_of_a_named_axis():
    counted = axir.jit(lambda x: x * lax.axis_size("i"))
    for size in (2, 3):
        result = axir.vmap(counted, axis_name="i")(anp.ones(size))
        np.testing.assert_array_equal(result, np.full(size, size, np.float32))


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("axes", [(0, 0), (0, 1), (0, 2)])
def test_exchanges_along_two_axes_are_those_along_one_of_both_extents(axes, tiled) -> None:
    x = np.arange(2 * 3 * 6 * 4 * 2.0).reshape(2, 3, 6, 4, 2)

    def exchange(name):
        return lambda a: (
            lax.all_to_all(a, name, *axes, tiled=tiled),
            lax.psum_scatter(a, name, tiled=tiled),
        )

    one = axir.vmap(exchange("i"), axis_name="i")(x.reshape(6, 6, 4, 2))
    both = axir.vmap(axir.vmap(exchange(("i", "j")), axis_name="j"), axis_name="i")(x)
    for expected, result in zip(one, both, strict=True):
        assert np.array_equal(expected, result.reshape(6, *result.shape[2:]))
