"""Grids: cellular automata, spins, fractals, images."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.ndimage
from support.program_cases import Program, normal, over

import axir as jax
import axir.numpy as jnp
from axir import lax

RANDOM = np.random.default_rng(0)
CELLS = RANDOM.integers(0, 2, (8, 8)).astype(np.int32)
IMAGE = normal(9, 8)


def game_of_life(cells):
    """Generations until the population is one that was there two generations before."""

    def generation(cells):
        neighbours = sum(
            jnp.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j
        )
        return ((neighbours == 3) | ((cells == 1) & (neighbours == 2))).astype(cells.dtype)

    def goes_on(state):
        before, _, now, count = state
        return jnp.any(before != now) & (count < 200)

    def advance(state):
        _, between, now, count = state
        return between, now, generation(now), count + 1

    first = generation(cells)
    return lax.while_loop(goes_on, advance, (cells, first, generation(first), 2))[2:]


def game_of_life_numpy(cells):
    kernel = np.array([[2, 2, 2], [2, 1, 2], [2, 2, 2]])
    history = [cells]
    while len(history) < 3 or (history[-3] != history[-1]).any():
        counts = scipy.ndimage.convolve(history[-1], kernel, mode="wrap")
        history.append(np.isin(counts, (5, 6, 7)).astype(cells.dtype))
    return history[-1], len(history) - 1


def elementary_automaton(row, rule):
    """Wolfram's automata: the rule's bits are looked up by neighbourhood."""
    table = (rule >> jnp.arange(8)) & 1

    def step(row, _):
        codes = 4 * jnp.roll(row, 1) + 2 * row + jnp.roll(row, -1)
        return table[codes], row

    return lax.scan(step, row, None, length=10)[1]


def elementary_automaton_numpy(row, rule):
    rows = [list(row)]
    for _ in range(9):
        last = rows[-1]
        codes = [4 * last[i - 1] + 2 * last[i] + last[(i + 1) % 8] for i in range(8)]
        rows.append([int(f"{rule:08b}"[7 - code]) for code in codes])
    return np.array(rows)


def ising_model(spins, uniforms):
    """Metropolis sweeps over the colours of a checkerboard; the energy after each."""
    colour = jnp.indices(spins.shape).sum(axis=0) % 2

    def field(spins):
        return sum(jnp.roll(spins, shift, axis) for shift in (-1, 1) for axis in (0, 1))

    def sweep(spins, uniforms):
        for parity in (0, 1):
            cost = 2 * spins * field(spins)
            is_flipped = (colour == parity) & (uniforms[parity] < jnp.exp(-0.4 * cost))
            spins = jnp.where(is_flipped, -spins, spins)
        return spins, -jnp.sum(spins * field(spins)) // 2

    return lax.scan(sweep, spins, uniforms)


def ising_model_numpy(spins, uniforms):
    energies, spins = [], spins.copy()
    for draws in uniforms:
        for i, j in sorted(np.ndindex(spins.shape), key=lambda place: sum(place) % 2):
            around = spins[i - 1, j] + spins[i, j - 1]
            around += spins[(i + 1) % len(spins), j] + spins[i, (j + 1) % len(spins)]
            if draws[(i + j) % 2, i, j] < np.exp(-0.8 * spins[i, j] * around):
                spins[i, j] *= -1
        pairs = spins * np.roll(spins, 1, 0) + spins * np.roll(spins, 1, 1)
        energies.append(-pairs.sum())
    return spins, np.array(energies)


def mandelbrot(centres):
    """The number of steps until each point escapes, lane by lane in one loop."""

    def escape_time(c):
        def goes_on(state):
            z, count = state
            return (jnp.abs(z) <= 2) & (count < 30)

        return lax.while_loop(goes_on, lambda s: (s[0] ** 2 + c, s[1] + 1), (0 * c, 0))[1]

    return jax.vmap(jax.vmap(escape_time))(centres)


def mandelbrot_numpy(centres):
    def escape_time(c):
        z, count = 0, 0
        while abs(z) <= 2 and count < 30:
            z, count = z * z + c, count + 1
        return count

    return np.vectorize(escape_time)(centres)


def sandpile(grains):
    """Heaps of four topple onto their neighbours until none is left."""

    def topple(grains):
        falls = grains // 4
        around = jnp.pad(falls, 1)
        received = around[2:, 1:-1] + around[:-2, 1:-1] + around[1:-1, 2:] + around[1:-1, :-2]
        return grains - 4 * falls + received

    return lax.while_loop(lambda g: jnp.any(g > 3), topple, grains)


def sandpile_numpy(grains):
    padded = np.pad(grains, 1)
    while (heaps := np.argwhere(padded[1:-1, 1:-1] > 3) + 1).size:
        i, j = heaps[-1]
        padded[i, j] -= 4
        for place in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            padded[place] += 1
    return padded[1:-1, 1:-1]


def connected_components(mask):
    """Labels spread to neighbours until they stand still."""
    size = mask.size
    labels = jnp.where(mask, jnp.arange(size).reshape(mask.shape), size)

    def spread(state):
        labels, _ = state
        padded = jnp.pad(labels, 1, constant_values=size)
        shifted = (padded[2:, 1:-1], padded[:-2, 1:-1], padded[1:-1, 2:], padded[1:-1, :-2])
        lowest = jnp.minimum(labels, jnp.stack(shifted).min(axis=0))
        lowest = jnp.where(mask, lowest, size)
        return lowest, jnp.any(lowest != labels)

    return lax.while_loop(lambda state: state[1], spread, (labels, True))[0]


def connected_components_numpy(mask):
    numbers, count = scipy.ndimage.label(mask)
    labels = np.full(mask.shape, mask.size)
    for component in range(1, count + 1):
        labels[numbers == component] = np.flatnonzero(numbers == component).min()
    return labels


def edge_filter(image):
    """A Gaussian blur, then the size of Sobel's gradient."""
    blur = jnp.array([0.25, 0.5, 0.25])
    smoothed = jax.scipy.signal.convolve2d(image, jnp.outer(blur, blur), mode="same")
    sobel = jnp.outer(jnp.array([1.0, 2.0, 1.0]), jnp.array([1.0, 0.0, -1.0]))
    across, down = (
        lax.conv(smoothed[None, None], kernel[None, None], (1, 1), "SAME")[0, 0]
        for kernel in (sobel, sobel.T)
    )
    return jnp.sqrt(across**2 + down**2 + 1e-6)


