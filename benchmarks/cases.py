"""The cases: each the same program for axir and for JAX, given the library as an argument.

What does not live here: the evaluator against NumPy (`evaluator_cases.py`).
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import numpy as np
from evaluator_cases import EVALUATOR_CASES
from measure import Case

import axir

Program = Callable[[], Any]
_CHAIN = 250


def _both(make: Callable[[ModuleType], Program]) -> Callable[[], tuple[Program, Program]]:
    return lambda: (make(axir), make(jax))


def _wait(lib: ModuleType, value: Any) -> None:
    lib.block_until_ready(value)


def _eager(operation: str) -> Callable[[ModuleType], Program]:
    def make(lib: ModuleType) -> Program:
        jnp = lib.numpy
        x = jnp.asarray(np.linspace(0.1, 1, 8, dtype=np.float32))
        positive = x > 0.5
        return {
            "sin": lambda: jnp.sin(x),
            "add": lambda: x + x,
            "sum": lambda: jnp.sum(x),
            "index": lambda: x[2],
            "where": lambda: jnp.where(positive, x, x),
            "scale": lambda: x * 2.0,
            "dot": lambda: x @ x,
        }[operation]

    return make


def _chain(lib: ModuleType) -> Callable[[Any], Any]:
    sin = lib.numpy.sin

    def chain(x: Any) -> Any:
        for _ in range(_CHAIN):
            x = sin(x) * x
        return x

    return chain


def _trace(lib: ModuleType) -> Program:
    # A new function object each time, so that nobody remembers the trace.
    return lambda: lib.make_jaxpr(_chain(lib))(1.0)


def _trace_gradient(lib: ModuleType) -> Program:
    return lambda: lib.make_jaxpr(lib.grad(_chain(lib)))(1.0)


def _eager_gradient(lib: ModuleType) -> Program:
    return lambda: lib.grad(_chain(lib))(1.0)


def _eager_vmap(lib: ModuleType) -> Program:
    x = lib.numpy.ones(8)
    return lambda: lib.vmap(_chain(lib))(x)


def _import(module: str) -> Program:
    def run() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
        return time.perf_counter() - start

    return run


def _jit_scalar(lib: ModuleType) -> Program:
    f = lib.jit(lambda x: lib.numpy.tanh(x) * 2 + 1)
    x = lib.numpy.asarray(np.float32(0.5))
    return lambda: f(x)


def _jit_arrays(lib: ModuleType) -> Program:
    f = lib.jit(lambda xs: [x + 1 for x in xs])
    xs = [lib.numpy.asarray(np.ones(8, np.float32)) for _ in range(50)]
    return lambda: f(xs)


def _compiled(
    program: Callable[[ModuleType], Callable[..., Any]], *shapes: tuple[int, ...]
) -> Callable[[ModuleType], Program]:
    def make(lib: ModuleType) -> Program:
        generator = np.random.default_rng(0)
        args = [
            lib.device_put(lib.numpy.asarray(generator.normal(size=s).astype(np.float32)))
            for s in shapes
        ]
        f = lib.jit(program(lib))
        return lambda: _wait(lib, f(*args))

    return make


def _transformer(lib: ModuleType, layers: int = 12) -> Callable[..., Any]:
    """The loss of a transformer of `layers` blocks: attention of 4 heads, MLP, layer norms."""
    jnp, nn = lib.numpy, lib.nn

    def normalize(x: Any) -> Any:
        centered = x - jnp.mean(x, axis=-1, keepdims=True)
        return centered / jnp.sqrt(jnp.mean(centered**2, axis=-1, keepdims=True) + 1e-6)

    def attend(weights: Any, x: Any) -> Any:
        length, width = x.shape
        query, key, value = ((normalize(x) @ w).reshape(length, 4, width // 4) for w in weights[:3])
        scores = jnp.einsum("qhd,khd->hqk", query, key) / (width // 4) ** 0.5
        mask = jnp.tril(jnp.ones((length, length), bool))
        shares = nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
        return jnp.einsum("hqk,khd->qhd", shares, value).reshape(length, width) @ weights[3]

    def loss(params: Any, x: Any) -> Any:
        for weights in params:
            x = x + attend(weights, x)
            x = x + nn.gelu(normalize(x) @ weights[4]) @ weights[5]
        return jnp.mean(x**2)

    return loss


def _trace_transformer(lib: ModuleType) -> Program:
    zeros = lib.numpy.zeros
    square, up, down = zeros((64, 64)), zeros((64, 128)), zeros((128, 64))
    params = [[square, square, square, square, up, down] for _ in range(12)]
    x = zeros((16, 64))
    return lambda: lib.make_jaxpr(lib.value_and_grad(_transformer(lib)))(params, x)


def _trace_scan(transform: str, length: int) -> Callable[[ModuleType], Program]:
    def make(lib: ModuleType) -> Program:
        def run(x: Any) -> Any:
            def body(carry: Any, row: Any) -> tuple[Any, Any]:
                return lib.numpy.tanh(carry * 0.5 + row), carry

            return lib.lax.scan(body, x[0], x)[0].sum()

        x = lib.numpy.zeros((length, 8))
        if transform == "grad":
            return lambda: lib.make_jaxpr(lib.grad(lambda x: run(x)))(x)
        return lambda: lib.make_jaxpr(lib.vmap(lambda x: run(x)))(x[None])

    return make


def _selu(lib: ModuleType) -> Callable[..., Any]:
    jnp = lib.numpy

    def selu(x: Any, alpha: float = 1.67, scale: float = 1.05) -> Any:
        return scale * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)

    return selu


def _mlp_step(lib: ModuleType) -> Callable[..., Any]:
    jnp = lib.numpy

    def loss(params: Any, x: Any, y: Any) -> Any:
        w1, w2, w3 = params
        h = jnp.maximum(x @ w1, 0)
        h = jnp.maximum(h @ w2, 0)
        logits = h @ w3
        top = jnp.max(logits, axis=1, keepdims=True)
        normalizer = jnp.log(jnp.sum(jnp.exp(logits - top), axis=1, keepdims=True)) + top
        return -jnp.mean(jnp.sum(y * (logits - normalizer), axis=1))

    def step(w1: Any, w2: Any, w3: Any, x: Any, y: Any) -> Any:
        gradients = lib.grad(loss)((w1, w2, w3), x, y)
        return [w - 1e-3 * g for w, g in zip((w1, w2, w3), gradients, strict=True)]

    return step


def _matvec(lib: ModuleType) -> Callable[..., Any]:
    return lambda a, x: a @ x


# Of matrices with a heavy diagonal, of which some read the lower triangle only.
_DECOMPOSITIONS: dict[str, Callable[[ModuleType, Any], Any]] = {
    "cholesky": lambda lib, a: lib.lax.linalg.cholesky(a, symmetrize_input=False),
    "solve": lambda lib, a: lib.numpy.linalg.solve(a, a[..., :1]),
    "qr": lambda lib, a: lib.numpy.linalg.qr(a),
    "eigh": lambda lib, a: lib.numpy.linalg.eigh(a, symmetrize_input=False),
}
_MATRICES = {"4x4": (4, 4), "32x32": (32, 32), "2000-of-3x3": (2000, 3, 3)}


def _decomposition(name: str, shape: tuple[int, ...]) -> Callable[[ModuleType], Program]:
    def program(lib: ModuleType) -> Callable[..., Any]:
        diagonal = 3 * shape[-1] * np.eye(shape[-1], dtype=np.float32)
        return lambda a: _DECOMPOSITIONS[name](lib, a + diagonal)

    return _compiled(program, shape)


_SORTS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "sort-1e5": (lambda lib, x: lib.numpy.sort(x), (100_000,)),
    "sort-8-of-10000": (lambda lib, x: lib.numpy.sort(x), (10_000, 8)),
    "sort-rows-of-1000": (lambda lib, x: lib.numpy.sort(x), (1000, 1000)),
    "argsort-1e5": (lambda lib, x: lib.numpy.argsort(x), (100_000,)),
    "median-of-1000x300": (lambda lib, x: lib.numpy.median(x, axis=0), (1000, 300)),
    "lexsort-3x5000": (lambda lib, x: lib.numpy.lexsort(tuple(lib.numpy.round(x))), (3, 5000)),
    "top-k-of-1e5": (lambda lib, x: lib.lax.top_k(x, 10), (100_000,)),
    "permutation-60000": (
        lambda lib, x: lib.random.permutation(lib.random.key(x[0].astype(int)), 60_000),
        (1,),
    ),
}


def _sort(name: str) -> Callable[[ModuleType], Program]:
    program, shape = _SORTS[name]
    return _compiled(lambda lib: lambda x: program(lib, x), shape)


def _softmax(lib: ModuleType) -> Callable[..., Any]:
    return lambda x: lib.nn.softmax(x, axis=-1)


CASES: dict[str, Case] = {
    **{
        f"eager-{name}": Case(_both(_eager(name)), goal=0.8)
        for name in ("sin", "add", "sum", "index", "where", "scale", "dot")
    },
    "trace-op": Case(_both(_trace), goal=0.5, scale=2 * _CHAIN),
    "trace-gradient-op": Case(_both(_trace_gradient), goal=0.35, scale=2 * _CHAIN),
    "trace-transformer": Case(_both(_trace_transformer), goal=0.6, unit="ms"),
    **{
        f"trace-scan-{t}-{n}": Case(_both(_trace_scan(t, n)))
        for t in ("grad", "vmap")
        for n in (10, 10_000)
    },
    "eager-gradient-op": Case(_both(_eager_gradient), goal=0.3, scale=2 * _CHAIN),
    "eager-vmap-op": Case(_both(_eager_vmap), scale=2 * _CHAIN),
    "import": Case(lambda: (_import("axir"), _import("jax")), goal=0.7, unit="s", seconds=True),
    "jit-call-scalar": Case(_both(_jit_scalar), goal=2),
    "jit-call-50-arrays": Case(_both(_jit_arrays), goal=1),
    "selu-1e6": Case(_both(_compiled(_selu, (1_000_000,))), goal=1.2),
    "mlp-step": Case(
        _both(_compiled(_mlp_step, (784, 512), (512, 512), (512, 10), (128, 784), (128, 10))),
        goal=1.2,
    ),
    "matvec-4096": Case(_both(_compiled(_matvec, (4096, 4096), (4096,))), goal=1.2),
    "matmul-1024": Case(_both(_compiled(_matvec, (1024, 1024), (1024, 1024)))),
    "softmax-1024": Case(_both(_compiled(_softmax, (1024, 1024)))),
    **{
        f"{name}-{size}": Case(_both(_decomposition(name, shape)))
        for name in _DECOMPOSITIONS
        for size, shape in _MATRICES.items()
    },
    **{name: Case(_both(_sort(name))) for name in _SORTS},
    **EVALUATOR_CASES,
}
