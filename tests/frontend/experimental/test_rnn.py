"""LSTMs over sequences of several lengths, in one direction and both, against a loop in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.errors import ParameterError
from axir.experimental import rnn

INPUT, HIDDEN, LAYERS, BATCH, TIME = 3, 4, 2, 5, 6
LENGTHS = np.array([6, 3, 1, 4, 5])


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _one_sequence(x: Any, h: Any, c: Any, weights: list[Any]) -> tuple[Any, Any, Any]:
    of_input, of_state, input_bias, state_bias = weights
    outputs = []
    for step in x:
        gates = of_input @ step + input_bias + of_state @ h + state_bias
        entry, forget, cell, output = np.split(gates, 4)
        c = _sigmoid(forget) * c + _sigmoid(entry) * np.tanh(cell)
        h = _sigmoid(output) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs), h, c


def _expected(x: Any, h: Any, c: Any, parts: Any, directions: int) -> tuple[Any, Any, Any]:
    last_h, last_c = np.zeros_like(h), np.zeros_like(c)
    for first in range(0, LAYERS * directions, directions):
        y = np.zeros((BATCH, TIME, HIDDEN * directions))
        for n, length in enumerate(LENGTHS):
            for way in range(directions):
                layer, order = first + way, slice(None, None, -1 if way else 1)
                weights = [np.asarray(kind[layer]) for kind in parts]
                out, *ends = _one_sequence(x[n, :length][order], h[layer, n], c[layer, n], weights)
                y[n, :length, way * HIDDEN : (way + 1) * HIDDEN] = out[order]
                last_h[layer, n], last_c[layer, n] = ends
        x = y
    return x, last_h, last_c


@pytest.mark.parametrize("bidirectional", [False, True])
def test_sequences_of_several_lengths(bidirectional: bool) -> None:
    directions = 2 if bidirectional else 1
    sizes = (INPUT, HIDDEN, LAYERS, bidirectional)
    weights = rnn.init_lstm_weight(axir.random.key(1), *sizes)
    assert weights.shape == (rnn.get_num_params_in_lstm(*sizes),)
    assert float(abs(weights).max()) <= HIDDEN**-0.5
    parts = rnn.unpack_lstm_weights(weights, *sizes)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(BATCH, TIME, INPUT))
    h, c = rng.normal(size=(2, LAYERS * directions, BATCH, HIDDEN))
    arguments = (jnp.asarray(x), jnp.asarray(h), jnp.asarray(c))
    found = rnn.lstm(*arguments, weights, LENGTHS, INPUT, HIDDEN, LAYERS, 0.0, bidirectional)
    for ours, theirs in zip(found, _expected(x, h, c, parts, directions), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    same = rnn.lstm_ref(*arguments, *parts, LENGTHS, INPUT, HIDDEN, LAYERS, 0.0, bidirectional)
    assert all((a == b).all() for a, b in zip(found, same, strict=True))


def test_gates_change_places_and_back() -> None:
    sizes = (1, 1, 1, False)
    weights = jnp.arange(16.0)
    swapped = rnn.swap_lstm_gates(weights, *sizes)
    assert swapped[:8].tolist() == [0, 1, 3, 2, 4, 5, 7, 6]
    assert rnn.swap_lstm_gates(swapped, *sizes).tolist() == weights.tolist()


def test_misuse() -> None:
    state = jnp.zeros((1, 1, 1))
    with pytest.raises(ParameterError, match="has 16 weights, in one axis, but they have the shap"):
        rnn.lstm(state, state, state, jnp.zeros(3), jnp.ones(1), 1, 1, 1, 0.0, False)
    with pytest.raises(rnn.DropoutError, match="takes no key to draw from"):
        rnn.lstm(state, state, state, jnp.zeros(16), jnp.ones(1), 1, 1, 1, 0.5, False)
