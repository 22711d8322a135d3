"""Transformations of gradients, which are chained to optimizers: the forerunner of optax.

A transformation is a pair `(init, update)`: `init(params)` returns a state,
`update(updates, state)` the changed updates and the next state. `apply_updates` adds updates to
parameters.

>>> import axir, axir.numpy as jnp
>>> from axir.experimental import optix
>>> params = {"w": jnp.array([1.0, -2.0])}
>>> optimizer = optix.chain(optix.clip(1.0), optix.scale(-0.5))
>>> updates, state = optimizer.update(params, optimizer.init(params))
>>> optix.apply_updates(params, updates)
{'w': Array([ 0.5, -1.5], dtype=float32)}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from axir import numpy as jnp
from axir import random
from axir._trees import tree
from axir.dialect.core.annotations import PyTree, Tree, UserFunction, UserObject

__all__ = [
    "AddNoiseState", "ApplyEvery", "ClipByGlobalNormState", "ClipState", "GradientTransformation",
    "InitUpdate", "OptState", "ScaleByAdamState", "ScaleByRStdDevState", "ScaleByRmsState",
    "ScaleByScheduleState", "ScaleState", "TraceState", "adam", "add_noise", "apply_every",
    "apply_updates", "chain", "clip", "clip_by_global_norm", "global_norm", "noisy_sgd", "rmsprop",
    "scale", "scale_by_adam", "scale_by_rms", "scale_by_schedule", "scale_by_stddev", "sgd",
    "trace",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


OptState = NamedTuple
"""What states are: named tuples, perhaps empty."""


class GradientTransformation(NamedTuple):
    """A transformation of gradients.

    Attributes:
        init: From parameters to a state.
        update: From updates, a state and perhaps parameters to updates and a state.
    """

    init: Callable[[PyTree], UserObject]
    update: UserFunction


InitUpdate = GradientTransformation


class ClipState(NamedTuple):
    """The state of `clip`: empty."""


class ClipByGlobalNormState(NamedTuple):
    """The state of `clip_by_global_norm`: empty."""


class ScaleState(NamedTuple):
    """The state of `scale`: empty."""


class TraceState(NamedTuple):
    """The state of `trace`.

    Attributes:
        trace: The decaying sum of updates.
    """

    trace: PyTree


class ScaleByRmsState(NamedTuple):
    """The state of `scale_by_rms`.

    Attributes:
        nu: Moving averages of squares.
    """

    nu: PyTree


class ScaleByRStdDevState(NamedTuple):
    """The state of `scale_by_stddev`.

    Attributes:
        mu: Moving averages.
        nu: Moving averages of squares.
    """

    mu: PyTree
    nu: PyTree


class ScaleByAdamState(NamedTuple):
    """The state of `scale_by_adam`.

    Attributes:
        count: Number of steps so far.
        mu: Moving averages.
        nu: Moving averages of squares.
    """

    count: UserObject
    mu: PyTree
    nu: PyTree


class ScaleByScheduleState(NamedTuple):
    """The state of `scale_by_schedule`.

    Attributes:
        count: Number of steps so far.
    """

    count: UserObject


class AddNoiseState(NamedTuple):
    """The state of `add_noise`.

    Attributes:
        count: Number of steps so far.
        rng_key: The key of the next step.
    """

    count: UserObject
    rng_key: UserObject


class ApplyEvery(NamedTuple):
    """The state of `apply_every`.

    Attributes:
        count: Number of steps so far.
        grad_acc: The sum of updates since they were applied.
    """

    count: UserObject
    grad_acc: PyTree


_Step: TypeAlias = Callable[[PyTree, UserObject], tuple[PyTree, UserObject]]


def _transformation(init: Callable[[Tree], object], step: _Step) -> GradientTransformation:
    """Makes a transformation that does not look at parameters."""

    def update(updates: Tree, state: object, params: Tree = None) -> tuple[PyTree, UserObject]:
        return step(updates, state)

    return GradientTransformation(init, update)


def _stateless(state: object, change: Callable[[Tree], Tree]) -> GradientTransformation:
    return _transformation(lambda params: state, lambda updates, same: (change(updates), same))


def _zeros(params: Tree) -> Tree:
    return tree.map(jnp.zeros_like, params)


def _no_steps() -> object:
    return jnp.zeros((), jnp.int32)


def _average(updates: Tree, before: Tree, decay: float, order: int) -> Tree:
    """Returns the next moving average of a power of the updates."""
    return tree.map(lambda g, m: (1 - decay) * g**order + decay * m, updates, before)


def clip(max_delta: UserObject) -> GradientTransformation:
    """Makes a transformation that clips each element to `[-max_delta, max_delta]`."""
    return _stateless(
        ClipState(), lambda updates: tree.map(lambda g: jnp.clip(g, -max_delta, max_delta), updates)
    )


def global_norm(updates: Tree) -> UserObject:
    """Returns the root of the sum of the squares of all elements.

    >>> float(global_norm([jnp.array([3.0]), jnp.array([4.0])]))
    5.0
    """
    return jnp.sqrt(sum(jnp.sum(jnp.square(x)) for x in tree.leaves(updates)))


def clip_by_global_norm(max_norm: object) -> GradientTransformation:
    """Makes a transformation that scales updates down to a norm if they have a larger one.

    Pascanu, Mikolov, Bengio: On the difficulty of training recurrent neural networks, 2012.
    """

    def change(updates: Tree) -> PyTree:
        norm = global_norm(updates)
        return tree.map(lambda g: jnp.where(norm < max_norm, g, (g / norm) * max_norm), updates)

    return _stateless(ClipByGlobalNormState(), change)


def trace(decay: float, nesterov: bool) -> GradientTransformation:
    """Makes a transformation to a decaying sum of updates (momentum).

    Args:
        decay: The factor of the sum in each step.
        nesterov: Whether to look ahead by one step.
    """

    def step(updates: Tree, state: TraceState) -> tuple[PyTree, TraceState]:
        def add(g: UserObject, total: UserObject) -> UserObject:
            return g + decay * total

        total = tree.map(add, updates, state.trace)
        return tree.map(add, updates, total) if nesterov else total, TraceState(total)

    return _transformation(lambda params: TraceState(_zeros(params)), step)


def scale_by_rms(decay: float = 0.9, eps: float = 1e-8) -> GradientTransformation:
    """Makes a transformation that divides by the root of the mean square (Hinton's RMSProp).

    Args:
        decay: Weight of the earlier squares in their moving average.
        eps: Added to it.
    """

    def step(updates: Tree, state: ScaleByRmsState) -> tuple[PyTree, ScaleByRmsState]:
        nu = _average(updates, state.nu, decay, 2)
        return tree.map(lambda g, n: g / jnp.sqrt(n + eps), updates, nu), ScaleByRmsState(nu)

    return _transformation(lambda params: ScaleByRmsState(_zeros(params)), step)


def scale_by_stddev(decay: float = 0.9, eps: float = 1e-8) -> GradientTransformation:
    """Makes a transformation that divides by the standard deviation, a moving average.

    Args:
        decay: Weight of the earlier values in the moving averages.
        eps: Added to the variance.
    """

    def step(updates: Tree, state: ScaleByRStdDevState) -> tuple[PyTree, ScaleByRStdDevState]:
        mu = _average(updates, state.mu, decay, 1)
        nu = _average(updates, state.nu, decay, 2)
        scaled = tree.map(lambda g, m, n: g / jnp.sqrt(n - jnp.square(m) + eps), updates, mu, nu)
        return scaled, ScaleByRStdDevState(mu, nu)

    return _transformation(lambda p: ScaleByRStdDevState(_zeros(p), _zeros(p)), step)


def scale_by_adam(
    b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, eps_root: float = 0.0
) -> GradientTransformation:
    """Makes the transformation of Adam (Kingma, Ba, 2014).

    Args:
        b1: Weight of the earlier updates in their moving average.
        b2: Weight of the earlier squares in theirs.
        eps: Added to the denominator.
        eps_root: Added under its root, for derivatives through the transformation.
    """

    def step(updates: Tree, state: ScaleByAdamState) -> tuple[PyTree, ScaleByAdamState]:
        mu = _average(updates, state.mu, b1, 1)
        nu = _average(updates, state.nu, b2, 2)
        count = state.count + 1

        def scaled(m: object, n: object) -> object:
            return (m / (1 - b1**count)) / (jnp.sqrt(n / (1 - b2**count) + eps_root) + eps)

        return tree.map(scaled, mu, nu), ScaleByAdamState(count, mu, nu)

    return _transformation(lambda p: ScaleByAdamState(_no_steps(), _zeros(p), _zeros(p)), step)


def scale(step_size: object) -> GradientTransformation:
    """Makes a transformation that multiplies by a number."""
    return _stateless(ScaleState(), lambda updates: tree.map(lambda g: step_size * g, updates))


def scale_by_schedule(step_size_fn: Callable[[UserObject], UserObject]) -> GradientTransformation:
    """Makes a transformation that multiplies by a function of the number of the step."""

    def step(updates: Tree, state: ScaleByScheduleState) -> tuple[PyTree, ScaleByScheduleState]:
        scaled = tree.map(lambda g: step_size_fn(state.count) * g, updates)
        return scaled, ScaleByScheduleState(state.count + 1)

    return _transformation(lambda params: ScaleByScheduleState(_no_steps()), step)


def add_noise(eta: float, gamma: float, seed: int) -> GradientTransformation:
    """Makes a transformation that adds normal noise of decaying size.

    Neelakantan et al.: Adding gradient noise improves learning for very deep networks, 2015.

    Args:
        eta: By which the first noise is multiplied.
        gamma: The one of step i is multiplied by `eta / (1 + i) ** gamma`.
        seed: For the random numbers.
    """

    def step(updates: Tree, state: AddNoiseState) -> tuple[PyTree, AddNoiseState]:
        leaves, structure = tree.flatten(updates)
        size = eta / (1 + state.count) ** gamma
        following, *keys = random.split(state.rng_key, len(leaves) + 1)
        noisy = [
            g + size * random.normal(key, g.shape) for g, key in zip(leaves, keys, strict=True)
        ]
        return structure.unflatten(noisy), AddNoiseState(state.count + 1, following)

    return _transformation(lambda params: AddNoiseState(_no_steps(), random.PRNGKey(seed)), step)


def apply_every(k: int = 1) -> GradientTransformation:
    """Makes a transformation that gives zeros but in every k-th step, then the sum of k updates."""

    def step(updates: Tree, state: ApplyEvery) -> tuple[PyTree, ApplyEvery]:
        place = state.count % k
        total = tree.map(lambda g, a: (place != 0) * a + g, updates, state.grad_acc)
        emitted = tree.map(lambda a: (place == k - 1) * a, total)
        return emitted, ApplyEvery(state.count + 1, total)

    return _transformation(lambda params: ApplyEvery(_no_steps(), _zeros(params)), step)


def chain(*args: GradientTransformation) -> GradientTransformation:
    """Composes transformations: each gets the updates of the previous one."""

    def init(params: Tree) -> list[UserObject]:
        return [first(params) for first, _ in args]

    def update(
        updates: Tree, state: UserObject, params: Tree = None
    ) -> tuple[PyTree, list[UserObject]]:
        after = []
        for (_, change), own in zip(args, state, strict=True):
            updates, own = change(updates, own, params)
            after.append(own)
        return updates, after

    return GradientTransformation(init, update)


def apply_updates(params: Tree, updates: Tree) -> PyTree:
    """Returns the sum of two trees: parameters and updates."""
    return tree.map(lambda p, u: p + u, params, updates)


def sgd(
    learning_rate: UserObject, momentum: float = 0.0, nesterov: bool = False
) -> GradientTransformation:
    """Makes the updates of gradient descent, with momentum if it is not 0."""
    return chain(trace(momentum, nesterov), scale(-learning_rate))


def noisy_sgd(
    learning_rate: UserObject, eta: float = 0.01, gamma: float = 0.55, seed: int = 0
) -> GradientTransformation:
    """Makes the updates of gradient descent with noise; see `add_noise`."""
    return chain(trace(0.0, False), scale(-learning_rate), add_noise(eta, gamma, seed))


def adam(
    learning_rate: UserObject, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> GradientTransformation:
    """Makes the updates of Adam; see `scale_by_adam`."""
    return chain(scale_by_adam(b1, b2, eps), scale(-learning_rate))


def rmsprop(
    learning_rate: UserObject, decay: float = 0.9, eps: float = 1e-8, centered: bool = False
) -> GradientTransformation:
    """Makes the updates of RMSProp; centered ones divide by the standard deviation."""
    scaling = scale_by_stddev if centered else scale_by_rms
    return chain(scaling(decay, eps), scale(-learning_rate))
