"""Optimizers as triples of functions over trees of parameters.

An optimizer is a triple `(init_fun, update_fun, get_params)`:

* `init_fun(params)` returns a state;
* `update_fun(step, gradients, state)` returns the next one;
* `get_params(state)` returns the parameters.

States are pytrees, so that updates can be compiled and states kept.

>>> import axir, axir.numpy as jnp
>>> from axir.example_libraries import optimizers
>>> init_fun, update_fun, get_params = optimizers.adam(0.1)
>>> state = init_fun({"w": jnp.array([1.0, -2.0])})
>>> gradient = axir.grad(lambda params: jnp.sum(params["w"] ** 2))
>>> for step in range(100):
...     state = update_fun(step, gradient(get_params(state)), state)
>>> bool(optimizers.l2_norm(get_params(state)) < 0.05)
True

Elsewhere: step sizes that change (`_schedules.py`), networks (`stax.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from axir import numpy as jnp
from axir._trees import tree
from axir._trees.registration import register_pytree_node
from axir.dialect.core.annotations import (
    PyTree,
    Tree,
    UserFunction,
    UserObject,
)
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import TreeError

from ._schedules import (
    Schedule,
    StepSize,
    constant,
    exponential_decay,
    inverse_time_decay,
    make_schedule,
    piecewise_constant,
    polynomial_decay,
)

__all__ = [
    "Array", "InitFn", "JoinPoint", "Optimizer", "OptimizerState", "Params", "ParamsFn", "Schedule",
    "Step", "UpdateFn", "Updates", "adagrad", "adam", "adamax", "clip_grads", "constant",
    "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum", "nesterov",
    "optimizer", "pack_optimizer_state", "piecewise_constant", "polynomial_decay", "rmsprop",
    "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


State: TypeAlias = PyTree
"""What an optimizer keeps of one array of parameters."""


class OptimizerState(NamedTuple):
    """The state of an optimizer over a tree of parameters, a pytree.

    Attributes:
        packed_state: For each array of parameters the leaves of its state.
        tree_def: Structure of the parameters.
        subtree_defs: For each array of parameters the structure of its state.
    """

    packed_state: Sequence[Sequence[UserObject]]
    tree_def: tree.TreeDef
    subtree_defs: Sequence[tree.TreeDef]


register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, tuple(state.subtree_defs))),
    lambda structures, children: OptimizerState(*children, *structures),
)


# Types of the arguments and results of an optimizer's functions, for annotations.
Array: TypeAlias = ArrayLike
Params: TypeAlias = PyTree
Updates: TypeAlias = Params
Step: TypeAlias = int
InitFn: TypeAlias = Callable[[Params], OptimizerState]
UpdateFn: TypeAlias = Callable[[Step, Updates, OptimizerState], OptimizerState]
ParamsFn: TypeAlias = Callable[[OptimizerState], Params]


class Optimizer(NamedTuple):
    """An optimizer: three functions.

    Attributes:
        init_fn: From parameters to a state.
        update_fn: From the number of the step, gradients and a state to the next state.
        params_fn: From a state to the parameters.
    """

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


class JoinPoint:
    """A leaf of a parameter tree that holds the optimizer state of one parameter.

    Attributes:
        subtree: The state.
    """

    def __init__(self, subtree: State):
        self.subtree = subtree

    def __iter__(self) -> Iterator[State]:
        yield self.subtree


def optimizer(
    opt_maker: Callable[
        ..., tuple[Callable[..., object], Callable[..., object], Callable[..., object]]
    ],
) -> Callable[..., Optimizer]:
    """Makes an optimizer of trees of parameters of one for a single array (a decorator).

    Args:
        opt_maker: Returns a triple of functions of a single array.

    Returns:
        A function of the same arguments that returns the optimizer. Its `update_fun` raises
        `TreeError` if gradients have another structure than parameters.

    >>> import axir.numpy as jnp
    >>> @optimizer
    ... def halving():
    ...     return lambda x: x, lambda step, gradient, x: x / 2, lambda x: x
    >>> init_fun, update_fun, get_params = halving()
    >>> get_params(update_fun(0, [jnp.ones(2)], init_fun([jnp.ones(2)])))
    [Array([0.5, 0.5], dtype=float32)]
    """

    @functools.wraps(opt_maker)
    def make(*args: object, **kwargs: object) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def init_tree(params: Tree) -> OptimizerState:
            leaves, structure = tree.flatten(params)
            return _packed([init(x) for x in leaves], structure)

        def update_tree(step: object, gradients: Tree, state: OptimizerState) -> UserObject:
            leaves, structure = tree.flatten(gradients)
            if structure != state.tree_def:
                raise TreeError(
                    f"The gradients have the structure {structure}, but the parameters with which "
                    f"the optimizer began have {state.tree_def}.",
                    "Differentiate in the parameters that get_params returns.",
                )
            states = [update(step, g, x) for g, x in zip(leaves, _states(state), strict=True)]
            after = _packed(states, structure)
            _check_same_structure(state, after)
            return after

        def params_of(state: OptimizerState) -> Tree:
            return state.tree_def.unflatten([get_params(x) for x in _states(state)])

        return Optimizer(init_tree, update_tree, params_of)

    return make


def _packed(states: Sequence[State], structure: tree.TreeDef) -> OptimizerState:
    flat = [tree.flatten(state) for state in states]
    return OptimizerState([leaves for leaves, _ in flat], structure, [part for _, part in flat])


def _states(state: OptimizerState) -> list[State]:
    parts = zip(state.subtree_defs, state.packed_state, strict=True)
    return [part.unflatten(leaves) for part, leaves in parts]


def _check_same_structure(before: OptimizerState, after: OptimizerState) -> None:
    for first, second in zip(before.subtree_defs, after.subtree_defs, strict=True):
        if first != second:
            raise TreeError(
                f"The optimizer was given a state of structure {first} and returned {second}.",
                "Return the state in the containers in which it came.",
            )


def unpack_optimizer_state(opt_state: OptimizerState) -> PyTree:
    """Returns the parameter tree with a `JoinPoint` of the state for each leaf.

    Write this tree to files, because it has the names of parameters.
    """
    return opt_state.tree_def.unflatten([JoinPoint(state) for state in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Tree) -> OptimizerState:
    """Returns the state of a tree with `JoinPoint`s: the inverse of `unpack_optimizer_state`.

    Raises:
        TreeError: if a leaf is something else.

    >>> import axir.numpy as jnp
    >>> state = momentum(0.1, 0.9).init_fn({"w": jnp.ones(2)})
    >>> pack_optimizer_state(unpack_optimizer_state(state)).tree_def == state.tree_def
    True
    """
    leaves, structure = tree.flatten(marked_pytree)
    for leaf in leaves:
        if not isinstance(leaf, JoinPoint):
            raise TreeError(
                f"pack_optimizer_state: a leaf is of type {type(leaf).__name__!r}, no JoinPoint.",
                "Pass a tree as unpack_optimizer_state returns it.",
            )
    return _packed([leaf.subtree for leaf in leaves], structure)


# Optimizers --------------------------------------------------------------------------------------

_Triple: TypeAlias = tuple[UserFunction, UserFunction, UserFunction]


def _first(state: State) -> object:
    return state[0]


def _with_zeros(count: int) -> Callable[..., object]:
    """Returns a function from parameters to these and `count` arrays of zeros like them."""
    return lambda x: (x, *(jnp.zeros_like(x) for _ in range(count)))


@optimizer
def sgd(step_size: StepSize) -> _Triple:
    """Makes an optimizer by steps against the gradient: `x - step_size * g`.

    Args:
        step_size: Positive number, or a function from the number of the step to one.
    """
    size = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - size(i) * g, lambda x: x


@optimizer
def momentum(step_size: StepSize, mass: float) -> _Triple:
    """Makes an optimizer by steps against a decaying sum of gradients.

    Args:
        step_size: As for `sgd`.
        mass: The factor of the sum in each step, from 0 to 1.
    """
    size = make_schedule(step_size)

    def update(i: object, g: object, state: State) -> State:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * velocity, velocity

    return _with_zeros(1), update, _first


@optimizer
def nesterov(step_size: StepSize, mass: float) -> _Triple:
    """Makes an optimizer by Nesterov's momentum, which looks ahead by one step.

    Args:
        step_size: As for `sgd`.
        mass: As for `momentum`.
    """
    size = make_schedule(step_size)

    def update(i: object, g: object, state: State) -> State:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * (mass * velocity + g), velocity

    return _with_zeros(1), update, _first


@optimizer
def adagrad(step_size: StepSize, momentum: float = 0.9) -> _Triple:
    """Makes an optimizer by Adagrad: gradients over the root of the sum of their squares.

    Duchi, Hazan, Singer: Adaptive subgradient methods for online learning and stochastic
    optimization, 2011.

    Args:
        step_size: As for `sgd`.
        momentum: Weight of the earlier steps in a moving average.
    """
    size = make_schedule(step_size)

    def update(i: object, g: object, state: State) -> State:
        x, squares, mean = state
        squares = squares + jnp.square(g)
        mean = (1.0 - momentum) * _over_root(g, squares) + momentum * mean
        return x - size(i) * mean, squares, mean

    return _with_zeros(2), update, _first


def _over_root(g: UserObject, squares: UserObject) -> UserObject:
    """Returns g over the root of squares, 0 where these are."""
    return g * jnp.where(squares > 0, 1.0 / jnp.sqrt(squares), 0.0)


@optimizer
def rmsprop(step_size: StepSize, gamma: float = 0.9, eps: float = 1e-8) -> _Triple:
    """Makes an optimizer by RMSProp: gradients over the root of their mean square.

    Args:
        step_size: As for `sgd`.
        gamma: Weight of the earlier squares in the moving average.
        eps: Added to the mean square.
    """
    size = make_schedule(step_size)

    def update(i: object, g: object, state: State) -> State:
        x, mean_square = state
        mean_square = mean_square * gamma + jnp.square(g) * (1.0 - gamma)
        return x - size(i) * g / jnp.sqrt(mean_square + eps), mean_square

    return _with_zeros(1), update, _first


@optimizer
def rmsprop_momentum(
    step_size: StepSize, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> _Triple:
    """Makes an optimizer by RMSProp with momentum.

    Args:
        step_size: As for `sgd`.
        gamma: As for `rmsprop`.
        eps: As for `rmsprop`.
        momentum: The factor of the previous step in each step.
    """
    size = make_schedule(step_size)

    def update(i: object, g: object, state: State) -> State:
        x, mean_square, step = state
        mean_square = mean_square * gamma + jnp.square(g) * (1.0 - gamma)
        step = momentum * step + size(i) * g / jnp.sqrt(mean_square + eps)
        return x - step, mean_square, step

    return _with_zeros(2), update, _first


@optimizer
def adam(step_size: StepSize, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> _Triple:
    """Makes an optimizer by Adam (Kingma, Ba, 2014).

    Args:
        step_size: As for `sgd`.
        b1: Weight of the earlier gradients in their moving average.
        b2: Weight of the earlier squares in theirs.
        eps: Added to the denominator.
    """
    size = make_schedule(step_size)

    def update(i: object, g: UserObject, state: State) -> State:
        x, mean, mean_square = state
        mean = (1 - b1) * g + b1 * mean
        mean_square = (1 - b2) * jnp.square(g) + b2 * mean_square
        unbiased = mean / _bias(b1, i, mean)
        root = jnp.sqrt(mean_square / _bias(b2, i, mean))
        return x - size(i) * unbiased / (root + eps), mean, mean_square

    return _with_zeros(2), update, _first


def _bias(decay: float, step: UserObject, like: UserObject) -> object:
    """Returns the sum of the weights of a moving average after a step."""
    return 1 - jnp.asarray(decay, like.dtype) ** (step + 1)


@optimizer
def adamax(step_size: StepSize, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> _Triple:
    """Makes an optimizer by AdaMax, Adam with a decaying maximum in place of the mean square.

    Args:
        step_size: As for `sgd`.
        b1: As for `adam`.
        b2: The factor of the maximum in each step.
        eps: As for `adam`.
    """
    size = make_schedule(step_size)

    def update(i: object, g: UserObject, state: State) -> State:
        x, mean, largest = state
        mean = (1 - b1) * g + b1 * mean
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        x = x - (size(i) / _bias(b1, i, mean)) * mean / (largest + eps)
        return x, mean, largest

    return _with_zeros(2), update, _first


@optimizer
def sm3(step_size: StepSize, momentum: float = 0.9) -> _Triple:
    """Makes an optimizer by SM3, Adagrad that keeps a vector for each axis, not all squares.

    Anil, Gupta, Koren, Singer: Memory-efficient adaptive optimization, 2019.

    Args:
        step_size: As for `sgd`.
        momentum: As for `adagrad`.
    """
    size = make_schedule(step_size)

    def init(x: UserObject) -> State:
        flat = jnp.atleast_1d(x)
        along = [jnp.zeros(extent, flat.dtype) for extent in flat.shape]
        return flat, jnp.zeros_like(flat), along, x.shape

    def update(i: object, g: object, state: State) -> State:
        x, mean, along, shape = state
        others = [tuple(n for n in range(x.ndim) if n != axis) for axis in range(x.ndim)]
        bounds = [jnp.expand_dims(v, rest) for v, rest in zip(along, others, strict=True)]
        squares = functools.reduce(jnp.minimum, bounds) + jnp.square(g)
        mean = (1.0 - momentum) * _over_root(g, squares) + momentum * mean
        return x - size(i) * mean, mean, [jnp.max(squares, rest) for rest in others], shape

    return init, update, lambda state: jnp.reshape(state[0], state[3])


# Gradients ---------------------------------------------------------------------------------------


def l2_norm(tree: Tree) -> UserObject:
    """Returns the root of the sum of the squares of all elements of a tree of arrays.

    >>> import axir.numpy as jnp
    >>> float(l2_norm({"a": jnp.array([3.0]), "b": 4.0}))
    5.0
    """
    return _norm(tree)


def _norm(arrays: Tree) -> UserObject:
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree.leaves(arrays)))


def clip_grads(grad_tree: Tree, max_norm: object) -> PyTree:
    """Scales a tree of gradients down to a norm (see `l2_norm`) if it has a larger one.

    >>> import axir.numpy as jnp
    >>> clip_grads([jnp.array([3.0, 4.0])], 1.0)
    [Array([0.6, 0.8], dtype=float32)]
    """
    norm = _norm(grad_tree)
    return tree.map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)
