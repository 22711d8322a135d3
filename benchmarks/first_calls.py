"""First calls: how long a program makes one wait, against JAX, each in a process of its own.

`measure_first_calls` starts `python benchmarks/first_calls.py --child LIBRARY STATE NAME`, which
prints seconds: of the clock, and of processors, those of the compiler's helper process included;
the latter depend less on what else the machine does. States: `cold`, with an empty cache, after
the first call of another program; `first`, with an empty cache, the first call of a process;
`warm`, with the program in axir's disk cache, after the first call of another program that is
there, too. JAX has no cache on disk by default, so `warm` is compared with its cold call. Arguments
are on the device, and the result is waited for.

What does not live here: calls after the first (`cases.py`).
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

Program = Callable[..., Any]
Make = Callable[[ModuleType], Program]
STATES = ("cold", "first", "warm")
# Largest ratios we mean to allow; JAX's cold call stands against all but `first`.
_SMALL, _MODEL, _WARM = 2.0, 4.0, 0.3


@dataclass(frozen=True)
class Result:
    """Medians in seconds of the first calls of a program: of the clock, and of processors."""

    name: str
    state: str
    ours: float
    theirs: float
    ratio: float
    our_processors: float
    their_processors: float
    goal: float | None


# --- programs -----------------------------------------------------------------------------------


def _three_ops(lib: ModuleType) -> Program:
    return lambda x: lib.numpy.tanh(x) * 2 + 1


def _selu(lib: ModuleType) -> Program:
    jnp = lib.numpy
    return lambda x: 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67)


def _softmax(lib: ModuleType) -> Program:
    return lambda x: lib.nn.softmax(x, axis=-1)


def _matmul(lib: ModuleType) -> Program:
    return lambda a, b: a @ b


def _logistic(lib: ModuleType) -> Program:
    """Gradients of a batch of logistic regressions."""
    jnp = lib.numpy

    def loss(w: Any, x: Any, y: Any) -> Any:
        logits = x @ w
        return jnp.mean(jnp.logaddexp(0.0, logits) - y * logits)

    return lib.vmap(lib.grad(loss))


def _mlp_step(lib: ModuleType) -> Program:
    jnp = lib.numpy

    def loss(params: Any, x: Any, y: Any) -> Any:
        w1, w2, w3 = params
        h = jnp.maximum(jnp.maximum(x @ w1, 0) @ w2, 0)
        return -jnp.mean(jnp.sum(y * lib.nn.log_softmax(h @ w3), axis=1))

    def step(w1: Any, w2: Any, w3: Any, x: Any, y: Any) -> Any:
        gradients = lib.grad(loss)((w1, w2, w3), x, y)
        return [w - 1e-3 * g for w, g in zip((w1, w2, w3), gradients, strict=True)]

    return step


def _attention(lib: ModuleType) -> Program:
    jnp = lib.numpy

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8.0
        return jnp.einsum("bhqk,bhkd->bhqd", lib.nn.softmax(scores, axis=-1), v)

    return attention


def _transformer_block(lib: ModuleType) -> Program:
    """The gradient of the loss of one block: attention of 4 heads, MLP, layer norms."""
    jnp, nn = lib.numpy, lib.nn

    def normalize(x: Any) -> Any:
        centered = x - jnp.mean(x, axis=-1, keepdims=True)
        return centered / jnp.sqrt(jnp.mean(centered**2, axis=-1, keepdims=True) + 1e-6)

    def loss(weights: Any, x: Any) -> Any:
        length, width = x.shape
        query, key, value = ((normalize(x) @ w).reshape(length, 4, width // 4) for w in weights[:3])
        scores = jnp.einsum("qhd,khd->hqk", query, key) / (width // 4) ** 0.5
        mask = jnp.tril(jnp.ones((length, length), bool))
        shares = nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
        attended = jnp.einsum("hqk,khd->qhd", shares, value).reshape(length, width)
        x = x + attended @ weights[3]
        x = x + nn.gelu(normalize(x) @ weights[4]) @ weights[5]
        return jnp.mean(x**2)

    gradient = lib.value_and_grad(loss)
    return lambda *args: gradient(args[:-1], args[-1])


def _cnn_step(lib: ModuleType) -> Program:
    jnp = lib.numpy

    def convolve(x: Any, w: Any) -> Any:
        return lib.lax.conv_general_dilated(
            x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def loss(params: Any, x: Any, y: Any) -> Any:
        w1, w2, w3 = params
        h = lib.nn.relu(convolve(lib.nn.relu(convolve(x, w1)), w2))
        logits = h.reshape(h.shape[0], -1) @ w3
        return -jnp.mean(jnp.sum(y * lib.nn.log_softmax(logits), axis=1))

    def step(w1: Any, w2: Any, w3: Any, x: Any, y: Any) -> Any:
        gradients = lib.grad(loss)((w1, w2, w3), x, y)
        return [w - 1e-3 * g for w, g in zip((w1, w2, w3), gradients, strict=True)]

    return step


def _gru(lib: ModuleType) -> Program:
    """The gradient of a scan of 100 steps of a gated recurrent unit."""
    jnp, nn = lib.numpy, lib.nn

    def loss(weights: Any, xs: Any) -> Any:
        w, u, v = weights

        def step(h: Any, x: Any) -> Any:
            gates = nn.sigmoid(x @ w + h @ u)
            update, reset = jnp.split(gates, 2, axis=-1)
            h = update * h + (1 - update) * jnp.tanh((reset * h) @ v)
            return h, h

        return jnp.mean(lib.lax.scan(step, jnp.zeros_like(xs[0]), xs)[1] ** 2)

    gradient = lib.grad(loss)
    return lambda w, u, v, xs: gradient((w, u, v), xs)


def _cholesky(lib: ModuleType) -> Program:
    return lambda a: lib.lax.linalg.cholesky(a @ a.T + 50 * lib.numpy.eye(a.shape[0]))


def _newton(lib: ModuleType) -> Program:
    def root(a: Any) -> Any:
        def unfinished(x: Any) -> Any:
            return abs(x * x - a) > 1e-5 * a

        return lib.lax.while_loop(unfinished, lambda x: 0.5 * (x + a / x), a)

    return lib.vmap(lambda a: root(1 + a * a))


def _key(lib: ModuleType, x: Any) -> Any:
    return lib.random.PRNGKey(x.ravel()[0].astype(int))


def _normal(lib: ModuleType) -> Program:
    return lambda x: x + lib.random.normal(_key(lib, x), x.shape)


def _permutation(lib: ModuleType) -> Program:
    return lambda x: lib.random.permutation(_key(lib, x), x)


def _lexsort(lib: ModuleType) -> Program:
    return lambda x: lib.numpy.lexsort(tuple(x))


def _zeta(lib: ModuleType) -> Program:
    return lambda x: lib.scipy.special.zeta(2 + x * x, 1.0)


# By name: the program, the shapes of its arguments, the goal of its cold first call.
_PROGRAMS: dict[str, tuple[Make, tuple[tuple[int, ...], ...], float | None]] = {
    "three-ops": (_three_ops, ((),), _SMALL),
    "selu-1e6": (_selu, ((1_000_000,),), _SMALL),
    "softmax-1024": (_softmax, ((1024, 1024),), _SMALL),
    "matmul-256": (_matmul, ((256, 256), (256, 256)), _SMALL),
    "logistic-128x100x10": (_logistic, ((128, 10), (128, 100, 10), (128, 100)), _MODEL),
    "mlp-step": (_mlp_step, ((784, 512), (512, 512), (512, 10), (128, 784), (128, 10)), _MODEL),
    "attention": (_attention, ((4, 8, 256, 64),) * 3, _MODEL),
    "transformer-block": (
        _transformer_block,
        (*((64, 64),) * 4, (64, 128), (128, 64), (16, 64)),
        _MODEL,
    ),
    "cnn-step": (
        _cnn_step,
        ((3, 3, 3, 16), (3, 3, 16, 32), (2048, 10), (16, 32, 32, 3), (16, 10)),
        _MODEL,
    ),
    "gru-gradient": (_gru, ((32, 64), (32, 64), (32, 32), (100, 32)), _MODEL),
    "cholesky-32": (_cholesky, ((32, 32),), _MODEL),
    "newton-while": (_newton, ((1000,),), _MODEL),
    "normal-1000x1000": (_normal, ((1000, 1000),), _MODEL),
    "permutation-60000": (_permutation, ((60_000,),), _MODEL),
    "lexsort-20-keys": (_lexsort, ((20, 1000),), None),
    "zeta": (_zeta, ((1000,),), None),
}


def names() -> list[str]:
    """Returns the names of the programs."""
    return list(_PROGRAMS)


# --- measuring ----------------------------------------------------------------------------------


def measure_first_calls(
    chosen: Iterable[str], states: Iterable[str] = STATES, rounds: int = 3
) -> list[Result]:
    """Returns medians of first calls, of axir and JAX in turn.

    Args:
        chosen: Names of programs.
        states: Which first calls: "cold", "first", "warm".
        rounds: How many processes each median rests on.
    """
    results = []
    for name in chosen:
        for state in states:
            ours, theirs = [], []
            with tempfile.TemporaryDirectory() as kept:
                if state == "warm":
                    _run_process(name, "axir", "warm", kept)
                for _ in range(rounds):
                    ours.append(_run_fresh(name, "axir", state, kept))
                    theirs.append(_run_fresh(name, "jax", state, kept))
            goal = _PROGRAMS[name][2] if state == "cold" else _WARM if state == "warm" else None
            (a, our_cpu), (b, their_cpu) = _medians(ours), _medians(theirs)
            results.append(Result(name, state, a, b, a / b, our_cpu, their_cpu, goal))
    return results


def _medians(times: list[tuple[float, float]]) -> list[float]:
    return [statistics.median(column) for column in zip(*times, strict=True)]


def _run_fresh(name: str, library: str, state: str, kept: str) -> tuple[float, float]:
    if state == "warm":
        return _run_process(name, library, state, kept)
    with tempfile.TemporaryDirectory() as empty:
        return _run_process(name, library, state, empty)


def _run_process(name: str, library: str, state: str, cache: str) -> tuple[float, float]:
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "AXIR_CACHE_DIR": cache}
    command = [sys.executable, os.path.abspath(__file__), "--child", library, state, name]
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    seconds, processors = output.stdout.split()[-2:]
    return float(seconds), float(processors)


def _processor_time() -> float:
    """Returns the seconds that this process, its children and theirs have computed."""
    total = time.process_time()
    for task in Path("/proc/self/task").glob("*/children"):
        for child in task.read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def _time_first_call(name: str, library: str, state: str) -> tuple[float, float]:
    sys.dont_write_bytecode = False  # as in `harness/session.py`
    lib = importlib.import_module(library)
    importlib.import_module(f"{library}.scipy.special")
    make, shapes, _ = _PROGRAMS[name]
    generator = np.random.default_rng(0)
    arguments = [
        lib.device_put(generator.normal(size=shape).astype(np.float32)) for shape in shapes
    ]
    if state != "first":
        lib.block_until_ready(lib.jit(lambda x: x * 3 - 1)(lib.device_put(np.ones(4, np.float32))))
    start, processors = time.perf_counter(), _processor_time()
    lib.block_until_ready(lib.jit(make(lib))(*arguments))
    return time.perf_counter() - start, _processor_time() - processors


def main() -> None:
    """Measures the programs named on the command line, or all, and prints a table."""
    parser = argparse.ArgumentParser(prog="first_calls", description=__doc__)
    parser.add_argument("names", nargs="*", default=["*"], help="programs, with wildcards")
    parser.add_argument("--states", default=",".join(STATES), help="of cold, first, warm")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=2, metavar=("LIBRARY", "STATE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(*_time_first_call(options.names[0], *options.child))
        return
    chosen = [name for name in _PROGRAMS if any(fnmatch.fnmatch(name, p) for p in options.names)]
    print(f"{'program':22}{'state':8}{'axir ms':>9}{'JAX ms':>9}{'ratio':>7}{'goal':>6} processors")
    for name in chosen:
        for r in measure_first_calls([name], options.states.split(","), options.rounds):
            goal = "" if r.goal is None else f"{r.goal:g}"
            figures = f"{r.ours * 1e3:9.0f}{r.theirs * 1e3:9.0f}{r.ratio:7.2f}{goal:>6}"
            processors = f"{r.our_processors * 1e3:9.0f}{r.their_processors * 1e3:9.0f}"
            print(f"{r.name:22}{r.state:8}{figures}{processors}", flush=True)


if __name__ == "__main__":
    main()
