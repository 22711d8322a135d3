"""Part of the report: programs of the benchmark with gradients, beside the evaluator's values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import axir
import axir.numpy as jnp
from axir.runtime import Device
from benchmarks.programs import PROGRAMS

from .items import Item
from .rows import Row

NAMES = (
    "selu-odd", "gelu-rows", "softmax-odd", "layer-norm-odd", "batch-norm", "gather-rows",
    "scatter-add-rows", "segment-sum", "take-along-axis", "concatenate", "pad", "strided-slices",
    "laplacian", "bilinear-sampling", "cumsum-of-rows", "average-pool", "max-pool-3x3",
    "convolution-odd", "convolution-strided", "convolution-depthwise", "matmul-odd", "matmul-deep",
    "matmul-wide", "batched-matmul-5-of-33", "einsum-scores", "logsumexp", "triangular-solve",
    "log-determinant-gradient", "cholesky-32x32", "fft-rows", "pairwise-distances",
    "mlp-training-step", "cnn-training-step", "resnet-block", "attention-odd", "transformer-block",
    "language-model-step", "vae-step", "mixture-of-experts", "rnn", "lstm-100x16x64", "gru",
    "kalman-filter-100x16x8", "scan-products", "lorenz-rk4", "gaussian-process-gradient",
)  # fmt: skip
_TOLERANCES = {"float64": 1e-8, "complex128": 1e-8, "float16": 2e-2, "bfloat16": 6e-2}
_USUAL = 1e-3
_FEW = 6


def programs(is_tiny: bool) -> Iterator[Item]:
    """Yields programs; a few of them, if they are to be tiny."""
    for name in NAMES[:: len(NAMES) // _FEW] if is_tiny else NAMES:
        yield Item(name, functools.partial(_run, name), functools.partial(_prepare, name))


def _with_gradients(function: Callable[..., Any], arguments: list[Any]) -> Callable[..., Any]:
    """Returns a function's results, and the gradients of the mean of their squares."""
    flat, tree = axir.tree_util.tree_flatten(arguments)
    numbers = [n for n, x in enumerate(flat) if np.asarray(x).dtype.kind in "fV"]

    def loss(chosen: list[Any], given: list[Any]) -> tuple[Any, Any]:
        merged = list(given)
        for number, value in zip(numbers, chosen, strict=True):
            merged[number] = value
        results = function(*axir.tree_util.tree_unflatten(tree, merged))
        total = jnp.zeros((), np.float32)
        for x in axir.tree_util.tree_leaves(results):
            if jnp.issubdtype(x.dtype, jnp.inexact):
                total += jnp.mean(jnp.abs(x).astype(np.float32) ** 2)
        return total, results

    def both(*given: Any) -> Any:
        leaves = axir.tree_util.tree_leaves(given)
        chosen = [leaves[number] for number in numbers]
        return axir.value_and_grad(loss, has_aux=True)(chosen, leaves)

    return both


def _built(name: str) -> tuple[Callable[..., Any], list[Any]]:
    program = PROGRAMS[name]
    axir.config.update("jax_enable_x64", program.x64)
    function, arguments = program.build(axir, program.tiny)
    return _with_gradients(function, arguments), arguments


def _prepare(name: str, device: Device) -> None:
    function, arguments = _built(name)
    axir.jit(function, device=device).lower(*arguments).compile()


def _run(name: str, device: Device) -> list[Row]:
    function, arguments = _built(name)
    leaves = axir.tree_util.tree_leaves
    found = leaves(axir.jit(function, device=device)(*arguments))
    wanted = leaves(function(*map(_arrays, arguments)))
    worst, text = 0.0, ""
    for number, (got, want) in enumerate(zip(found, wanted, strict=True)):
        got, want = np.asarray(got), np.asarray(want)
        allowed = PROGRAMS[name].tolerance or _TOLERANCES.get(str(want.dtype), _USUAL)
        error = _error(got, want) / allowed
        if not error <= worst:
            worst, text = error, f"result {number}, {want.dtype}{list(want.shape)}"
    verdict = "right" if worst <= 1 else "wrong"
    return [Row(name, verdict, f"largest error {worst:.2g} of what is allowed {text}".strip())]


def _arrays(argument: Any) -> Any:
    return axir.tree_util.tree_map(jnp.asarray, argument)


def _error(got: np.ndarray, want: np.ndarray) -> float:
    """Returns the largest error as a part of the largest value."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    if not want.size:
        return 0.0
    kind = np.complex128 if np.iscomplexobj(want) else np.float64
    got, want = got.astype(kind), want.astype(kind)
    if not np.array_equal(np.isfinite(got), np.isfinite(want)):
        return float("inf")
    finite = np.isfinite(want)
    scale = np.abs(want[finite]).max(initial=0.0) or 1.0
    return float(np.abs(got[finite] - want[finite]).max(initial=0.0) / scale)
