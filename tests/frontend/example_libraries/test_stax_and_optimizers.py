"""Layers and optimizers: numbers as JAX's libraries give them from equal keys."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest
from jax.example_libraries import optimizers as jax_optimizers
from jax.example_libraries import stax as jax_stax

import axir
import axir.numpy as jnp
from axir.errors import ParameterError, TreeError
from axir.example_libraries import optimizers, stax
from axir.experimental import optimizers as old_optimizers
from axir.experimental import optix
from axir.experimental import stax as old_stax

IMAGES = np.random.default_rng(0).standard_normal((2, 8, 8, 1)).astype(np.float32)


def network(library: Any) -> Any:
    s = library
    block = s.parallel(s.Identity, s.serial(s.Conv(3, (1, 1)), s.Gelu))
    return s.serial(
        s.Conv(3, (3, 3), padding="SAME"), s.BatchNorm(), s.Relu,
        s.AvgPool((2, 2)), s.MaxPool((2, 2), (2, 2), "SAME"), s.SumPool((1, 1), spec="NHWC"),
        s.FanOut(2), block, s.FanInConcat(), s.FanOut(2), s.FanInSum,
        s.ConvTranspose(2, (2, 2), (2, 2)), s.Dropout(0.7), s.Flatten,
        s.shape_dependent(lambda shape: s.Dense(shape[-1] // 32)), s.LogSoftmax,
    )  # fmt: skip


def test_a_network() -> None:
    init_fun, apply_fun = network(stax)
    shape, params = init_fun(axir.random.PRNGKey(1), (-1, 8, 8, 1))
    assert shape == (-1, 4)
    with jax.threefry_partitionable(False):
        their_init, their_apply = network(jax_stax)
        _, theirs = their_init(jax.random.PRNGKey(1), (2, 8, 8, 1))
        expected = their_apply(theirs, IMAGES, rng=jax.random.PRNGKey(2))
    ours = axir.tree.leaves(params)
    for x, y in zip(ours, jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)
    found = apply_fun(params, IMAGES, rng=axir.random.PRNGKey(2))
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("name", "Tanh Exp Softmax Softplus Sigmoid Elu LeakyRelu Selu".split())
def test_elementwise_layers(name: str) -> None:
    (init_fun, apply_fun), (_, theirs) = getattr(stax, name), getattr(jax_stax, name)
    assert init_fun(None, (3, 2)) == ((3, 2), ())
    np.testing.assert_allclose(apply_fun((), IMAGES), theirs((), IMAGES), rtol=2e-6)


def test_shapes_of_other_layers() -> None:
    key = axir.random.key(0)
    layers = {
        (2, 4, 5): stax.Conv1DTranspose(5, (2,), (2,)),
        (4, 6, 3): stax.BatchNorm(axis=(0, 1), center=False),
        (2, 5, 3): stax.GeneralConv(("NCH", "OIH", "NCH"), 5, (2,)),
    }
    inputs = {(2, 4, 5): (2, 2, 3), (4, 6, 3): (4, 6, 3), (2, 5, 3): (2, 2, 4)}
    for expected, (init_fun, apply_fun) in layers.items():
        shape, params = init_fun(key, inputs[expected])
        assert shape == apply_fun(params, jnp.ones(inputs[expected])).shape == expected
    with pytest.raises(ParameterError, match="Dropout: the layer needs random numbers"):
        stax.Dropout(0.5).apply_fun((), jnp.ones(2))
    assert stax.Dropout(0.5, mode="test").apply_fun((), jnp.ones(2), rng=key).tolist() == [1, 1]


OPTIMIZERS: dict[str, tuple[Any, ...]] = {
    "sgd": (0.1,), "momentum": (0.1, 0.9), "nesterov": (0.1, 0.9), "adagrad": (0.1,),
    "rmsprop": (0.1,), "rmsprop_momentum": (0.1,), "adam": (0.1,), "adamax": (0.1,), "sm3": (0.1,),
}  # fmt: skip
START = {"a": np.float32([1, 2, 3]), "b": np.float32([[1, -1], [2, 0.5]]), "c": np.float32(2)}


def descend(library: Any, trees: Any, name: str) -> Any:
    init_fun, update_fun, get_params = getattr(library, name)(*OPTIMIZERS[name])
    state = init_fun(START)
    for step in range(4):
        gradients = trees.map(lambda x: x * 0.5 + np.float32(0.1), get_params(state))
        state = update_fun(step, gradients, state)
    return get_params(state)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str) -> None:
    ours, theirs = descend(optimizers, axir.tree, name), descend(jax_optimizers, jax.tree, name)
    for key, value in theirs.items():
        np.testing.assert_allclose(ours[key], value, rtol=2e-6)


def test_a_compiled_step_with_a_schedule() -> None:
    opt = optimizers.momentum(optimizers.piecewise_constant([1], [0.5, 0.25]), 0.0)
    step = axir.jit(lambda i, s: opt.update_fn(i, opt.params_fn(s), s))
    state = opt.init_fn([jnp.ones(2)])
    for i in range(3):
        state = step(i, state)
    assert opt.params_fn(state)[0].tolist() == [0.5 * 0.5 * 0.75] * 2


def test_states_as_trees() -> None:
    opt = optimizers.sm3(0.1)
    state = opt.init_fn(START)
    marked = optimizers.unpack_optimizer_state(state)
    assert set(marked) == {"a", "b", "c"}
    again = opt.params_fn(optimizers.pack_optimizer_state(marked))
    assert axir.tree.all(axir.tree.map(lambda x, y: bool((x == y).all()), again, START))
    with pytest.raises(TreeError, match="a leaf is of type 'float', no JoinPoint"):
        optimizers.pack_optimizer_state([1.0])
    with pytest.raises(TreeError, match="The gradients have the structure"):
        opt.update_fn(0, {"a": START["a"]}, state)
    changing = optimizers.optimizer(lambda: (lambda x: x, lambda i, g, x: (x, x), lambda x: x))()
    with pytest.raises(TreeError, match="was given a state of structure"):
        changing.update_fn(0, [1.0], changing.init_fn([1.0]))


@pytest.mark.parametrize("step", [0, 3, 20])
def test_schedules(step: int) -> None:
    calls = {
        "constant": (0.3,), "exponential_decay": (1.0, 5, 0.5),
        "polynomial_decay": (1.0, 10, 0.1, 2.0),
        "inverse_time_decay": (1.0, 2, 0.5, True), "piecewise_constant": ([2, 5], [1.0, 0.5, 0.1]),
    }  # fmt: skip
    for name, arguments in calls.items():
        ours, theirs = (getattr(m, name)(*arguments)(step) for m in (optimizers, jax_optimizers))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_bad_schedules() -> None:
    with pytest.raises(ParameterError, match="boundaries of shape .* do not fit together"):
        optimizers.piecewise_constant([1, 2], [1.0])
    with pytest.raises(ParameterError, match="a step size is a number or a function of the step"):
        optimizers.sgd(jnp.ones(2))


def test_names_of_2020() -> None:
    assert old_stax.Dense is stax.Dense
    assert old_optimizers.adam is optimizers.adam
    products = axir.experimental.vectorize.vectorize("(n,m),(m)->(n)")(jnp.dot)
    assert products(jnp.ones((2, 3)), jnp.ones((5, 3))).shape == (5, 2)


@pytest.mark.parametrize(
    ("transformation", "optimizer"),
    [
        (optix.sgd(0.1), optimizers.sgd(0.1)),
        (optix.sgd(0.1, 0.9), optimizers.momentum(0.1, 0.9)),
        (optix.sgd(0.1, 0.9, nesterov=True), optimizers.nesterov(0.1, 0.9)),
        (optix.adam(0.1), optimizers.adam(0.1)),
        (optix.rmsprop(0.1), optimizers.rmsprop(0.1)),
    ],
)
def test_optix(transformation: Any, optimizer: Any) -> None:
    params = axir.tree.map(jnp.asarray, START)
    state, expected = transformation.init(params), optimizer.init_fn(params)
    for step in range(3):
        gradients = axir.tree.map(lambda x: 0.5 * x + 0.1, params)
        updates, state = transformation.update(gradients, state)
        params = optix.apply_updates(params, updates)
        expected = optimizer.update_fn(step, gradients, expected)
    for name, value in optimizer.params_fn(expected).items():
        np.testing.assert_allclose(params[name], value, rtol=1e-5)


def test_transformations_of_gradients() -> None:
    gradients = [jnp.array([3.0, 4.0])]

    def updated(transformation: optix.GradientTransformation, times: int = 1) -> Any:
        state = transformation.init(gradients)
        for _ in range(times):
            found, state = transformation.update(gradients, state)
        return found[0].tolist()

    assert updated(optix.clip(3.5)) == [3.0, 3.5]
    np.testing.assert_allclose(updated(optix.clip_by_global_norm(1.0)), [0.6, 0.8], rtol=1e-6)
    assert updated(optix.apply_every(2)) == [0.0, 0.0]
    assert updated(optix.apply_every(2), 2) == [6.0, 8.0]
    assert updated(optix.scale_by_schedule(lambda count: 10.0**count), 2) == [30.0, 40.0]
    np.testing.assert_allclose(updated(optix.scale_by_stddev(0.0, 1.0)), [3.0, 4.0])
    first, second = (updated(optix.noisy_sgd(1.0, seed=s)) for s in (0, 1))
    assert first != second
    np.testing.assert_allclose(first, [-3.0, -4.0], atol=0.1)
    assert re.match("ScaleState", repr(optix.scale(1.0).init(gradients)))
