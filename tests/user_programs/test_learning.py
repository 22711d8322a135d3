"""Learning rules written by hand: adaptive rates, curvature, learning to learn, classics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.optimize
from scipy.special import expit
from support.program_cases import Program, normal, numerical_gradient, over

import axir as jax
import axir.numpy as jnp
from axir import lax

FEATURES, WEIGHTS = normal(12, 3), normal(3, seed=1)
TARGETS = (FEATURES @ WEIGHTS + normal(12, scale=0.3)).astype(np.float32)
SIDES = (normal(12) > 0).astype(np.float32)


# --- Adam on a tree of dataclasses, with the rate on a schedule


@jax.tree_util.register_dataclass
@dataclass
class Affine:
    weight: jax.Array
    bias: jax.Array

    def __call__(self, x):
        return x @ self.weight + self.bias


class AdamState(NamedTuple):
    step: jax.Array
    first: Affine
    second: Affine


def adam(weight, bias, x, y):
    def loss(model):
        return jnp.mean((model(x) - y) ** 2)

    def update(carry, _):
        model, state = carry
        grads = jax.grad(loss)(model)
        step = state.step + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.first, grads)
        second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state.second, grads)
        rate = 0.1 * jnp.cos(step / 20)

        def move(p, m, v):
            return p - rate * (m / (1 - 0.9**step)) / (jnp.sqrt(v / (1 - 0.99**step)) + 1e-8)

        return (jax.tree.map(move, model, first, second), AdamState(step, first, second)), None

    model = Affine(weight, bias)
    zeros = jax.tree.map(jnp.zeros_like, model)
    state = AdamState(jnp.array(0), zeros, zeros)
    (model, _), _ = lax.scan(update, (model, state), None, length=12)
    return {"weight": model.weight, "bias": model.bias}


def adam_numpy(weight, bias, x, y):
    p = np.append(weight, bias)
    design = np.hstack([x, np.ones((len(x), 1))])
    m, v = np.zeros_like(p), np.zeros_like(p)
    for step in range(1, 13):
        g = 2 * design.T @ (design @ p - y) / len(y)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        unbiased = m / (1 - 0.9**step), v / (1 - 0.99**step)
        p = p - 0.1 * np.cos(step / 20) * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
    return {"weight": p[:3], "bias": p[3]}


def many_momenta(w, rates, x, y):
    """Optimizers that differ in their rate, all at once."""

    def train(rate):
        def step(state, _):
            w, velocity = state
            velocity = 0.8 * velocity - rate * jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
            return (w + velocity, velocity), jnp.mean((x @ w - y) ** 2)

        (w_end, _), losses = lax.scan(step, (w, jnp.zeros_like(w)), None, length=10)
        return w_end, losses

    ends, losses = jax.vmap(train)(rates)
    return ends[jnp.argmin(losses[:, -1])], losses


def many_momenta_numpy(w, rates, x, y):
    ends, losses = [], []
    for rate in rates:
        p, velocity, path = w, 0 * w, []
        for _ in range(10):
            path.append(((x @ p - y) ** 2).mean())
            velocity = 0.8 * velocity - rate * 2 * x.T @ (x @ p - y) / len(y)
            p = p + velocity
        ends.append(p)
        losses.append(path)
    return ends[np.argmin(np.array(losses)[:, -1])], np.array(losses)


# --- models with a solution in closed form or by few steps


def ridge_regression(x, y, penalty):
    """The choice of the penalty by its derivative: error on held-out data by the fit on others."""

    def held_out_error(log_penalty):
        gram = x[:8].T @ x[:8] + jnp.exp(log_penalty) * jnp.eye(3)
        w = jnp.linalg.solve(gram, x[:8].T @ y[:8])
        return jnp.mean((x[8:] @ w - y[8:]) ** 2), w

    (error, w), slope = jax.value_and_grad(held_out_error, has_aux=True)(penalty)
    return w, error, slope


def ridge_regression_numpy(x, y, penalty):
    def fit(log_penalty):
        rows = np.vstack([x[:8], np.exp(log_penalty / 2) * np.eye(3)])
        return np.linalg.lstsq(rows, np.append(y[:8], np.zeros(3)), rcond=None)[0]

    def error(log_penalty):
        return ((x[8:] @ fit(log_penalty) - y[8:]) ** 2).mean()

    return fit(penalty), error(penalty), numerical_gradient(error, penalty)


def logistic_regression(x, labels):
    """Iteratively reweighted least squares, until the step is small."""

    def unfinished(state):
        return (jnp.linalg.norm(state[1]) > 1e-5) & (state[2] < 20)

    def step(state):
        w, _, count = state
        chance = jax.nn.sigmoid(x @ w)
        curvature = (x.T * (chance * (1 - chance))) @ x + 0.1 * jnp.eye(3)
        change = jnp.linalg.solve(curvature, x.T @ (labels - chance) - 0.1 * w)
        return w + change, change, count + 1

    return lax.while_loop(unfinished, step, (jnp.zeros(3), jnp.ones(3), 0))[0]


def logistic_regression_numpy(x, labels):
    def loss(w):
        margins = np.where(labels == 1, x @ w, -x @ w)
        return np.log1p(np.exp(-margins)).sum() + 0.05 * w @ w

    def slope(w):
        return x.T @ (expit(x @ w) - labels) + 0.1 * w

    return scipy.optimize.minimize(loss, np.zeros(3), jac=slope, tol=1e-10).x


def perceptron(x, labels):
    """Mistakes in order, each with its update: a loop over examples in a loop over epochs."""
    signs = 2 * labels - 1

    def example(w, entry):
        row, sign = entry
        is_wrong = sign * (row @ w) <= 0
        return jnp.where(is_wrong, w + sign * row, w), is_wrong

    def epoch(_, carry):
        w, mistakes = carry
        w, wrong = lax.scan(example, w, (x, signs))
        return w, mistakes + jnp.sum(wrong)

    return lax.fori_loop(0, 3, epoch, (jnp.zeros(3), 0))


def perceptron_numpy(x, labels):
    w, mistakes = np.zeros(3), 0
    for _ in range(3):
        for row, label in zip(x, labels, strict=True):
            if (2 * label - 1) * (row @ w) <= 0:
                w, mistakes = w + (2 * label - 1) * row, mistakes + 1
    return w, mistakes


# --- curvature


def hessian_products(w, v, x, y):
    """Forward over reverse, reverse over reverse, and the matrix itself."""

    def loss(w):
        return jnp.sum(jnp.logaddexp(0.0, -(x @ jnp.sin(w)) * y)) + 0.1 * jnp.sum(w**4)

    forward = jax.jvp(jax.grad(loss), (w,), (v,))[1]
    reverse = jax.grad(lambda w: jax.grad(loss)(w) @ v)(w)
    return forward, reverse, jax.hessian(loss)(w) @ v


def hessian_products_numpy(w, v, x, y):
    margins = (x @ np.sin(w)) * y
    inner = x * y[:, None]
    by_sine = -expit(-margins) @ inner
    curvature = (inner.T * (expit(margins) * expit(-margins))) @ inner
    hessian = np.cos(w)[:, None] * curvature * np.cos(w)
    hessian += np.diag(-np.sin(w) * by_sine + 1.2 * w**2)
    return hessian @ v, hessian @ v, hessian @ v


def natural_gradient(w, x, labels):
    """Fisher's matrix is applied, never formed: conjugate gradients on products of Jacobians."""

    def logits(w):
        return x @ w

    def fisher(v):
        _, change = jax.jvp(logits, (w,), (v,))
        chance = jax.nn.sigmoid(logits(w))
        return jax.vjp(logits, w)[1](chance * (1 - chance) * change)[0] + 0.1 * v

    grads = jax.grad(lambda w: jnp.sum(jnp.logaddexp(0.0, x @ w) - labels * (x @ w)))(w)

    def improve(state):
        step, residual, direction, size = state
        image = fisher(direction)
        rate = size / (direction @ image)
        residual = residual - rate * image
        new_size = residual @ residual
        step = step + rate * direction
        return step, residual, residual + new_size / size * direction, new_size

    start = (jnp.zeros(3), grads, grads, grads @ grads)
    return w - lax.while_loop(lambda state: state[3] > 1e-10, improve, start)[0]


