"""Whole programs on the devices of a mesh: training steps have the same results as on one device.

The number and kinds of collectives are as an engineer would write them by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from support.partitions import collectives_of, on_one_device

import axir
import axir.numpy as jnp
from axir import lax, nn
from axir.dialect.core.array import as_array
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import set_executor
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.meshes.layouts import Layout, MeshAxes
from axir.dialect.program.meshes.partitioning import Partitioned
from axir.passes.partition.layout_text import communications
from axir.passes.partition.partition import partition_function

DATA: MeshAxes = (("data", 4),)
BOTH: MeshAxes = (("data", 2), ("model", 2))


@pytest.fixture(autouse=True)
def _evaluated() -> Iterator[None]:
    executor = set_executor(None)
    yield
    set_executor(executor)


def numbers(*shape: int) -> np.ndarray:
    generator = np.random.default_rng(shape)
    return (0.3 * generator.standard_normal(shape)).astype(np.float32)


def whole(x: Any) -> Layout:
    return ((),) * np.ndim(x)


def rows(x: Any) -> Layout:
    """Cut along the first dimension."""
    return (("data",), *((),) * (np.ndim(x) - 1))


def partitioned(
    step: Callable[..., Any],
    args: Sequence[np.ndarray],
    axes: MeshAxes,
    ins: Sequence[Layout],
    outs: Sequence[Layout | None] | None = None,
) -> Partitioned:
    """Partitions a function, and compares the devices' results with the function's."""
    types = [ShapedArray(x.shape, x.dtype) for x in args]
    function = trace_function(lambda *xs: axir.tree.leaves(step(*xs)), types)
    values = [as_array(x) for x in (*args, *function.captured)]
    layouts = [*ins, *(whole(x) for x in function.captured)]
    parts = partition_function(function, axes, layouts, outs)
    found = on_one_device(parts, axes, values)
    for got, want in zip(found, function.interpret(values), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-4, atol=2e-5)
    return parts


def training(loss: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A step of gradient descent in the first arguments of a loss."""

    def step(*args: Any) -> list[Any]:
        value, gradients = axir.value_and_grad(loss, tuple(range(count)))(*args)
        return [value, *(p - 0.1 * g for p, g in zip(args, gradients, strict=False))]

    return step


# A network of two layers --------------------------------------------------------------------------

MLP = [numbers(6, 8), numbers(8), numbers(8, 4), numbers(64, 6), numbers(64, 4)]


def mlp(w1: Any, b1: Any, w2: Any, x: Any, y: Any) -> Any:
    return jnp.mean((jnp.tanh(x @ w1 + b1) @ w2 - y) ** 2)


def test_data_parallel_training_sums_each_gradient_once() -> None:
    ins = [*map(whole, MLP[:3]), *map(rows, MLP[3:])]
    parts = partitioned(training(mlp, 3), MLP, DATA, ins)
    assert collectives_of(parts.local) == Counter(psum=4)  # the loss and three gradients
    assert (parts.notes, parts.out_layouts[1:]) == ((), tuple(map(whole, MLP[:3])))


def test_tensor_parallel_training() -> None:
    ins: list[Layout] = [((), ("model",)), (("model",),), (("model",), ()), *map(rows, MLP[3:])]
    parts = partitioned(training(mlp, 3), MLP, BOTH, ins)
    # One more than without: the sum over the features that are divided among devices.
    assert collectives_of(parts.local) == Counter(psum=5)
    assert parts.out_layouts == ((), *ins[:3])


def test_parameters_in_parts_are_gathered_and_their_gradients_scattered() -> None:
    ins: list[Layout] = [((), ("data",)), (("data",),), (("data",), ()), *map(rows, MLP[3:])]
    parts = partitioned(training(mlp, 3), MLP, DATA, ins, [(), *ins[:3]])
    found = collectives_of(parts.local)
    assert (found["reduce_scatter"], found["psum"]) == (3, 1)
    assert 0 < found["all_gather"] <= 4


def test_a_nested_jit_and_rules_of_the_users_own() -> None:
    @axir.custom_vjp
    def scaled(x: Any) -> Any:
        return 2 * x

    scaled.defvjp(lambda x: (2 * x, None), lambda _, ct: (2 * ct,))
    layer = axir.jit(lambda w, x: nn.relu(scaled(x @ w)))
    remembered = axir.checkpoint(lambda w, x: jnp.sin(layer(w, x)))

    def loss(w: Any, x: Any) -> Any:
        return jnp.sum(remembered(w, layer(jnp.eye(6), x)) ** 2)

    args = [numbers(6, 6), numbers(64, 6)]
    parts = partitioned(training(loss, 1), args, DATA, [whole(args[0]), rows(args[1])])
    assert collectives_of(parts.local) == Counter(psum=2)


# A transformer ------------------------------------------------------------------------------------

WIDTH, LENGTH, HEADS, WORDS = 64, 4, 2, 12
TRANSFORMER = [
    numbers(WORDS, WIDTH), *[numbers(WIDTH, HEADS, 32)] * 3, numbers(HEADS, 32, WIDTH),
    numbers(WIDTH, 128), numbers(128, WIDTH), numbers(WIDTH), numbers(WIDTH, WORDS),
    *np.random.default_rng(0).integers(0, WORDS, (2, 64, LENGTH), np.int32),
]  # fmt: skip