def edge_filter_numpy(image):
    blur = np.array([0.25, 0.5, 0.25])
    smoothed = scipy.ndimage.convolve1d(image, blur, axis=0, mode="constant")
    smoothed = scipy.ndimage.convolve1d(smoothed, blur, axis=1, mode="constant")
    across = scipy.ndimage.sobel(smoothed, axis=1, mode="constant")
    down = scipy.ndimage.sobel(smoothed, axis=0, mode="constant")
    return np.sqrt(across**2 + down**2 + 1e-6)


def median_and_histogram(image):
    """A median filter by gathered windows; then equalization by the distribution of grey."""
    padded = jnp.pad(image, 1, mode="edge")
    windows = jnp.stack([padded[i : i + 9, j : j + 8] for i in range(3) for j in range(3)])
    filtered = jnp.median(windows, axis=0)
    counts, edges = jnp.histogram(filtered, bins=6)
    levels = jnp.cumsum(counts) / filtered.size
    bins = jnp.clip(jnp.searchsorted(edges, filtered, side="right") - 1, 0, 5)
    return filtered, counts, levels[bins]


def median_and_histogram_numpy(image):
    filtered = scipy.ndimage.median_filter(image, 3, mode="nearest")
    counts, edges = np.histogram(filtered, bins=6)
    bins = np.minimum(np.digitize(filtered, edges) - 1, 5)
    return filtered, counts, (np.cumsum(counts) / filtered.size)[bins]


def poisson_equation(charges):
    """Red and black relaxation until the residual is small."""
    colour = jnp.indices(charges.shape).sum(axis=0) % 2

    def around(u):
        u = jnp.pad(u, 1)
        return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]

    def relax(u):
        for parity in (0, 1):
            change = (around(u) + charges) / 4 - u
            u = u + 1.4 * jnp.where(colour == parity, change, 0.0)
        return u

    def residual(u):
        return jnp.max(jnp.abs(4 * u - around(u) - charges))

    return lax.while_loop(lambda u: residual(u) > 1e-5, relax, jnp.zeros_like(charges))


def poisson_equation_numpy(charges):
    n, m = charges.shape
    second = [2 * np.eye(k) - np.eye(k, k=1) - np.eye(k, k=-1) for k in (n, m)]
    return scipy.linalg.solve_sylvester(second[0], second[1], charges)


def bilinear_rotation(image, angle):
    """An image turned around its middle."""
    rows, columns = jnp.indices(image.shape)
    y, x = rows - 4.0, columns - 3.5
    y, x = jnp.cos(angle) * y - jnp.sin(angle) * x, jnp.sin(angle) * y + jnp.cos(angle) * x
    y, x = y + 4.0, x + 3.5
    top, left = jnp.floor(y).astype(int), jnp.floor(x).astype(int)

    def pixel(i, j):
        inside = (i >= 0) & (i < image.shape[0]) & (j >= 0) & (j < image.shape[1])
        return jnp.where(inside, image[i, j], 0.0)

    dy, dx = y - top, x - left
    upper = (1 - dx) * pixel(top, left) + dx * pixel(top, left + 1)
    return (1 - dy) * upper + dy * ((1 - dx) * pixel(top + 1, left) + dx * pixel(top + 1, left + 1))


def bilinear_rotation_numpy(image, angle):
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    middle = np.array([4, 3.5])
    padded = np.pad(image, 2)
    moved = scipy.ndimage.affine_transform(padded, turn, middle + 2 - turn @ (middle + 2), order=1)
    return moved[2:-2, 2:-2]


SPINS = RANDOM.choice(np.array([-1, 1], np.int32), (6, 6))
UNIFORMS = RANDOM.uniform(size=(4, 2, 6, 6)).astype(np.float32)
PLANE = np.linspace(-2, 0.6, 7) + 1j * np.linspace(-1.1, 1.1, 5)[:, None]

PROGRAMS = [
    Program(game_of_life, (CELLS,), game_of_life_numpy),
    Program(elementary_automaton, (CELLS[0], np.int32(110)), elementary_automaton_numpy),
    Program(ising_model, (SPINS, UNIFORMS), ising_model_numpy),
    Program(mandelbrot, (PLANE.astype(np.complex64),), mandelbrot_numpy),
    Program(sandpile, (RANDOM.integers(0, 9, (5, 6)).astype(np.int32),), sandpile_numpy),
    Program(connected_components, (CELLS == 1,), connected_components_numpy),
    Program(edge_filter, (IMAGE,), edge_filter_numpy, gradient=(0,)),
    Program(median_and_histogram, (IMAGE,), median_and_histogram_numpy),
    Program(poisson_equation, (normal(5, 6),), poisson_equation_numpy, tolerance=1e-4),
    Program(bilinear_rotation, (IMAGE, np.float32(0.4)), bilinear_rotation_numpy),
]


@over(PROGRAMS)
def test_grids(program: Program) -> None:
    program.check()
