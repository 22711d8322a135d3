"""The kernels that people publish: each compiled with the others, evaluated, and against NumPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.experimental import pallas as pl
from axir.experimental.pallas import tpu as pltpu
from axir.experimental.pallas import triton

GENERATOR = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return GENERATOR.standard_normal(shape).astype(np.float32)


def of(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    return axir.ShapeDtypeStruct(shape, dtype)


# Elementwise -------------------------------------------------------------------------------------


def add_vectors(x: Any, y: Any) -> Any:
    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + y_ref[...]

    return pl.pallas_call(kernel, of(x.shape))(x, y)


def iota(size: int) -> Any:
    def kernel(o_ref: Any) -> None:
        i = pl.program_id(0)
        o_ref[i] = i

    return pl.pallas_call(kernel, of((size,), "int32"), grid=(size,))()


def masked_add(x: Any, y: Any) -> Any:
    """Blocks that do not divide the arrays, by positions and masks."""
    block = 8

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        start = pl.program_id(0) * block
        mask = start + jnp.arange(block) < x_ref.shape[0]
        place = pl.ds(start, block)
        x = triton.load(x_ref.at[place], mask=mask, other=0.0)
        y = triton.load(y_ref.at[place], mask=mask, other=0.0)
        triton.store(o_ref.at[place], x + y, mask=mask)

    return pl.pallas_call(kernel, of(x.shape), grid=pl.cdiv(x.shape[0], block))(x, y)


# Rows --------------------------------------------------------------------------------------------


def softmax(x: Any) -> Any:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        e = jnp.exp(x_ref[...] - x_ref[...].max(axis=-1, keepdims=True))
        o_ref[...] = e / e.sum(axis=-1, keepdims=True)

    rows = pl.BlockSpec((2, x.shape[1]), lambda i: (i, 0))
    grid = (pl.cdiv(x.shape[0], 2),)
    return pl.pallas_call(kernel, of(x.shape), grid=grid, in_specs=[rows], out_specs=rows)(x)


def layer_norm_kernel(
    x_ref: Any, weight_ref: Any, bias_ref: Any, o_ref: Any, mean_ref: Any, scale_ref: Any
) -> None:
    x = x_ref[...]
    mean = x.mean()
    scale = lax.rsqrt(((x - mean) ** 2).mean() + 1e-5)
    o_ref[...] = (x - mean) * scale * weight_ref[...] + bias_ref[...]
    mean_ref[...] = mean
    scale_ref[...] = scale


def layer_norm_gradient_kernel(
    ct_ref: Any, x_ref: Any, weight_ref: Any, mean_ref: Any, scale_ref: Any,
    dx_ref: Any, dweight_ref: Any, dbias_ref: Any,
) -> None:  # fmt: skip
    """Sums over rows stand in blocks that all instances write."""

    @pl.when(pl.program_id(0) == 0)
    def start() -> None:
        dweight_ref[...] = jnp.zeros_like(dweight_ref)
        dbias_ref[...] = jnp.zeros_like(dbias_ref)

    ct, normed = ct_ref[...], (x_ref[...] - mean_ref[...]) * scale_ref[...]
    scaled = ct * weight_ref[...]
    dx_ref[...] = scale_ref[...] * (scaled - scaled.mean() - normed * (scaled * normed).mean())
    dweight_ref[...] += ct * normed
    dbias_ref[...] += ct


@axir.custom_vjp
def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    return layer_norm_forward(x, weight, bias)[0]


def layer_norm_forward(x: Any, weight: Any, bias: Any) -> Any:
    row = pl.BlockSpec((None, x.shape[1]), lambda i: (i, 0))
    whole = pl.BlockSpec((x.shape[1],), lambda i: (0,))
    number = pl.BlockSpec((None,), lambda i: (i,))
    out, mean, scale = pl.pallas_call(
        layer_norm_kernel, (of(x.shape), of(x.shape[:1]), of(x.shape[:1])), grid=(x.shape[0],),
        in_specs=[row, whole, whole], out_specs=(row, number, number),
    )(x, weight, bias)  # fmt: skip
    return out, (x, weight, mean, scale)


def layer_norm_backward(residuals: Any, ct: Any) -> Any:
    x, weight, mean, scale = residuals
    row = pl.BlockSpec((None, x.shape[1]), lambda i: (i, 0))
    whole = pl.BlockSpec((x.shape[1],), lambda i: (0,))
    number = pl.BlockSpec((None,), lambda i: (i,))
    return pl.pallas_call(
        layer_norm_gradient_kernel, (of(x.shape), of(weight.shape), of(weight.shape)),
        grid=(x.shape[0],), in_specs=[row, row, whole, number, number],
        out_specs=(row, whole, whole),
    )(ct, x, weight, mean, scale)  # fmt: skip


layer_norm.defvjp(layer_norm_forward, layer_norm_backward)


# Products ----------------------------------------------------------------------------------------


def matmul(x: Any, y: Any, activation: Any = lambda z: z, size: int = 8) -> Any:
    """Sums along the last axis of the grid in memory of the kernel's own."""

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any, sum_ref: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def start() -> None:
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def end() -> None:
            o_ref[...] = activation(sum_ref[...]).astype(o_ref.dtype)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=0,
        grid=(x.shape[0] // size, y.shape[1] // size, x.shape[1] // size),
        in_specs=[
            pl.BlockSpec((size, size), lambda i, j, k: (i, k)),
            pl.BlockSpec((size, size), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((size, size), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((size, size), jnp.float32)],
    )
    return pl.pallas_call(kernel, of((x.shape[0], y.shape[1])), grid_spec=spec)(x, y)


def matmul_by_loop(x: Any, y: Any, size: int = 8) -> Any:
    """Sums in a loop of each instance."""

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        def body(i: Any, total: Any) -> Any:
            place = pl.ds(i * size, size)
            return total + x_ref[:, place] @ y_ref[place, :]

        zero = jnp.zeros(o_ref.shape, jnp.float32)
        o_ref[...] = lax.fori_loop(0, x.shape[1] // size, body, zero)

    return pl.pallas_call(
        kernel, of((x.shape[0], y.shape[1])), grid=(x.shape[0] // size, y.shape[1] // size),
        in_specs=[
            pl.BlockSpec((size, x.shape[1]), lambda i, j: (i, 0)),
            pl.BlockSpec((x.shape[1], size), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((size, size), lambda i, j: (i, j)),
    )(x, y)  # fmt: skip


# Attention ---------------------------------------------------------------------------------------

BLOCK = 4


def attention_kernel(q_ref: Any, k_ref: Any, v_ref: Any, o_ref: Any, log_ref: Any) -> None:
    """One block of queries, over the blocks of keys up to it."""
    q, here = q_ref[...], pl.program_id(1)
    rows = here * BLOCK + jnp.arange(BLOCK)[:, None]

    def body(j: Any, carry: Any) -> Any:
        most, total, out = carry
        place = pl.ds(j * BLOCK, BLOCK)
        scores = q @ k_ref[place, :].T
        columns = j * BLOCK + jnp.arange(BLOCK)[None, :]
        scores = jnp.where(rows >= columns, scores, -1e30)
        now = jnp.maximum(most, scores.max(-1))
        weights = jnp.exp(scores - now[:, None])
        shrink = jnp.exp(most - now)
        return now, total * shrink + weights.sum(-1), out * shrink[:, None] + (
            weights @ v_ref[place, :])  # fmt: skip

    start = (jnp.full(BLOCK, -jnp.inf), jnp.zeros(BLOCK), jnp.zeros(q.shape))
    most, total, out = lax.fori_loop(0, here + 1, body, start)
    o_ref[...] = out / total[:, None]
    log_ref[...] = most + jnp.log(total)


def attention_keys_kernel(
    q_ref: Any, k_ref: Any, v_ref: Any, ct_ref: Any, log_ref: Any, delta_ref: Any,
    dk_ref: Any, dv_ref: Any,
) -> None:  # fmt: skip
    """The gradients of one block of keys and values, over the blocks of queries from it on."""
    k, v, here = k_ref[...], v_ref[...], pl.program_id(1)
    dk_ref[...] = jnp.zeros_like(dk_ref)
    dv_ref[...] = jnp.zeros_like(dv_ref)
    columns = here * BLOCK + jnp.arange(BLOCK)[None, :]

    @pl.loop(here, q_ref.shape[0] // BLOCK)
    def body(i: Any) -> None:
        place = pl.ds(i * BLOCK, BLOCK)
        q, ct = q_ref[place, :], ct_ref[place, :]
        rows = i * BLOCK + jnp.arange(BLOCK)[:, None]
        weights = jnp.exp(q @ k.T - log_ref[place][:, None])
        weights = jnp.where(rows >= columns, weights, 0.0)
        dv_ref[...] += weights.T @ ct
        dk_ref[...] += (weights * (ct @ v.T - delta_ref[place][:, None])).T @ q


def attention_queries_kernel(
    q_ref: Any, k_ref: Any, v_ref: Any, ct_ref: Any, log_ref: Any, delta_ref: Any, dq_ref: Any
) -> None:
    """The gradient of one block of queries."""
    q, ct, here = q_ref[...], ct_ref[...], pl.program_id(1)
    rows = here * BLOCK + jnp.arange(BLOCK)[:, None]

    def body(j: Any, dq: Any) -> Any:
        k, v = k_ref[pl.ds(j * BLOCK, BLOCK), :], v_ref[pl.ds(j * BLOCK, BLOCK), :]
        columns = j * BLOCK + jnp.arange(BLOCK)[None, :]
        weights = jnp.where(rows >= columns, jnp.exp(q @ k.T - log_ref[...][:, None]), 0.0)
        return dq + (weights * (ct @ v.T - delta_ref[...][:, None])) @ k

    dq_ref[...] = lax.fori_loop(0, here + 1, body, jnp.zeros(q.shape))


def attention_call(
    kernel: Any, out_shape: Any, blocked: Any, out_blocked: Any, *arrays: Any
) -> Any:
    def spec(is_blocked: bool, ndim: int) -> Any:
        def index_map(h: Any, i: Any) -> Any:
            return (h, i if is_blocked else 0, 0)[:ndim]

        length, width = arrays[0].shape[1:]
        return pl.BlockSpec((None, BLOCK if is_blocked else length, width)[:ndim], index_map)

    in_specs = [spec(b, x.ndim) for b, x in zip(blocked, arrays, strict=True)]
    out_specs = tuple(spec(True, len(t.shape)) for t in out_shape)
    grid = (arrays[0].shape[0], arrays[0].shape[1] // BLOCK)
    return pl.pallas_call(kernel, out_shape, grid=grid, in_specs=in_specs, out_specs=out_specs)(
        *arrays
    )


@axir.custom_vjp
def attention(q: Any, k: Any, v: Any) -> Any:
    return attention_forward(q, k, v)[0]


def attention_forward(q: Any, k: Any, v: Any) -> Any:
    out, log = attention_call(
        attention_kernel, (of(q.shape), of(q.shape[:2])), (True, False, False), True, q, k, v
    )
    return out, (q, k, v, out, log)


def attention_backward(residuals: Any, ct: Any) -> Any:
    q, k, v, out, log = residuals
    delta = (out * ct).sum(-1)
    arrays = (q, k, v, ct, log, delta)
    dk, dv = attention_call(
        attention_keys_kernel, (of(k.shape),) * 2, (False, True, True, False, False, False), True,
        *arrays,
    )  # fmt: skip
    (dq,) = attention_call(
        attention_queries_kernel, (of(q.shape),), (True, False, False, True, True, True), True,
        *arrays,
    )  # fmt: skip
    return dq, dk, dv


attention.defvjp(attention_forward, attention_backward)


def plain_attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("hqd,hkd->hqk", q, k)
    mask = jnp.tril(jnp.ones(scores.shape[1:], bool))
    return axir.nn.softmax(jnp.where(mask, scores, -1e30), axis=-1) @ v


def plain_layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    scale = lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
    return (x - mean) * scale * weight + bias


def gradient(f: Any) -> Any:
    return axir.grad(lambda xs, ct: (f(*xs) * ct).sum())


X, Y = normal(16, 24), normal(24, 8)
ROWS, WEIGHT, BIAS, CT = normal(5, 12), normal(12), normal(12), normal(5, 12)
Q, K, V, QCT = (normal(2, 12, 6) for _ in range(4))
VECTOR = normal(19)
E = np.exp(ROWS - ROWS.max(1, keepdims=True))

CASES: dict[str, tuple[Any, tuple[Any, ...], Any]] = {
    "add vectors": (add_vectors, (VECTOR, VECTOR), 2 * VECTOR),
    "iota": (functools.partial(iota, 7), (), np.arange(7)),
    "masked add": (masked_add, (VECTOR, VECTOR), 2 * VECTOR),
    "softmax": (softmax, (ROWS,), E / E.sum(1, keepdims=True)),
    "layer norm": (layer_norm, (ROWS, WEIGHT, BIAS), plain_layer_norm(ROWS, WEIGHT, BIAS)),
    "layer norm's gradient": (
        gradient(layer_norm), ((ROWS, WEIGHT, BIAS), CT),
        gradient(plain_layer_norm)((ROWS, WEIGHT, BIAS), CT),
    ),
    "matmul": (matmul, (X, Y), X @ Y),
    "fused activation": (
        functools.partial(matmul, activation=axir.nn.relu), (X, Y), np.maximum(X @ Y, 0)),
    "matmul by a loop": (matmul_by_loop, (X, Y), X @ Y),
    "attention": (attention, (Q, K, V), plain_attention(Q, K, V)),
    "attention's gradient": (
        gradient(attention), ((Q, K, V), QCT), gradient(plain_attention)((Q, K, V), QCT)),
    "matmul of a batch": (
        axir.vmap(matmul, in_axes=(0, None)), (np.stack([X, 2 * X, X + 1]), Y),
        np.stack([X, 2 * X, X + 1]) @ Y,
    ),
}  # fmt: skip


def agree(got: Any, want: Any) -> None:
    for x, y in zip(axir.tree.leaves(got), axir.tree.leaves(want), strict=True):
        np.testing.assert_allclose(x, y, rtol=3e-5, atol=3e-5)


@pytest.fixture(scope="module")
def compiled() -> dict[str, Any]:
    """Results of all kernels from one program."""

    def run(arguments: Any) -> list[Any]:
        return [f(*xs) for (f, _, _), xs in zip(CASES.values(), arguments, strict=True)]

    results = axir.jit(run)([xs for _, xs, _ in CASES.values()])
    return dict(zip(CASES, results, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_compiled(name: str, compiled: dict[str, Any]) -> None:
    agree(compiled[name], CASES[name][2])


@pytest.mark.parametrize("name", CASES)
def test_evaluated(name: str) -> None:
    function, arguments, wanted = CASES[name]
    with axir.disable_jit():
        agree(function(*arguments), wanted)
