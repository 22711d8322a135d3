"""Clusters, graphs, numbers, tables, records: programs of integers, sorts and look-ups."""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np
import scipy.cluster.vq
import scipy.sparse.csgraph
import scipy.spatial
from support.program_cases import Program, normal, over

import axir as jax
import axir.numpy as jnp
from axir import lax

POINTS = np.concatenate([normal(7, 2, seed=k, scale=0.4) + 3 * np.eye(3)[k, :2] for k in range(3)])
POINTS = POINTS.astype(np.float32)


# --- neighbours and clusters


def k_means(points, centres):
    """Lloyd's steps until the centres stand still."""

    def assign(centres):
        return jnp.argmin(jnp.sum((points[:, None] - centres) ** 2, axis=-1), axis=1)

    def step(state):
        _, centres, count = state
        labels = assign(centres)
        totals = jax.ops.segment_sum(points, labels, num_segments=3)
        sizes = jax.ops.segment_sum(jnp.ones(labels.shape), labels, num_segments=3)
        return centres, totals / sizes[:, None], count + 1

    def moves(state):
        before, now, count = state
        return jnp.any(before != now) & (count < 50)

    _, centres, _ = lax.while_loop(moves, step, (centres + 1, centres, 0))
    return centres, assign(centres)


def k_means_numpy(points, centres):
    found, labels = scipy.cluster.vq.kmeans2(points, centres, iter=50, minit="matrix")
    return found, labels


