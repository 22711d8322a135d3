"""Which values vary along the axes of a mesh, within `shard_map`: derivatives and errors of JAX."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import axir
from axir import lax
from axir import numpy as jnp

BOTH = ("i", "j")
W, X = np.float32(1.5), np.arange(4, dtype=np.float32).reshape(2, 2) / 2 + 0.25


def are_names(x: Any) -> bool:
    return type(x) is tuple and not any(isinstance(name, (tuple, dict)) for name in x)


def mapped(lib: Any, function: Any, out_specs: Any, **options: Any) -> Any:
    """Maps a function of a number that all devices have and of rows and columns of a matrix."""
    spec = lib.sharding.PartitionSpec
    mesh = lib.sharding.Mesh(np.array(lib.devices()[:4]).reshape(2, 2), BOTH)
    specs = lib.tree.map(lambda names: spec(*names), out_specs, is_leaf=are_names)
    return lib.shard_map(
        function, mesh=mesh, in_specs=(spec(), spec(*BOTH)), out_specs=specs, **options
    )


def loss(lib: Any, w: Any, x: Any) -> Any:
    return (lib.numpy.sin(w * x) * x).sum()


def by_rules(lib: Any) -> Any:
    @lib.custom_vjp
    def product(w: Any, x: Any) -> Any:
        return w * x

    def back(kept: Any, ct: Any) -> Any:
        w, x = kept
        return lib.lax.psum((ct * x).sum(), BOTH), ct * w

    product.defvjp(lambda w, x: (w * x, (w, x)), back)
    return product


def by_jvp(lib: Any) -> Any:
    product = lib.custom_jvp(lambda w, x: w * x)
    product.defjvp(lambda p, t: (p[0] * p[1], t[0] * p[1] + t[1] * p[0]))
    return product


def scanned(lib: Any, w: Any, x: Any) -> Any:
    return lib.lax.scan(lambda c, _: (c * w + x, c), lib.numpy.zeros_like(x), None, 3)[0].sum()


def chosen(lib: Any, w: Any, x: Any) -> Any:
    return lib.lax.cond(w > 0, lambda w: (w * x).sum(), lambda w: (3 * x).sum() * w, w)


# Of the number: its derivative is the sum of what devices find. Of parts: each has its own.
OF_THE_NUMBER: dict[str, Any] = {
    "plain": loss,
    "psum": lambda lib, w, x: lib.lax.psum(loss(lib, w, x), BOTH),
    "pmean": lambda lib, w, x: lib.lax.pmean(loss(lib, w, x), "i"),
    "half": lambda lib, w, x: w * lib.lax.psum(x, "i").sum() * w,
    "cast": lambda lib, w, x: (lib.lax.pcast(w, BOTH, to="varying") * x).sum(),
    "twice": lambda lib, w, x: lib.grad(lambda v: loss(lib, v, x))(w) ** 2,
    "jit": lambda lib, w, x: lib.jit(lambda w, x: loss(lib, w, x))(w, x),
    "checkpoint": lambda lib, w, x: lib.checkpoint(lambda w, x: loss(lib, w, x))(w, x),
    "custom_vjp": lambda lib, w, x: by_rules(lib)(w, x).sum(),
    "custom_jvp": lambda lib, w, x: by_jvp(lib)(w, x).sum(),
    "scan": scanned,
    "cond": chosen,
    "switch": lambda lib, w, x: lib.lax.switch(1, [lambda: 0 * x, lambda: w * x]).sum(),
    "map": lambda lib, w, x: lib.lax.map(lambda row: (row * w) ** 2, x).sum(),
    "while": lambda lib, w, x: w * lib.lax.while_loop(lambda c: c[0] < 3, lambda c: c + x[0],
                                                     lib.lax.stop_gradient(x[0])).sum(),
    "vmap": lambda lib, w, x: lib.vmap(lambda w, r: (w * w * r).sum(), (None, 0))(w, x).sum(),
    "ppermute": lambda lib, w, x: (lib.lax.ppermute(w * x, "i", [(0, 1), (1, 0)]) * x).sum(),
    "all_gather": lambda lib, w, x: (lib.lax.all_gather(w, "i")[0] * x).sum(),
    "psum_scatter": lambda lib, w, x: (
        lib.lax.psum_scatter(w * lib.numpy.ones(2) * x[0, 0], "i", tiled=True) ** 2
    ).sum(),
    "all_to_all": lambda lib, w, x: (
        lib.lax.all_to_all(w * lib.numpy.ones((2, 1)), "j", 0, 1) * x
    ).sum(),
    "axis_index": lambda lib, w, x: w * lib.lax.axis_index("j"),
    "clip": lambda lib, w, x: lib.numpy.clip(x, 0.3 * w, w).sum(),
    "select": lambda lib, w, x: lib.numpy.where(x > 1, w, 2 * w).sum(),
    "concatenate": lambda lib, w, x: (lib.numpy.stack([w, x[0, 0]]) ** 2).sum(),
    "update": lambda lib, w, x: (lib.numpy.zeros_like(x).at[0].add(w) * x).sum(),
}  # fmt: skip
OF_PARTS = ("plain", "psum", "pmean", "custom_vjp", "scan", "cond", "ppermute")


def gradients(lib: Any) -> Any:
    def of(w: Any, x: Any) -> Any:
        number = {n: lib.grad(lambda v, f=f: f(lib, v, x))(w) for n, f in OF_THE_NUMBER.items()}
        number["hessian"] = lib.hessian(lambda v: loss(lib, v, x))(w)
        number["jacrev"] = lib.jacrev(lambda v: lib.numpy.stack([v * x.sum(), v])[:1])(w)
        number["vmap of grad"] = lib.vmap(lib.grad(lambda v, r: (v * r).sum()), (None, 0))(w, x)
        parts = {n: lib.grad(lambda v, f=OF_THE_NUMBER[n]: f(lib, w, v).sum())(x) for n in OF_PARTS}
        parts["jvp"] = lib.jvp(lambda v: loss(lib, v, x), (w,), (2 * w,))[1].reshape(1, 1)
        return number, parts

    names = (*OF_THE_NUMBER, "hessian", "jacrev", "vmap of grad")
    return mapped(lib, of, ({n: () for n in names}, {n: BOTH for n in (*OF_PARTS, "jvp")}))


def test_derivatives_within_the_map() -> None:
    expected, found = (lib.jit(gradients(lib))(W, X) for lib in (jax, axir))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.keys() == theirs.keys()
        for name, value in theirs.items():
            np.testing.assert_allclose(ours[name], value, rtol=2e-5, atol=1e-5, err_msg=name)


def slopes(lib: Any) -> Any:
    """Maps a function that has derivatives in it, and results of all kinds."""

    def of(w: Any, x: Any) -> Any:
        slope = lib.grad(lambda v: loss(lib, v, x))(w)
        return slope * w, lib.lax.psum(slope * x, "i"), (w * w)[None, None], slope * x

    return mapped(lib, of, ((), (None, "j"), BOTH, BOTH))


def around(lib: Any) -> Any:
    """Returns derivatives of a map, of many kinds."""
    function = slopes(lib)

    def total(w: Any, x: Any) -> Any:
        a, b, c, d = function(w, x)
        return a + (b**2).sum() + (c * lib.numpy.arange(4.0).reshape(2, 2)).sum() + (d**2).sum()

    return {
        "grad": lib.grad(total, (0, 1)),
        "hessian": lib.hessian(total),
        "jvp": lambda w, x: lib.jvp(total, (w, x), (2 * w, x)),
        "jacrev": lib.jacrev(lambda w, x: function(w, x)[1]),
        "vmap": lambda w, x: lib.vmap(function, (0, None))(w + lib.numpy.arange(3.0), x),
        "vmap of grad": lambda w, x: lib.vmap(lib.grad(total), (None, 0))(
            w, lib.numpy.stack([x, x])
        ),
        "closure": lib.grad(
            lambda w, x: mapped(lib, lambda _, x: (x * w) ** 2, BOTH)(1.0, x).sum()
        ),
        "unchecked": lib.grad(
            lambda w, x: mapped(
                lib, lambda w, x: lib.lax.psum((w * x).sum(), BOTH), (), check_vma=False
            )(w, x)
        ),
    }  # fmt: skip


def test_derivatives_of_the_map() -> None:
    def everything(lib: Any) -> Any:
        functions = around(lib)
        return lib.jit(lambda w, x: {name: f(w, x) for name, f in functions.items()})

    expected, found = (everything(lib)(W, X) for lib in (jax, axir))
    eager = around(axir)["grad"](W, X)
    for ours, theirs in ((found, expected), ({"grad": eager}, expected)):
        for name, value in ours.items():
            pairs = zip(axir.tree.leaves(value), jax.tree.leaves(theirs[name]), strict=True)
            for a, b in pairs:
                np.testing.assert_allclose(a, b, rtol=2e-5, err_msg=name)


def test_types_tell_what_varies() -> None:
    seen: dict[str, list[str]] = {"jax": [], "axir": []}

    def look(lib: Any, w: Any, x: Any) -> Any:
        numpy, lax = lib.numpy, lib.lax
        values = [
            w, x, x[0], w * x, lax.psum(x, "i"), lax.psum(x, BOTH), lax.psum(w, "i"),
            lax.pmax(x, "j"), lax.all_gather(x, "i"), lax.axis_index("j"),
            lax.pcast(w, "i", to="varying"), lax.ppermute(lax.psum(x, BOTH), "i", [(0, 1)]),
            numpy.zeros_like(x), numpy.full_like(x, 2, shape=3), lax.full_like(x, 1),
            numpy.ones(2), x.astype(int), lib.random.split(lib.random.key(0))[0],
            lib.jit(lambda x: x.sum())(x), numpy.sort(x), numpy.concatenate([w[None], x[0]]),
        ]  # fmt: skip
        seen[lib.__name__] = [lib.typeof(v).str_short().replace("i,j", "j,i") for v in values]
        axes = lib.typeof(lax.psum(x, "i")).mat
        assert (axes.varying, axes.unreduced) == (frozenset("j"), frozenset())
        return w

    for lib in (jax, axir):
        lib.eval_shape(mapped(lib, lambda w, x, lib=lib: look(lib, w, x), ()), W, X)
    for ours, theirs in zip(seen["axir"], seen["jax"], strict=True):
        assert ours.replace("int64", "int32") == theirs.replace("int64", "int32")


REFUSED: dict[str, Any] = {
    "sum": (lambda lib, w, x: x.sum(), (), "do not name 'i', 'j'"),
    "half": (lambda lib, w, x: lib.lax.psum(x.sum(), "i"), (), "do not name 'j'"),
    "gathered": (lambda lib, w, x: lib.lax.all_gather(x, "i"), (None, None, "j"), "not name 'i'"),
    "gradient": (lambda lib, w, x: lib.grad(lambda v: (v * w).sum())(x), (), "do not name"),
    "cast": (lambda lib, w, x: lib.lax.pcast(x, "i", to="varying"), BOTH, "along 'i' already"),
    "word": (lambda lib, w, x: lib.lax.pcast(w, "i", to="moving"), (), "in the way 'moving'"),
    "cotangent": (lambda lib, w, x: lib.vjp(lambda w: w * 2, w)[1](x[0, 0])[0], (),
                  "Cotangent of type float32.*same along axes"),
    "rule": (lambda lib, w, x: lib.grad(lambda w: unsummed(lib)(w, x).sum())(w), (),
             "the manual axis types do not match"),
}  # fmt: skip


def unsummed(lib: Any) -> Any:
    product = lib.custom_vjp(lambda w, x: w * x)
    product.defvjp(lambda w, x: (w * x, (w, x)), lambda k, ct: ((ct * k[1]).sum(), ct * k[0]))
    return product


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    function, specs, message = REFUSED[name]
    for lib, match in ((jax, None), (axir, message)):
        with pytest.raises((ValueError, TypeError), match=match):
            lib.eval_shape(mapped(lib, lambda w, x, lib=lib: function(lib, w, x), specs), W, X)


def test_loops_and_choices_vary_as_they_must() -> None:
    """JAX wants `pcast` written in these; the derivatives are those with it."""

    def carried(w: Any, x: Any) -> Any:
        total = lax.fori_loop(0, 3, lambda _, c: c * w + x, jnp.zeros((1, 1))).sum()
        own = lax.while_loop(lambda c: c < 4 * x[0, 0], lambda c: c + 1, 0.0)
        chosen = lax.cond(x[0, 0] > 1, lambda: w, lambda: 2 * w)
        return total + lax.stop_gradient(own) + chosen

    def within(w: Any, x: Any) -> Any:
        value, slope = axir.value_and_grad(carried)(w, x)
        return value.reshape(1, 1), slope

    values, slope = mapped(axir, within, (BOTH, ()))(W, X)
    powers = W**2 + W + 1
    choices = np.where(X > 1, 1.0, 2.0)
    np.testing.assert_allclose(values, powers * X + np.ceil(4 * X) + choices * W, rtol=1e-6)
    np.testing.assert_allclose(slope, (X * (2 * W + 1) + choices).sum(), rtol=1e-6)


def test_solvers_vary_as_their_matrix_does() -> None:
    def solution(w: Any, x: Any) -> Any:
        return lax.custom_linear_solve(
            lambda v: (w * x + 1) * v,
            w * jnp.ones((1, 1)),
            lambda multiply, b: b / multiply(jnp.ones_like(b)),
            symmetric=True,
        ).sum()

    both = mapped(axir, axir.grad(solution, (0, 1)), ((), BOTH))(W, X)
    np.testing.assert_allclose(both[0], (1 / (W * X + 1) ** 2).sum(), rtol=1e-5)
    np.testing.assert_allclose(both[1], -((W / (W * X + 1)) ** 2), rtol=1e-5)
