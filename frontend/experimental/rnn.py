"""LSTMs over batches of sequences, under the names of `jax.experimental.rnn`.

JAX calls a library of one maker of GPUs; here they are loops of ordinary operations, so they run on
each device, and are differentiated and vectorized like any function.

Weights come in one array: for each layer the matrices of the input and of the state, then, in the
same order, both biases. Each holds the gates in the order input, forget, cell, output, along its
first axis. A layer in both directions counts as two: forward, then backward.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial

from axir import lax, nn, random
from axir import numpy as jnp
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import Array, ArrayLike
from axir.dialect.core.errors import AxirError, ParameterError

__all__ = [
    "get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "swap_lstm_gates",
    "unpack_lstm_weights",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


_GATES = 4


class DropoutError(AxirError, NotImplementedError):
    """An LSTM was called with dropout, but has no key for it."""


def _shapes(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> list[tuple[int, ...]]:
    """Returns the shapes of the weights, in their order."""
    directions = 2 if bidirectional else 1
    rows = _GATES * hidden_size
    matrices: list[tuple[int, ...]] = []
    for layer in range(num_layers):
        columns = input_size if layer == 0 else directions * hidden_size
        matrices += [(rows, columns), (rows, hidden_size)] * directions
    return matrices + [(rows,)] * len(matrices)


def get_num_params_in_lstm(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> int:
    """Returns how many weights an LSTM has.

    >>> get_num_params_in_lstm(3, 2, 1, False)
    56
    """
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    return sum(map(math.prod, shapes))


def init_lstm_weight(
    rng: UserObject, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Draws weights, uniform between ±1/√hidden_size.

    Args:
        rng: A key.
        input_size: Extent of an input.
        hidden_size: Extent of a state.
        num_layers: Number of layers.
        bidirectional: Whether each layer goes both ways.
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = hidden_size**-0.5
    return random.uniform(rng, (count,), jnp.float32, -bound, bound)


def _parts(
    weights: ArrayLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Iterator[Array]:
    """Yields the weights one by one.

    Raises:
        ParameterError: if there are more or fewer than the LSTM has.
    """
    packed = jnp.asarray(weights)
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    count = sum(map(math.prod, shapes))
    if packed.shape != (count,):
        raise ParameterError(
            f"An LSTM of these sizes has {count} weights, in one axis, but they have the shape "
            f"{packed.shape}.",
            "get_num_params_in_lstm counts them, and init_lstm_weight makes them.",
        )
    start = 0
    for shape in shapes:
        size = math.prod(shape)
        yield packed[start : start + size].reshape(shape)
        start += size


def unpack_lstm_weights(
    weights: ArrayLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[dict[int, Array], dict[int, Array], dict[int, Array], dict[int, Array]]:
    """Returns the weights by kind and layer.

    Args:
        weights: All of them, of shape (number of weights,).
        input_size: Extent of an input.
        hidden_size: Extent of a state.
        num_layers: Number of layers.
        bidirectional: Whether each layer goes both ways, and counts as two.

    Returns:
        Matrices of the inputs and of the states, then their biases, each by number of the layer.

    Raises:
        ParameterError: if there are more or fewer weights than the LSTM has.
    """
    parts = list(_parts(weights, input_size, hidden_size, num_layers, bidirectional))
    middle = len(parts) // 2
    kinds = (parts[:middle:2], parts[1:middle:2], parts[middle::2], parts[middle + 1 :: 2])
    of_input, of_state, input_bias, state_bias = (dict(enumerate(kind)) for kind in kinds)
    return of_input, of_state, input_bias, state_bias


def swap_lstm_gates(
    weights: ArrayLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Returns the weights with the cell's gate and the output's in each other's place.

    Takes the arguments and raises the errors of `unpack_lstm_weights`.
    """
    swapped = []
    for part in _parts(weights, input_size, hidden_size, num_layers, bidirectional):
        entry, forget, cell, output = jnp.split(part, _GATES)
        swapped.append(jnp.concatenate([entry, forget, output, cell]).ravel())
    return jnp.concatenate(swapped)


