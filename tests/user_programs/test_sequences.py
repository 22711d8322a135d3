"""Sequences: filters, alignments by dynamic programming, recurrences as parallel prefixes."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import scipy.linalg
import scipy.signal
import scipy.stats
from support.program_cases import Program, normal, over

import axir as jax
import axir.numpy as jnp
from axir import lax

# --- a linear model with normal noise: filter, smoother, likelihood

MODEL = {
    "transition": np.array([[1, 0.2], [-0.1, 0.9]], np.float32),
    "noise": np.array([[0.3, 0.1], [0.1, 0.2]], np.float32),
    "observe": np.array([[1, 0.5]], np.float32),
    "error": np.array([[0.4]], np.float32),
}


def kalman_smoother(model, observations):
    transition, observe = model["transition"], model["observe"]

    def predict(mean, spread):
        return transition @ mean, transition @ spread @ transition.T + model["noise"]

    def forward(carry, y):
        mean, spread = predict(*carry)
        innovation = observe @ spread @ observe.T + model["error"]
        residual = y - observe @ mean
        gain = jnp.linalg.solve(innovation, observe @ spread).T
        log_likelihood = -0.5 * (
            residual @ jnp.linalg.solve(innovation, residual)
            + jnp.linalg.slogdet(2 * jnp.pi * innovation)[1]
        )
        state = mean + gain @ residual, spread - gain @ observe @ spread
        return state, (*state, log_likelihood)

    def backward(carry, filtered):
        mean, spread = filtered
        next_mean, next_spread = predict(mean, spread)
        gain = jnp.linalg.solve(next_spread, transition @ spread).T
        return mean + gain @ (carry - next_mean), mean + gain @ (carry - next_mean)

    start = jnp.zeros(2), jnp.eye(2)
    (last, _), (means, spreads, fits) = lax.scan(forward, start, observations)
    _, smoothed = lax.scan(backward, last, (means[:-1], spreads[:-1]), reverse=True)
    return jnp.vstack([smoothed, last]), fits.sum()


def kalman_smoother_numpy(model, observations):
    """All states and observations are jointly normal: condition that one distribution."""
    n, a = len(observations), model["transition"]
    spreads = [np.eye(2)]
    for _ in range(n):
        spreads.append(a @ spreads[-1] @ a.T + model["noise"])
    joint = np.zeros((n, 2, n, 2))
    for s, t in itertools.product(range(n), repeat=2):
        power = np.linalg.matrix_power(a, abs(t - s))
        joint[s, :, t] = power @ spreads[t + 1] if s >= t else spreads[s + 1] @ power.T
    states = joint.reshape(2 * n, 2 * n)
    observe = np.kron(np.eye(n), model["observe"])
    seen = observe @ states @ observe.T + np.kron(np.eye(n), model["error"])
    means = states @ observe.T @ np.linalg.solve(seen, observations[:, 0])
    fit = scipy.stats.multivariate_normal.logpdf(observations[:, 0], np.zeros(n), seen)
    return means.reshape(n, 2), fit


# --- hidden Markov models against a sum over all paths

CHAIN = (normal(3), normal(3, 3), normal(3, 4))
SYMBOLS = np.array([0, 3, 1, 1, 2])


def log_chain(chain):
    return [jax.nn.log_softmax(table) for table in chain]


def forward_backward(chain, symbols):
    start, moves, emits = log_chain(chain)
    scores = emits[:, symbols].T
    total = functools.partial(jax.nn.logsumexp, axis=-1)

    def forward(alpha, score):
        alpha = total(alpha[None] + moves.T) + score
        return alpha, alpha

    def backward(beta, score):
        beta = total(moves + (beta + score)[None])
        return beta, beta

    first = start + scores[0]
    _, alphas = lax.scan(forward, first, scores[1:])
    _, betas = lax.scan(backward, jnp.zeros(3), scores[1:], reverse=True)
    alphas = jnp.concatenate([first[None], alphas])
    betas = jnp.concatenate([betas, jnp.zeros((1, 3))])
    return jnp.exp(alphas + betas - total(alphas[-1])), total(alphas[-1])


def viterbi(chain, symbols):
    start, moves, emits = log_chain(chain)

    def forward(scores, symbol):
        candidates = scores[:, None] + moves
        return candidates.max(axis=0) + emits[:, symbol], candidates.argmax(axis=0)

    scores, pointers = lax.scan(forward, start + emits[:, symbols[0]], symbols[1:])
    last = jnp.argmax(scores)
    _, states = lax.scan(lambda s, table: (table[s], table[s]), last, pointers, reverse=True)
    return jnp.append(states, last), scores.max()


def _paths(chain, symbols):
    start, moves, emits = (np.exp(t) / np.exp(t).sum(-1, keepdims=True) for t in chain)
    for path in itertools.product(range(3), repeat=len(symbols)):
        steps = itertools.pairwise(path)
        chance = start[path[0]] * np.prod([moves[s, t] for s, t in steps])
        yield path, chance * np.prod([emits[s, y] for s, y in zip(path, symbols, strict=True)])


def forward_backward_numpy(chain, symbols):
    marginals = np.zeros((len(symbols), 3))
    for path, chance in _paths(chain, symbols):
        marginals[np.arange(len(path)), path] += chance
    return marginals / marginals[0].sum(), np.log(marginals[0].sum())


def viterbi_numpy(chain, symbols):
    path, chance = max(_paths(chain, symbols), key=lambda entry: entry[1])
    return np.array(path), np.log(chance)


# --- alignments


def time_warping(a, b):
    """The least cost of aligning two series, cell by cell."""
    table = jnp.full((a.size + 1, b.size + 1), jnp.inf).at[0, 0].set(0.0)

    def cell(k, table):
        i, j = k // b.size + 1, k % b.size + 1
        before = jnp.stack([table[i - 1, j], table[i, j - 1], table[i - 1, j - 1]]).min()
        return table.at[i, j].set(jnp.abs(a[i - 1] - b[j - 1]) + before)

    return lax.fori_loop(0, a.size * b.size, cell, table)[-1, -1]


def time_warping_numpy(a, b):
    @functools.cache
    def cost(i, j):
        if i < 0 or j < 0:
            return 0.0 if i == j else np.inf
        return abs(a[i] - b[j]) + min(cost(i - 1, j), cost(i, j - 1), cost(i - 1, j - 1))

    return cost(len(a) - 1, len(b) - 1)


def edit_distance(a, b):
    """Levenshtein's distance: rows by scan, insertions within a row as a running minimum."""
    columns = jnp.arange(b.size + 1)

    def row(above, entry):
        index, letter = entry
        changed = jnp.minimum(above[1:] + 1, above[:-1] + (b != letter))
        candidates = jnp.concatenate([index[None] + 1, changed])
        new = lax.cummin(candidates - columns) + columns
        return new, None

    return lax.scan(row, columns, (jnp.arange(a.size), a))[0][-1]


