"""Options of the transformations that few programs use, each with JAX's result."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.errors import GradientError, ParameterError, StaticArgumentError

X = np.arange(3.0, dtype=np.float32)
N = np.arange(3, dtype=np.int32)


def described(tree: Any) -> Any:
    def describe(x: Any) -> Any:
        if isinstance(x, str):
            return x
        if getattr(x, "dtype", None) == jax.dtypes.float0:
            return ("float0", x.shape)
        array = np.asarray(x)
        kind = array.dtype.kind if np.ndim(x) == 0 else str(array.dtype)
        return (kind, array.shape, np.round(array, 4).tolist())

    return jax.tree_util.tree_map(describe, tree)


def outputs(x: Any, y: Any) -> Any:
    return {"a": x * y, "b": (x**2).sum()}


PROGRAMS = {
    "jacobians in several arguments": lambda lib: [
        j(outputs, argnums=n)(X, X) for j in (lib.jacfwd, lib.jacrev) for n in ((0, 1), [1], -1)
    ],
    "jacobians with results besides": lambda lib: [
        j(lambda x: (x**2, {"q": x}), has_aux=True)(X) for j in (lib.jacfwd, lib.jacrev)
    ],
    "holomorphic": lambda lib: [
        lib.jacfwd(lambda z: z**2, holomorphic=True)(X + 1j),
        lib.jacrev(lambda z: z**2, holomorphic=True)(X + 1j),
        lib.hessian(lambda z: (z**3).sum(), holomorphic=True)(X + 1j),
        lib.grad(lambda z: z**2, holomorphic=True)(2 + 1j),
    ],
    "integers have zero Jacobians": lambda lib: [
        lib.jacrev(lambda n: n * 2.0, allow_int=True)(N),
        lib.jacrev(lambda n, x: n * x, argnums=(0, 1), allow_int=True)(N, X),
        lib.jacfwd(lambda x: x.astype(int))(X),
    ],
    "integers have float0 gradients": lambda lib: [
        lib.grad(lambda n: n * 2.0, allow_int=True)(3),
        lib.vmap(lib.grad(lambda n: n * 2.0, allow_int=True))(N),
        lib.jit(lib.grad(lambda n, x: n * x, (0, 1), allow_int=True))(3, 2.0),
        lib.jvp(lambda n, x: n * x, (2, 3.0), (np.zeros((), jax.dtypes.float0), 1.0)),
    ],
    "hessians": lambda lib: [
        lib.hessian(lambda x, y: (x**2 * y).sum(), argnums=(0, 1))(X, X),
        lib.hessian(lambda x: ((x**3).sum(), x), has_aux=True)(X),
        lib.hessian(lambda d: d["a"] ** 2 * d["b"])({"a": 1.0, "b": 2.0}),
    ],
    "results besides that are no arrays": lambda lib: [
        lib.value_and_grad(lambda x, y: (x * y, {"s": "text", "x": x}), (1, 0), has_aux=True)(
            X[1], X[2]
        ),
        lib.jvp(lambda x: (x**2, ("text", x)), (X,), (X,), has_aux=True),
    ],
    "linearize and vjp with results besides": lambda lib: [
        (out, f(X), aux)
        for transform in (lib.linearize, lib.vjp)
        for out, f, aux in [transform(lambda x: (x**2, {"a": x}), X, has_aux=True)]
    ],
    "axes that a jaxpr may name": lambda lib: len(
        lib.make_jaxpr(lambda x: lib.lax.psum(x, "i"), axis_env=[("i", 3)])(1.0).eqns
    ),
    "options of one device": lambda lib: [
        lib.vmap(lambda x: x * 2, spmd_axis_name=None, sum_match=False)(X),
        lib.grad(lambda x: x * 2, reduce_axes=())(2.0),
        lib.vjp(lambda x: x * 2, 2.0, reduce_axes=())[0],
    ],
    "checkpoint": lambda lib: [
        lib.grad(lib.checkpoint(lambda x, n: x**n if n > 1 else x, static_argnums=-1))(2.0, 3),
        lib.grad(lib.checkpoint(lambda x, y: x**2 * y, prevent_cse=(True, False)))(2.0, 3.0),
        lib.grad(lib.checkpoint(lambda x, *, k: x * k))(2.0, k=3.0),
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_jax(name: str) -> None:
    assert described(PROGRAMS[name](axir)) == described(PROGRAMS[name](jax))


def test_static_arguments_of_checkpoint_by_name() -> None:
    calls: list[Any] = []

    def power(x: Any, n: int, *, scale: int = 1) -> Any:
        calls.append((n, scale))
        return scale * (x**n if n > 1 else x)

    f = axir.checkpoint(power, static_argnames=("n", "scale"))
    assert float(axir.grad(f)(2.0, 3)) == 12.0
    assert float(axir.grad(f)(2.0, n=3, scale=2)) == 24.0
    assert float(axir.grad(lambda x: f(n=3, x=x))(2.0)) == 12.0
    assert all(type(n) is int for n, _ in calls)
    # A static argument of checkpoint keys no cache, so that it need not be hashable, as in JAX.
    exponents = axir.checkpoint(lambda x, n: x ** n[0], static_argnames="n")
    assert float(axir.grad(exponents)(2.0, n=[3])) == 12.0
    with pytest.raises(StaticArgumentError, match="static_argnames names q, but the function"):
        axir.checkpoint(power, static_argnames="q")


def test_an_argument_is_not_named_twice() -> None:
    with pytest.raises(ParameterError, match=r"argnums \(0, -2\) name an argument twice"):
        axir.grad(lambda x, y: x * y, (0, -2))(1.0, 2.0)


def test_options_of_several_devices() -> None:
    for name in ("i", ("i", "j")):
        spread = axir.vmap(lambda x: 2 * x, spmd_axis_name=name, sum_match=True)
        assert spread(jnp.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(ParameterError, match="grad: reduce_axes must be empty"):
        axir.grad(lambda x: x, reduce_axes=("i",))
    with pytest.raises(ParameterError, match="vjp: reduce_axes must be empty"):
        axir.vjp(lambda x: x, 1.0, reduce_axes=("i",))


# fwd_and_bwd -------------------------------------------------------------------------------------


@pytest.mark.parametrize("jitted", [True, False])
def test_forward_and_backward_apart(jitted: bool) -> None:
    def run(lib: Any) -> Any:
        forward, backward = lib.fwd_and_bwd(
            lambda x, w: ({"o": lib.numpy.sin(x) * w["w"]}, {"aux": x}),
            argnums=(0, 1),
            has_aux=True,
            jitted=jitted,
        )
        out, residuals, aux = forward(X, {"w": 2.0})
        single_forward, single_backward = lib.fwd_and_bwd(lambda x, y: x * y, 1, jitted=jitted)
        product, kept = single_forward(X, X)
        batched = lib.vmap(lambda x: single_backward(single_forward(x, x)[1], x))(X)
        return out, aux, backward(residuals, {"o": X}), product, single_backward(kept, X), batched

    assert described(run(axir)) == described(run(jax))


def test_the_backward_pass_is_traced_once() -> None:
    traced: list[str] = []

    @axir.custom_vjp
    def f(x: Any) -> Any:
        return x * 2

    def bwd(residuals: Any, ct: Any) -> Any:
        traced.append("bwd")
        return (ct * 3,)

    f.defvjp(lambda x: (f(x), None), bwd)
    forward, backward = axir.fwd_and_bwd(f, 0)
    for scale in (1.0, 2.0, 3.0):
        _, residuals = forward(jnp.float32(scale))
        assert float(backward(residuals, jnp.float32(scale))) == 3 * scale
    assert traced == ["bwd"]
    with pytest.raises(GradientError, match="Cotangent of type"):
        backward(residuals, jnp.ones(2))