def transformer(
    words: Any, q: Any, k: Any, v: Any, o: Any, up: Any, down: Any, scale: Any, out: Any,
    tokens: Any, targets: Any,
) -> Any:  # fmt: skip
    def normed(x: Any) -> Any:
        centered = x - jnp.mean(x, -1, keepdims=True)
        return centered / jnp.sqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * scale

    x = words[tokens]
    queries, keys, values = (jnp.einsum("btd,dhk->bhtk", normed(x), w) for w in (q, k, v))
    scores = jnp.einsum("bhtk,bhsk->bhts", queries, keys) / 6
    causal = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    weights = nn.softmax(jnp.where(causal, scores, -1e9), -1)
    x += jnp.einsum("bhtk,hkd->btd", jnp.einsum("bhts,bhsk->bhtk", weights, values), o)
    x += nn.gelu(normed(x) @ up) @ down
    logs = nn.log_softmax(x @ out, -1)
    return -jnp.mean(jnp.take_along_axis(logs, targets[..., None], -1))


def test_a_transformer_in_data_parallel() -> None:
    ins = [*map(whole, TRANSFORMER[:9]), *map(rows, TRANSFORMER[9:])]
    parts = partitioned(training(transformer, 9), TRANSFORMER, DATA, ins)
    # The loss and nine gradients; the scale's gradient is a sum of four parts.
    assert collectives_of(parts.local) == Counter(psum=10)
    assert not parts.notes


def test_a_transformer_in_tensor_parallel() -> None:
    head: Layout = ((), ("model",), ())
    ins: list[Layout] = [
        whole(TRANSFORMER[0]), head, head, head, (("model",), (), ()), ((), ("model",)),
        (("model",), ()), whole(TRANSFORMER[7]), whole(TRANSFORMER[8]),
        *map(rows, TRANSFORMER[9:]),
    ]  # fmt: skip
    parts = partitioned(training(transformer, 9), TRANSFORMER, BOTH, ins)
    assert collectives_of(parts.local).keys() == {"psum"}
    assert parts.out_layouts[1:] == tuple(ins[:9])


# Loops, convolutions, random numbers ------------------------------------------------------------


def test_a_recurrent_network() -> None:
    def loss(w: Any, u: Any, xs: Any, y: Any) -> Any:
        def advance(h: Any, x: Any) -> tuple[Any, Any]:
            h = jnp.tanh(x @ w + h @ u)
            return h, h

        h, hs = lax.scan(advance, jnp.zeros((xs.shape[1], u.shape[0])), xs)
        return jnp.mean((h - y) ** 2) + jnp.mean(hs)

    args = [numbers(6, 8), numbers(8, 8), numbers(5, 64, 6), numbers(64, 8)]
    ins: list[Layout] = [whole(args[0]), whole(args[1]), ((), ("data",), ()), rows(args[3])]
    parts = partitioned(training(loss, 2), args, DATA, ins)
    # Gradients are summed once, behind the loop.
    assert [c.times for c in communications(parts.local, DATA)] == [1, 1, 1]
    assert collectives_of(parts.local) == Counter(psum=3)


def test_a_convolutional_network() -> None:
    def loss(w1: Any, w2: Any, w3: Any, x: Any, y: Any) -> Any:
        for w in (w1, w2):
            names = ("NHWC", "HWIO", "NHWC")
            x = nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=names))
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return jnp.mean((x.reshape(x.shape[0], -1) @ w3 - y) ** 2)

    args = [numbers(3, 3, 2, 4), numbers(3, 3, 4, 4), numbers(16, 3), numbers(64, 8, 8, 2)]
    args.append(numbers(64, 3))
    ins = [*map(whole, args[:3]), *map(rows, args[3:])]
    parts = partitioned(training(loss, 3), args, DATA, ins)
    assert collectives_of(parts.local) == Counter(psum=4)


def test_what_is_made_from_nothing_is_made_in_parts() -> None:
    def init() -> tuple[Any, ...]:
        drawn = axir.random.normal(axir.random.key(0), (8, 6))
        return drawn, jnp.zeros((8, 3)) + 1, jnp.arange(24.0).reshape(8, 3)

    outs: list[Layout] = [(("data",), ("model",)), (("model",), ()), (("data", "model"), ())]
    parts = partitioned(init, [], BOTH, [], outs)
    assert not collectives_of(parts.local)


def test_loops_that_end_by_values_and_choices() -> None:
    def search(x: Any, target: Any) -> tuple[Any, ...]:
        found = lax.while_loop(
            lambda c: jnp.sum(c[1]) < target, lambda c: (c[0] + 1, 1.1 * c[1] + x), (0, x)
        )
        chosen = lax.cond(
            jnp.max(x) > 0, lambda v: jnp.sort(v, 1), lambda v: v - jnp.mean(v), found[1]
        )
        return *found, chosen

    x = np.abs(numbers(8, 3))
    parts = partitioned(search, [x, np.float32(40)], DATA, [rows(x), ()])
    assert collectives_of(parts.local) == Counter(psum=2, pmax=1)
    assert parts.out_layouts == ((), rows(x), rows(x))


def test_a_batch_of_matrices() -> None:
    def solve(a: Any, b: Any) -> tuple[Any, ...]:
        symmetric = a @ jnp.swapaxes(a, 1, 2) + jnp.eye(3)
        return jnp.linalg.cholesky(symmetric), jnp.linalg.eigvalsh(symmetric), jnp.fft.rfft(b)

    args = [numbers(8, 3, 3), numbers(8, 3)]
    parts = partitioned(solve, args, DATA, list(map(rows, args)))
    assert not collectives_of(parts.local)
    assert not parts.notes


def test_gamma_numbers_are_drawn_where_their_parameters_lie() -> None:
    a = np.linspace(0.5, 4, 64, dtype=np.float32)
    draw = axir.jit(lambda a: axir.random.gamma(axir.random.key(3), a))
    parts = partitioned(draw, [a], DATA, [rows(a)])
    assert tuple(parts.out_layouts) == ((("data",),),)
    # Of its two loops, which repeat until all numbers are accepted.
    assert collectives_of(parts.local) == {"pmax": 2}