def natural_gradient_numpy(w, x, labels):
    chance = expit(x @ w)
    fisher = (x.T * (chance * (1 - chance))) @ x + 0.1 * np.eye(3)
    return w - np.linalg.solve(fisher, x.T @ (chance - labels))


# --- learning to learn, and learning without gradients


def meta_gradient(w, phases):
    """MAML: sines of several phases, one inner step each, differentiated through."""
    x = jnp.linspace(-1, 1, 5)
    powers = x[:, None] ** jnp.arange(3)

    def loss(w, y):
        return jnp.mean((jnp.tanh(powers @ w) - y) ** 2)

    def after_adapting(w, phase):
        adapted = w - 0.5 * jax.grad(loss)(w, jnp.sin(x + phase))
        return loss(adapted, jnp.sin(x + phase))

    return jax.value_and_grad(lambda w: jax.vmap(after_adapting, (None, 0))(w, phases).mean())(w)


def meta_gradient_numpy(w, phases):
    x = np.linspace(-1, 1, 5)
    powers = np.vander(x, 3, increasing=True)

    def meta_loss(w):
        total = 0.0
        for phase in phases:
            y, out = np.sin(x + phase), np.tanh(powers @ w)
            slope = 2 * powers.T @ ((out - y) * (1 - out**2)) / 5
            total += ((np.tanh(powers @ (w - 0.5 * slope)) - y) ** 2).mean() / len(phases)
        return total

    return meta_loss(w), numerical_gradient(meta_loss, w)


