"""Control flow against JAX: values, both modes of derivatives, second order, vmap, nested jit."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as axir_numpy

OURS = SimpleNamespace(
    np=axir_numpy, lax=axir.lax, grad=axir.grad, jit=axir.jit, vmap=axir.vmap, jvp=axir.jvp,
    jacfwd=axir.jacfwd, jacrev=axir.jacrev, hessian=axir.hessian,
)  # fmt: skip
THEIRS = SimpleNamespace(
    np=jax.numpy, lax=jax.lax, grad=jax.grad, jit=jax.jit, vmap=jax.vmap, jvp=jax.jvp,
    jacfwd=jax.jacfwd, jacrev=jax.jacrev, hessian=jax.hessian,
)  # fmt: skip

X = np.array([0.3, -0.7, 1.1], np.float32)
A = np.array([0.9, 1.2, -0.4], np.float32)

Program = Callable[..., Any]


def _recurrence(lib: Any, **options: Any) -> Program:
    def step(carry: Any, x: Any) -> Any:
        h = lib.np.sin(carry["h"] * carry["w"] + x)
        return {"h": h, "w": carry["w"], "n": carry["n"] + 1}, (h * x, carry["n"])

    def program(x: Any, a: Any) -> Any:
        xs = lib.np.stack([x, x * a, x + a, a, x * x])
        init = {"h": x, "w": lib.np.cos(a), "n": 0}
        carry, (ys, ns) = lib.lax.scan(step, init, xs, **options)
        return carry["h"] * carry["n"] + (ys * ns[:, None]).sum(0)

    return program


def _scan_forward(lib: Any) -> Program:
    return _recurrence(lib)


def _scan_reverse(lib: Any) -> Program:
    return _recurrence(lib, reverse=True)


def _scan_unrolled(lib: Any) -> Program:
    return _recurrence(lib, unroll=2)


def _scan_written_out(lib: Any) -> Program:
    return _recurrence(lib, unroll=True)


def _scan_of_constants(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        weights = lib.np.outer(a, lib.np.exp(x))

        def step(h: Any, _: Any) -> Any:
            h = lib.np.tanh(weights @ lib.np.sin(h))
            return h, h.sum()

        h, sums = lib.lax.scan(step, x, None, length=4)
        return h * sums.sum()

    return program


def _scan_of_nothing(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        h, ys = lib.lax.scan(lambda h, y: (h * y, h), x, lib.np.zeros((0, 3)) * a)
        return h * a + ys.sum(0)

    return program


def _static_fori(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        return lib.lax.fori_loop(2, 5, lambda i, v: lib.np.sin(v) * a + x / i, x)

    return program


def _map(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        return lib.lax.map(lambda pair: pair[0] * lib.np.sin(pair[1]) + a.sum(), (x, a))

    return program


def _map_in_batches(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        return lib.lax.map(lambda v: lib.np.sin(v) * a, x, batch_size=2).sum(0)

    return program


def _cond_with_closure(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        return lib.lax.cond(
            x.sum() > 0, lambda v: lib.np.sin(v) * a, lambda v: v * lib.np.cos(a), x * 2
        )

    return program


def _cond_of_two_operands(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        return lib.lax.cond(x[0] > 5, x, lambda v: v * v, (a, x), lambda p: p[0] * p[1] ** 2)

    return program


def _switch(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        branches = [
            lambda v: {"y": v, "z": a},
            lambda v: {"y": v * v * a, "z": lib.np.exp(v)},
            lambda v: {"y": lib.np.sin(v), "z": v * v},
        ]
        total = 0.0
        for index in (-1, 1, 2, 7):
            result = lib.lax.switch(index, branches, x * (index + 3))
            total = total + result["y"] * result["z"]
        return total

    return program


def _cond_in_scan(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        def step(h: Any, i: Any) -> Any:
            h = lib.lax.cond(i % 2 == 0, lambda v: lib.np.sin(v * a), lambda v: v * v + x, h)
            return h, h * i

        h, ys = lib.lax.scan(step, x, lib.np.arange(5))
        return h + ys.sum(0)

    return program


def _scan_in_cond(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        def loop(v: Any) -> Any:
            return lib.lax.scan(lambda c, y: (c * y + a, None), v, lib.np.stack([x, a, x]))[0]

        return lib.lax.cond(x[2] > 0, loop, lambda v: v, x)

    return program


def _scan_in_scan(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        def outer(c: Any, y: Any) -> Any:
            inner, ys = lib.lax.scan(lambda d, z: (lib.np.sin(d * z) + c[0], d), y * a, c)
            return c + ys.mean(0), inner

        c, ys = lib.lax.scan(outer, x, lib.np.stack([x, a]))
        return c + ys.sum(0)

    return program


def _associative(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        def combine(first: Any, second: Any) -> Any:
            return first[0] * second[0], first[1] * second[0] + second[1]

        pairs = (lib.np.stack([x, a, x * a, x + a, x]), lib.np.stack([a, x, x, a, a]))
        forward = lib.lax.associative_scan(combine, pairs)
        backward = lib.lax.associative_scan(combine, pairs, reverse=True, axis=0)
        return forward[1].sum(0) + backward[0].sum(0)

    return program


def _jit_in_scan(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        step = lib.jit(lambda c, y: (lib.np.sin(c) * y, c * a))
        c, ys = lib.lax.scan(lambda c, y: step(c, y), x, lib.np.stack([x, a]))
        return c + ys.sum(0)

    return program


def _while_without_tangents(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        count = lib.lax.while_loop(lambda n: n < 5, lambda n: n * 2, 1)
        return x * a * count

    return program


def _grad_in_scan(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        def loss(v: Any, y: Any) -> Any:
            return (lib.np.sin(v) * y).sum() ** 2

        def descend(v: Any, y: Any) -> Any:
            return v - 0.1 * lib.grad(loss)(v, y), loss(v, y)

        v, losses = lib.lax.scan(descend, x, lib.np.stack([a, x, a]))
        return v * losses.sum()

    return program


DIFFERENTIABLE = [
    _scan_forward, _scan_reverse, _scan_unrolled, _scan_written_out, _scan_of_constants,
    _scan_of_nothing, _static_fori, _map, _map_in_batches, _cond_with_closure,
    _cond_of_two_operands, _switch, _cond_in_scan, _scan_in_cond, _scan_in_scan, _associative,
    _jit_in_scan, _while_without_tangents, _grad_in_scan,
]  # fmt: skip


def _while_by_value(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        def body(carry: Any) -> Any:
            v, n = carry
            return lib.np.sin(v) * a + x, n + 1

        v, n = lib.lax.while_loop(lambda c: (c[0].sum() < 5) & (c[1] < 6), body, (x * a, 0))
        return v * n

    return program


def _while_by_flag(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        def body(carry: Any) -> Any:
            _, v = carry
            return abs(v).max() > 0.25, v * 0.5

        return lib.lax.while_loop(lambda c: c[0], body, (x[0] < 9, x * a))[1]

    return program


def _traced_fori(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        count = (abs(x[0]) * 10).astype(int)
        return lib.lax.fori_loop(0, count, lambda i, v: v * a + i, x)

    return program


def _while_in_while(lib: Any) -> Program:
    def program(x: Any, a: Any) -> Any:
        def outer(v: Any) -> Any:
            return lib.lax.while_loop(lambda w: w.sum() < 3, lambda w: w + 0.75, v * a) + 1.0

        return lib.lax.while_loop(lambda v: v.sum() < 7, outer, x)

    return program


FORWARD_ONLY = [_while_by_value, _while_by_flag, _traced_fori, _while_in_while]


def _agree(ours: Any, theirs: Any, factor: float = 8.0) -> None:
    got, want = np.asarray(ours), np.asarray(theirs)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    np.testing.assert_allclose(got, want, rtol=0, atol=factor * 2e-6 * scale)


def _compare(program: Any, transform: Callable[[Any, Program], Program], *args: Any) -> None:
    arguments = [axir_numpy.array(x) for x in args]
    ours = transform(OURS, program(OURS))(*arguments)
    theirs = jax.jit(transform(THEIRS, program(THEIRS)))(*map(jax.numpy.array, args))
    _agree(ours, theirs)


def _total(lib: Any, f: Program) -> Program:
    return lambda x, a: lib.np.sum(f(x, a) * lib.np.array([1.0, -2.0, 0.5]))


TRANSFORMS = {
    "value": lambda lib, f: f,
    "jit": lambda lib, f: lib.jit(f),
    "jvp": lambda lib, f: lambda x, a: lib.jvp(f, (x, a), (a, x))[1],
    "vmap": lambda lib, f: lambda x, a: lib.vmap(f, (0, None))(lib.np.stack([x, x * 2]), a),
    "vmap of vmap": lambda lib, f: (
        lambda x, a: lib.vmap(lib.vmap(f, (0, None), 1), (None, 1), 1)(
            lib.np.stack([x, -x]), lib.np.stack([a, a * 2, -a], 1)
        )
    ),
    "vmap of jvp": lambda lib, f: (
        lambda x, a: lib.vmap(lambda t: lib.jvp(f, (x, a), (t, a))[1])(lib.np.stack([x, a]))
    ),
}
REVERSE_TRANSFORMS = {
    "grad in both": lambda lib, f: lambda x, a: sum(lib.grad(_total(lib, f), (0, 1))(x, a)),
    "hessian": lambda lib, f: lib.hessian(_total(lib, f)),
    "grad of grad": lambda lib, f: lib.grad(
        lambda x, a: (lib.grad(_total(lib, f))(x, a) * a).sum(), 1
    ),
    "vmap of grad": lambda lib, f: (
        lambda x, a: lib.vmap(lib.grad(_total(lib, f)), (0, None))(lib.np.stack([x, -x]), a)
    ),
    "grad of vmap": lambda lib, f: lib.grad(
        lambda x, a: lib.vmap(f, (None, 0))(x, lib.np.stack([a, x, -a])).sum()
    ),
}


# Compiled, differentiable programs come with their gradients further down.
_CASES = [
    (program, transform)
    for program in [*DIFFERENTIABLE, *FORWARD_ONLY]
    for transform in TRANSFORMS
    if transform != "jit" or program in FORWARD_ONLY
]


@pytest.mark.parametrize(("program", "transform"), _CASES)
def test_program_does_what_jax_does(program: Any, transform: str) -> None:
    _compare(program, TRANSFORMS[transform], X, A)


@pytest.mark.parametrize("transform", REVERSE_TRANSFORMS)
@pytest.mark.parametrize("program", DIFFERENTIABLE)
def test_reverse_mode_does_what_jax_does(program: Any, transform: str) -> None:
    _compare(program, REVERSE_TRANSFORMS[transform], X, A)


@pytest.mark.parametrize("program", DIFFERENTIABLE)
def test_compiled_gradient_is_the_interpreted_one(program: Any) -> None:
    gradient = axir.grad(_total(OURS, program(OURS)), (0, 1))
    x, a = axir_numpy.array(X), axir_numpy.array(A)
    for ours, eager in zip(axir.jit(gradient)(x, a), gradient(x, a), strict=True):
        _agree(ours, eager)


@pytest.mark.parametrize("program", [*FORWARD_ONLY, _cond_in_scan, _scan_in_scan, _switch])
def test_compiled_batch_of_tangents_is_the_interpreted_one(program: Any) -> None:
    f = program(OURS)

    def push(x: Any, a: Any) -> Any:
        return axir.jvp(f, (x, a), (a, x))

    batched = axir.vmap(push, (0, None))
    x, a = axir_numpy.array(np.stack([X, -X, 2 * X])), axir_numpy.array(A)
    for ours, eager in zip(axir.jit(batched)(x, a), batched(x, a), strict=True):
        _agree(ours, eager)