def nearest_neighbours(points, queries):
    """Votes of the five nearest points, whose class is their place in thirds."""
    squares = jnp.sum((queries[:, None] - points) ** 2, axis=-1)
    negative, nearest = lax.top_k(-squares, 5)
    votes = jax.nn.one_hot(nearest // 7, 3).sum(axis=1)
    return jnp.sqrt(-negative), nearest, jnp.argmax(votes, axis=1)


def nearest_neighbours_numpy(points, queries):
    distances, nearest = scipy.spatial.KDTree(points).query(queries, 5)
    return distances, nearest, np.array([np.bincount(row // 7).argmax() for row in nearest])


# --- graphs

LENGTHS = np.array(
    [[0, 4, 0, 0, 8, 0], [4, 0, 7, 0, 3, 0], [0, 7, 0, 2, 0, 5], [0, 0, 2, 0, 0, 1],
     [8, 3, 0, 0, 0, 6], [0, 0, 5, 1, 6, 0]], np.float32,
)  # fmt: skip


def shortest_paths(lengths):
    """Dijkstra from node 0, Bellman and Ford from it, Floyd and Warshall from all."""
    weights = jnp.where(lengths > 0, lengths, jnp.inf)
    start = jnp.full(6, jnp.inf).at[0].set(0.0)

    def visit(_, state):
        distances, is_open = state
        node = jnp.argmin(jnp.where(is_open, distances, jnp.inf))
        return jnp.minimum(distances, distances[node] + weights[node]), is_open.at[node].set(False)

    def relax(state):
        _, distances = state
        return distances, jnp.minimum(distances, (distances[:, None] + weights).min(axis=0))

    def through(k, table):
        return jnp.minimum(table, table[:, k, None] + table[k])

    dijkstra, _ = lax.fori_loop(0, 6, visit, (start, jnp.full(6, True)))
    changes = lambda state: jnp.any(state[0] != state[1])  # noqa: E731
    _, bellman = lax.while_loop(changes, relax, relax((start, start)))
    table = lax.fori_loop(0, 6, through, jnp.where(jnp.eye(6, dtype=bool), 0.0, weights))
    return dijkstra, bellman, table


def shortest_paths_numpy(lengths):
    table = scipy.sparse.csgraph.shortest_path(lengths, method="J")
    return table[0], table[0], table


def spanning_tree(lengths):
    """Prim's tree: its total length, and each node's parent."""
    weights = jnp.where(lengths > 0, lengths, jnp.inf)

    def grow(state, _):
        best, parents, is_inside = state
        node = jnp.argmin(jnp.where(is_inside, jnp.inf, best))
        is_inside = is_inside.at[node].set(True)
        is_closer = ~is_inside & (weights[node] < best)
        parents = jnp.where(is_closer, node, parents)
        return (jnp.where(is_closer, weights[node], best), parents, is_inside), best[node]

    start = weights[0], jnp.zeros(6, int), jnp.arange(6) == 0
    (_, parents, _), lengths = lax.scan(grow, start, None, length=5)
    return lengths.sum(), parents[1:]


def spanning_tree_numpy(lengths):
    tree = scipy.sparse.csgraph.minimum_spanning_tree(lengths).toarray()
    _, parents = scipy.sparse.csgraph.breadth_first_order(tree, 0, directed=False)
    return tree.sum(), parents[1:]


# --- numbers


def primes_and_divisors(limit, pairs):
    """Eratosthenes' sieve, greatest common divisors, and the lengths of Collatz's paths."""
    numbers = jnp.arange(60)

    def strike(p, is_prime):
        return jnp.where(is_prime[p] & (numbers > p) & (numbers % p == 0), False, is_prime)

    is_prime = lax.fori_loop(2, 8, strike, (numbers > 1) & (numbers < limit))

    def divisor(a, b):
        return lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0]

    def collatz(n):
        def step(state):
            n, count = state
            return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

        return lax.while_loop(lambda state: state[0] != 1, step, (n, 0))[1]

    divisors = jax.vmap(divisor)(pairs[:, 0], pairs[:, 1])
    (places,) = jnp.nonzero(is_prime, size=20, fill_value=-1)
    return places, divisors, jax.vmap(collatz)(pairs[:, 0])


def primes_and_divisors_numpy(limit, pairs):
    primes = [n for n in range(2, int(limit)) if all(n % d for d in range(2, n))]

    def collatz(n):
        return 0 if n == 1 else 1 + collatz(n // 2 if n % 2 == 0 else 3 * n + 1)

    places = np.array(primes + [-1] * (20 - len(primes)))
    return places, np.gcd(*pairs.T), np.array([collatz(n) for n, _ in pairs])


def checksum(data):
    """CRC-32 by a table of 256 entries, in unsigned integers."""

    def shift(_, c):
        return jnp.where(c & 1 == 1, (c >> 1) ^ jnp.uint32(0xEDB88320), c >> 1)

    table = lax.fori_loop(0, 8, shift, jnp.arange(256, dtype=jnp.uint32))

    def absorb(crc, byte):
        return table[(crc ^ byte) & 0xFF] ^ (crc >> 8), None

    return ~lax.scan(absorb, jnp.uint32(0xFFFFFFFF), data.astype(jnp.uint32))[0]


def modular_power(base, exponent):
    """Powers modulo a prime by squaring, in 64-bit integers."""

    def step(state):
        result, base, exponent = state
        result = jnp.where(exponent % 2 == 1, result * base % 998244353, result)
        return result, base * base % 998244353, exponent // 2

    start = jnp.int64(1), base, exponent
    return lax.while_loop(lambda state: state[2] > 0, step, start)[0]


# --- tables


def knapsack(weights, values):
    """The best value for each capacity; then what to take, by going back."""
    capacity = jnp.arange(11)

    def row(best, item):
        weight, value = item
        taken = jnp.where(capacity >= weight, best[capacity - weight] + value, -1)
        return jnp.maximum(best, taken), taken > best

    best, is_better = lax.scan(row, jnp.zeros(11, jnp.int32), (weights, values))

    def back(left, entry):
        better, weight = entry
        return left - weight * better[left], better[left]

    return best[-1], lax.scan(back, 10, (is_better, weights), reverse=True)[1]


def knapsack_numpy(weights, values):
    chosen = ((np.arange(2**5)[:, None] >> np.arange(5)) & 1).astype(bool)
    fits = chosen[chosen @ weights <= 10]
    best = fits[np.argmax(fits @ values)]
    return best @ values, best


def record_table(keys, values):
    """Sorts records by two keys, and reports groups: sizes, sums, first places, running sums."""
    order = jnp.lexsort((keys[:, 1], keys[:, 0]))
    keys, values = keys[order], values[order]
    is_first = jnp.append(True, keys[1:, 0] != keys[:-1, 0])
    groups = jnp.cumsum(is_first) - 1
    sums = jax.ops.segment_sum(values, groups, num_segments=4, indices_are_sorted=True)

    def restart(left, right):
        return left[0] | right[0], jnp.where(right[0], right[1], left[1] + right[1])

    _, running = lax.associative_scan(restart, (is_first, values))
    return order, jnp.bincount(groups, length=4), sums, running


def record_table_numpy(keys, values):
    order = sorted(range(len(keys)), key=lambda i: (*keys[i], i))
    groups = [[i for i in order if keys[i, 0] == key] for key in np.unique(keys[:, 0])]
    groups += [[]] * (4 - len(groups))
    running = np.concatenate([np.cumsum(values[group]) for group in groups])
    sums = np.array([values[group].sum() for group in groups])
    return np.array(order), np.array([len(group) for group in groups]), sums, running


def run_lengths(x):
    """Run-length encoding into arrays of fixed size, and decoding."""
    is_first = jnp.append(True, x[1:] != x[:-1])
    starts = jnp.nonzero(is_first, size=12, fill_value=12)[0]
    counts = jnp.diff(starts, append=12)
    letters = x[jnp.minimum(starts, 11)]
    return counts, jnp.repeat(letters, counts, total_repeat_length=12)


def run_lengths_numpy(x):
    starts = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
    counts = np.zeros(12, int)
    counts[: len(starts)] = np.diff(np.append(starts, 12))
    return counts, x


def shuffled_batches(key, x):
    """An epoch over shuffled batches sees each element once; buckets by quantile are equal."""
    shuffled = jax.random.permutation(key, x)
    totals = lax.map(jnp.sum, shuffled.reshape(4, 5))
    edges = jnp.quantile(x, jnp.linspace(0, 1, 5)[1:-1])
    sizes = jnp.bincount(jnp.digitize(x, edges), length=4)
    return jnp.sort(shuffled), totals.sum(), sizes


def shuffled_batches_numpy(key, x):
    return np.sort(x), x.sum(), np.full(4, 5)


class Particle(NamedTuple):
    place: jax.Array
    is_alive: jax.Array


def population(places, births):
    """Records in slots: the dead are moved to the end, newborns fill the gap."""

    def season(particles, birth):
        place = particles.place + 1
        particles = Particle(place, particles.is_alive & (place % 5 != 0))
        order = jnp.argsort(~particles.is_alive, stable=True)
        particles = jax.tree.map(lambda x: x[order], particles)
        count = particles.is_alive.sum()
        return Particle(
            particles.place.at[count].set(birth, mode="drop"),
            particles.is_alive.at[count].set(True, mode="drop"),
        ), count

    particles, counts = lax.scan(season, Particle(places, places >= 0), births)
    return jnp.where(particles.is_alive, particles.place, -1), counts


def population_numpy(places, births):
    alive, counts = [p for p in places if p >= 0], []
    for birth in births:
        alive = [p + 1 for p in alive if (p + 1) % 5]
        counts.append(len(alive))
        alive = [*alive, birth][: len(places)]
    return np.array(alive + [-1] * (len(places) - len(alive))), np.array(counts)


KEYS = np.array([[2, 1], [0, 3], [2, 0], [1, 1], [0, 3], [2, 1], [0, 1]])
PAIRS = np.array([[12, 18], [7, 5], [27, 36], [100, 75]])
WEIGHTS, VALUES = np.array([5, 4, 6, 3, 2]), np.array([10, 40, 30, 50, 5])
LETTERS = np.array([1, 1, 4, 4, 4, 2, 1, 1, 1, 1, 3, 3])
TEXT = np.frombuffer(b"checksum", np.uint8)

PROGRAMS = [
    Program(k_means, (POINTS, POINTS[[0, 1, 20]]), k_means_numpy),
    Program(nearest_neighbours, (POINTS, normal(4, 2)), nearest_neighbours_numpy),
    Program(shortest_paths, (LENGTHS,), shortest_paths_numpy),
    Program(spanning_tree, (LENGTHS,), spanning_tree_numpy),
    Program(primes_and_divisors, (np.int32(50), PAIRS), primes_and_divisors_numpy),
    Program(checksum, (TEXT,), lambda data: np.uint32(zlib.crc32(data.tobytes()))),
    Program(
        modular_power,
        (np.int64(123456789), np.int64(10**12 + 39)),
        lambda b, e: np.int64(pow(int(b), int(e), 998244353)),
        x64=True,
    ),
    Program(knapsack, (WEIGHTS, VALUES), knapsack_numpy),
    Program(record_table, (KEYS, normal(7)), record_table_numpy),
    Program(run_lengths, (LETTERS,), run_lengths_numpy),
    Program(shuffled_batches, (np.array([0, 3], np.uint32), normal(20)), shuffled_batches_numpy),
    Program(population, (np.array([3, 1, 7, -1]), np.array([8, 2, 6, 4, 1])), population_numpy),
]


@over(PROGRAMS)
def test_discrete(program: Program) -> None:
    program.check()