def edit_distance_numpy(a, b):
    @functools.cache
    def distance(i, j):
        if not i or not j:
            return i + j
        kept = distance(i - 1, j - 1) + (a[i - 1] != b[j - 1])
        return min(kept, distance(i - 1, j) + 1, distance(i, j - 1) + 1)

    return np.array(distance(len(a), len(b)))


def local_alignment(a, b):
    """Smith and Waterman's score: antidiagonals, each of which depends on two before."""
    n, m = a.size, b.size
    rows = jnp.arange(n + 1)

    def diagonal(carry, k):
        before, last, best = carry
        columns = k - rows
        inside = (rows > 0) & (columns > 0) & (columns <= m)
        match = jnp.where(a[rows - 1] == b[jnp.clip(columns - 1, 0, m - 1)], 3, -2)
        above = jnp.roll(last, 1)
        new = jnp.maximum(jnp.roll(before, 1) + match, jnp.maximum(above, last) - 2)
        new = jnp.where(inside, jnp.maximum(new, 0), 0)
        return (last, new, jnp.maximum(best, new.max())), None

    empty = jnp.zeros(n + 1, jnp.int32)
    return lax.scan(diagonal, (empty, empty, jnp.int32(0)), jnp.arange(1, n + m + 1))[0][2]


def local_alignment_numpy(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), int)
    for i, j in np.ndindex(len(a), len(b)):
        match = table[i, j] + (3 if a[i] == b[j] else -2)
        table[i + 1, j + 1] = max(0, match, table[i, j + 1] - 2, table[i + 1, j] - 2)
    return table.max()