def lstm(
    x: ArrayLike,
    h_0: ArrayLike,
    c_0: ArrayLike,
    weights: ArrayLike,
    seq_lengths: ArrayLike,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: object = None,
) -> tuple[Array, Array, Array]:
    """Runs an LSTM over a batch of sequences (Hochreiter and Schmidhuber 1997, with two biases).

    Args:
        x: Inputs, of shape (batch, time, input_size).
        h_0: First states, of shape (layers · directions, batch, hidden_size).
        c_0: First cells, of that shape.
        weights: In one array; see `init_lstm_weight`.
        seq_lengths: How many steps of each sequence count, integers of shape (batch,).
        input_size: Extent of an input.
        hidden_size: Extent of a state.
        num_layers: Number of layers.
        dropout: Only 0.
        bidirectional: Whether each layer goes both ways.
        precision: Of the products of matrices, as `axir.lax.dot` takes it.

    Returns:
        The outputs, of shape (batch, time, hidden_size · directions), 0 after the end of a
        sequence; and the last states and cells, of the shape of the first.

    Raises:
        ParameterError: if the number of weights does not fit.
        DropoutError: if `dropout` is not 0.

    >>> weights = init_lstm_weight(random.key(0), 3, 2, 1, False)
    >>> x, state, lengths = jnp.ones((5, 4, 3)), jnp.zeros((1, 5, 2)), jnp.full(5, 4)
    >>> y, h, c = lstm(x, state, state, weights, lengths, 3, 2, 1, 0.0, False)
    >>> y.shape, h.shape, bool((y[:, -1] == h[0]).all())
    ((5, 4, 2), (1, 5, 2), True)
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _layers(x, h_0, c_0, parts, seq_lengths, dropout, bidirectional, precision)


def lstm_ref(
    x: ArrayLike,
    h_0: ArrayLike,
    c_0: ArrayLike,
    W_ih: Mapping[int, ArrayLike],
    W_hh: Mapping[int, ArrayLike],
    b_ih: Mapping[int, ArrayLike],
    b_hh: Mapping[int, ArrayLike],
    seq_lengths: ArrayLike,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Array, Array, Array]:
    """Computes the same as `lstm`, with the weights as `unpack_lstm_weights` returns them."""
    parts = (W_ih, W_hh, b_ih, b_hh)
    return _layers(x, h_0, c_0, parts, seq_lengths, dropout, bidirectional, None)


def _layers(
    x: ArrayLike,
    first_state: ArrayLike,
    first_cell: ArrayLike,
    parts: tuple[Mapping[int, ArrayLike], ...],
    lengths: ArrayLike,
    dropout: float,
    bidirectional: bool,
    precision: object,
) -> tuple[Array, Array, Array]:
    if dropout:
        raise DropoutError(
            f"lstm: dropout={dropout}, but it takes no key to draw from.",
            "Drop between layers by yourself: lstm with num_layers=1, then a mask from "
            "axir.random.bernoulli.",
        )
    states, cells = jnp.asarray(first_state), jnp.asarray(first_cell)
    steps = jnp.swapaxes(jnp.asarray(x), 0, 1)
    counts = jnp.arange(steps.shape[0])[:, None] < jnp.asarray(lengths)
    directions = 2 if bidirectional else 1
    last = []
    for number in range(0, len(parts[0]), directions):
        outputs = []
        for layer in range(number, number + directions):
            weights = tuple(jnp.asarray(kind[layer]) for kind in parts)
            step = partial(_step, weights, precision)
            start = (states[layer], cells[layer])
            end, output = lax.scan(step, start, (steps, counts), reverse=layer > number)
            outputs.append(output)
            last.append(end)
        steps = jnp.concatenate(outputs, axis=-1)
    return (
        jnp.swapaxes(steps, 0, 1),
        jnp.stack([state for state, _ in last]),
        jnp.stack([cell for _, cell in last]),
    )


def _step(
    weights: tuple[Array, ...],
    precision: object,
    carry: tuple[Array, Array],
    step: tuple[Array, Array],
) -> tuple[tuple[Array, Array], Array]:
    """Advances states and cells by an input, where the sequences have not ended."""
    of_input, of_state, input_bias, state_bias = weights
    (state, cell), (x, counts) = carry, step
    dot = partial(jnp.matmul, precision=precision)
    gates = dot(x, of_input.T) + input_bias + dot(state, of_state.T) + state_bias
    entry, forget, candidate, output = jnp.split(gates, _GATES, axis=-1)
    new_cell = nn.sigmoid(forget) * cell + nn.sigmoid(entry) * jnp.tanh(candidate)
    new_state = nn.sigmoid(output) * jnp.tanh(new_cell)
    lasts = counts[:, None]
    kept = jnp.where(lasts, new_state, state), jnp.where(lasts, new_cell, cell)
    return kept, jnp.where(lasts, new_state, 0)