def evolution_strategy(w, noise):
    """Mirrored samples, ranked; the mean moves towards those that did better."""

    def fitness(w):
        return -jnp.sum((w - jnp.array([1.0, -2.0])) ** 2)

    def generation(w, noise):
        both = jnp.concatenate([noise, -noise])
        scores = jax.vmap(lambda e: fitness(w + 0.3 * e))(both)
        ranks = jnp.argsort(jnp.argsort(scores)) / (len(both) - 1) - 0.5
        return w + 0.5 * ranks @ both / len(both) / 0.3, fitness(w)

    return lax.scan(generation, w, noise)


def evolution_strategy_numpy(w, noise):
    path = []
    for sample in noise:
        path.append(-((w - [1, -2]) ** 2).sum())
        both = np.concatenate([sample, -sample])
        scores = -((w + 0.3 * both - [1, -2]) ** 2).sum(axis=1)
        ranks = np.array([(scores < s).sum() for s in scores]) / (len(both) - 1) - 0.5
        w = w + 0.5 * ranks @ both / len(both) / 0.3
    return w, np.array(path)


PROGRAMS = [
    Program(adam, (WEIGHTS, np.float32(0.5), FEATURES, TARGETS), adam_numpy, gradient=(3,)),
    Program(
        many_momenta,
        (np.zeros(3, np.float32), np.array([0.01, 0.05, 0.2], np.float32), FEATURES, TARGETS),
        many_momenta_numpy,
    ),
    Program(ridge_regression, (FEATURES, TARGETS, np.float32(0.2)), ridge_regression_numpy),
    Program(logistic_regression, (FEATURES, SIDES), logistic_regression_numpy),
    Program(perceptron, (FEATURES, SIDES), perceptron_numpy),
    Program(
        hessian_products,
        (WEIGHTS, normal(3, seed=2), FEATURES, 2 * SIDES - 1),
        hessian_products_numpy,
    ),
    Program(natural_gradient, (WEIGHTS, FEATURES, SIDES), natural_gradient_numpy),
    Program(meta_gradient, (WEIGHTS, np.array([0.0, 0.5, 2.0], np.float32)), meta_gradient_numpy),
    Program(
        evolution_strategy, (np.zeros(2, np.float32), normal(6, 5, 2)), evolution_strategy_numpy
    ),
]


@over(PROGRAMS)
def test_learning(program: Program) -> None:
    program.check()