# --- recurrences and correlations


def linear_recurrence(decay, x):
    """h[t] = decay[t] h[t-1] + x[t] as a prefix of affine maps, and the same by scan."""

    def compose(first, second):
        return first[0] * second[0], second[0] * first[1] + second[1]

    _, prefix = lax.associative_scan(compose, (decay, x))

    def step(h, entry):
        h = entry[0] * h + entry[1]
        return h, h

    return prefix, lax.scan(step, jnp.zeros(2), (decay, x))[1]


def linear_recurrence_numpy(decay, x):
    powers = [[np.prod(decay[s + 1 : t + 1], axis=0) for s in range(len(x))] for t in range(len(x))]
    lower = np.where(np.tri(len(x), dtype=bool)[..., None], np.array(powers), 0)
    result = np.einsum("tsd,sd->td", lower, x)
    return result, result


def exponential_smoother(x, rate):
    """Means that forget, by scan, and the same as a filter."""

    def step(mean, entry):
        mean = (1 - rate) * mean + rate * entry
        return mean, mean

    return lax.scan(step, 0.0, x)[1]


def exponential_smoother_numpy(x, rate):
    return scipy.signal.lfilter([rate], [1, rate - 1], x)


def autocorrelation(x):
    """By Fourier transform, padded; then the autoregression of order three that fits it."""
    x = x - x.mean()
    spectrum = jnp.abs(jnp.fft.rfft(x, 2 * x.size)) ** 2
    lags = jnp.fft.irfft(spectrum)[: x.size] / x.size
    toeplitz = lags[jnp.abs(jnp.arange(3)[:, None] - jnp.arange(3))]
    return lags / lags[0], jnp.linalg.solve(toeplitz, lags[1:4])


def autocorrelation_numpy(x):
    x = x - x.mean()
    lags = np.correlate(x, x, "full")[len(x) - 1 :] / len(x)
    return lags / lags[0], scipy.linalg.solve_toeplitz(lags[:3], lags[1:4])


WORDS = np.array([3, 1, 4, 1, 5, 9, 2]), np.array([1, 4, 5, 9, 9, 2])

PROGRAMS = [
    Program(kalman_smoother, (MODEL, normal(5, 1)), kalman_smoother_numpy),
    Program(forward_backward, (CHAIN, SYMBOLS), forward_backward_numpy, gradient=(0,)),
    Program(viterbi, (CHAIN, SYMBOLS), viterbi_numpy),
    Program(time_warping, (normal(5), normal(4)), time_warping_numpy),
    Program(edit_distance, WORDS, edit_distance_numpy),
    Program(local_alignment, WORDS, local_alignment_numpy),
    Program(
        linear_recurrence,
        (normal(6, 2, scale=0.8), normal(6, 2)),
        linear_recurrence_numpy,
        gradient=(0, 1),
    ),
    Program(exponential_smoother, (normal(10), np.float32(0.3)), exponential_smoother_numpy),
    Program(autocorrelation, (normal(16),), autocorrelation_numpy, gradient=(0,)),
]


@over(PROGRAMS)
def test_sequences(program: Program) -> None:
    program.check()
