"""Matrices: eigenvalues by iteration, systems with structure, components, transforms, splines."""

from __future__ import annotations

import functools

import numpy as np
import scipy.interpolate
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.special
from support.program_cases import Program, normal, over

import axir as jax
import axir.numpy as jnp
from axir import lax

SYMMETRIC = (normal(4, 4) + normal(4, 4).T + 4 * np.diag([1, 2, 4, 8])).astype(np.float32)
DATA = normal(12, 4) @ normal(4, 4, seed=1)
LINKS = np.array([[0, 1], [0, 2], [1, 2], [2, 0], [3, 2], [3, 0]])


def power_iteration(matrix):
    """The largest eigenvalue and its vector, by products alone."""

    def step(v, _):
        v = matrix @ v
        return v / jnp.linalg.norm(v), None

    v, _ = lax.scan(step, jnp.ones(4), None, length=40)
    v = v * jnp.sign(v[3])
    return v @ matrix @ v, v


def power_iteration_numpy(matrix):
    values, vectors = np.linalg.eig(matrix)
    vector = vectors[:, values.argmax()]
    return vector @ matrix @ vector, vector * np.sign(vector[3])


def qr_iteration(matrix):
    """Eigenvalues by repeated factorization, until what is below the diagonal is small."""

    def step(a):
        q, r = jnp.linalg.qr(a)
        return r @ q

    def goes_on(a):
        return jnp.linalg.norm(jnp.tril(a, -1)) > 1e-4

    return jnp.sort(jnp.diag(lax.while_loop(goes_on, step, matrix)))


def lanczos(matrix, v):
    """A tridiagonal matrix with the same extreme eigenvalues, by orthogonalized products."""

    def step(carry, _):
        basis, index = carry
        v = basis[index]
        w = matrix @ v
        w = w - basis.T @ (basis @ w)
        w = w - basis.T @ (basis @ w)
        size = jnp.linalg.norm(w)
        return (basis.at[index + 1].set(w / size), index + 1), (v @ matrix @ v, size)

    basis = jnp.zeros((5, 4)).at[0].set(v / jnp.linalg.norm(v))
    _, (diagonal, off) = lax.scan(step, (basis, 0), None, length=4)
    tridiagonal = jnp.diag(diagonal) + jnp.diag(off[:-1], 1) + jnp.diag(off[:-1], -1)
    return jnp.linalg.eigvalsh(tridiagonal)


def page_rank(links, count):
    """Ranks from a list of links, which need no matrix, until they stand still."""
    sources, targets = links.T
    degrees = jnp.zeros(count.shape).at[sources].add(1.0)

    def step(state):
        ranks, _ = state
        shares = (ranks / degrees)[sources]
        moved = 0.15 / 4 + 0.85 * jnp.zeros_like(ranks).at[targets].add(shares)
        return moved, jnp.abs(moved - ranks).sum()

    start = (jnp.full(count.shape, 0.25), 1.0)
    return lax.while_loop(lambda state: state[1] > 1e-6, step, start)[0]


def page_rank_numpy(links, count):
    matrix = np.zeros((4, 4))
    matrix[links[:, 1], links[:, 0]] = 1
    matrix = 0.15 / 4 + 0.85 * matrix / matrix.sum(axis=0)
    values, vectors = np.linalg.eig(matrix)
    leading = vectors[:, values.real.argmax()].real
    return leading / leading.sum()


def principal_components(data):
    """Scores by singular values, projections back, and what share of the variance they keep."""
    centred = data - data.mean(axis=0)
    _, sizes, axes = jnp.linalg.svd(centred, full_matrices=False)
    axes = axes[:2] * jnp.sign(axes[:2, :1])
    return centred @ axes.T, centred @ axes.T @ axes, sizes[:2] ** 2 / jnp.sum(sizes**2)


def principal_components_numpy(data):
    values, vectors = np.linalg.eigh(np.cov(data.T))
    axes = vectors[:, :1:-1] * np.sign(vectors[:1, :1:-1])
    scores = (data - data.mean(axis=0)) @ axes
    return scores, scores @ axes.T, values[:1:-1] / values.sum()


def conjugate_gradients(diagonal, b):
    """Solves with a matrix that is a function, differentiated as a linear solve."""

    def matvec(x):
        padded = jnp.pad(x, 1)
        return (3 + diagonal**2) * x - padded[2:] - padded[:-2]

    def solve(matvec, b):
        def step(state):
            x, r, p, size = state
            image = matvec(p)
            rate = size / (p @ image)
            r = r - rate * image
            new = r @ r
            return x + rate * p, r, r + new / size * p, new

        start = (jnp.zeros_like(b), b, b, b @ b)
        return lax.while_loop(lambda state: state[3] > 1e-12, step, start)[0]

    return lax.custom_linear_solve(matvec, b, solve, symmetric=True)


def conjugate_gradients_numpy(diagonal, b):
    n = len(b)
    return np.linalg.solve(np.diag(3 + diagonal**2) - np.eye(n, k=1) - np.eye(n, k=-1), b)


def correlated_samples(covariance, noise):
    """Samples by Cholesky's factor, and their likelihood by substitution."""
    factor = jnp.linalg.cholesky(covariance)
    samples = noise @ factor.T
    whitened = jax.scipy.linalg.solve_triangular(factor, samples.T, lower=True)
    log_determinant = 2 * jnp.sum(jnp.log(jnp.diag(factor)))
    return samples, -0.5 * (jnp.sum(whitened**2, axis=0) + log_determinant)


def correlated_samples_numpy(covariance, noise):
    factor = scipy.linalg.cholesky((covariance + covariance.T) / 2, lower=True)
    log_determinant = np.linalg.slogdet((covariance + covariance.T) / 2)[1]
    return noise @ factor.T, -0.5 * ((noise**2).sum(axis=1) + log_determinant)


def fourier_convolution(signal, kernel):
    size = signal.size + kernel.size - 1
    spectrum = jnp.fft.rfft(signal, size) * jnp.fft.rfft(kernel, size)
    return jnp.fft.irfft(spectrum, size)


def cubic_spline(knots, values, x):
    """A natural spline: second derivatives by a tridiagonal system, then a look-up."""
    h = jnp.diff(knots)
    slopes = jnp.diff(values) / h
    n = knots.size - 2
    lower = jnp.concatenate([jnp.zeros(1), h[1:-1]])
    upper = jnp.concatenate([h[1:-1], jnp.zeros(1)])
    middle = 2 * (h[:-1] + h[1:])
    inner = lax.linalg.tridiagonal_solve(lower, middle, upper, 6 * jnp.diff(slopes)[:, None])
    bends = jnp.zeros(n + 2).at[1:-1].set(inner[:, 0])
    i = jnp.clip(jnp.searchsorted(knots, x, side="right") - 1, 0, n)
    t = x - knots[i]
    linear = slopes[i] - h[i] * (2 * bends[i] + bends[i + 1]) / 6
    cubic = (bends[i + 1] - bends[i]) / (6 * h[i])
    return values[i] + t * (linear + t * (bends[i] / 2 + t * cubic))


def cubic_spline_numpy(knots, values, x):
    return scipy.interpolate.CubicSpline(knots, values, bc_type="natural")(x)


def sinkhorn(costs):
    """Optimal transport with entropy: the plan, whose margins are uniform, until they are."""

    def scale(state):
        f, g, _ = state
        f = -0.2 * jax.nn.logsumexp((g[None] - costs) / 0.2, axis=1) + 0.2 * jnp.log(1 / 3)
        g = -0.2 * jax.nn.logsumexp((f[:, None] - costs) / 0.2, axis=0) + 0.2 * jnp.log(1 / 4)
        rows = jnp.exp((f[:, None] + g - costs) / 0.2).sum(axis=1)
        return f, g, jnp.abs(rows - 1 / 3).max()

    start = (jnp.zeros(3), jnp.zeros(4), 1.0)
    f, g, _ = lax.while_loop(lambda state: state[2] > 1e-6, scale, start)
    return jnp.exp((f[:, None] + g - costs) / 0.2)


def sinkhorn_numpy(costs):
    kernel, v = np.exp(-costs / 0.2), np.ones(4)
    for _ in range(2000):
        u = 1 / 3 / (kernel @ v)
        v = 1 / 4 / (kernel.T @ u)
    return u[:, None] * kernel * v


def procrustes(a, b):
    """The rotation that takes one set of points closest to another."""
    u, _, vt = jnp.linalg.svd((a - a.mean(axis=0)).T @ (b - b.mean(axis=0)))
    signs = jnp.array([1.0, 1.0, 1.0]).at[-1].set(jnp.linalg.det(u @ vt))
    return (u * signs) @ vt


def procrustes_numpy(a, b):
    return scipy.spatial.transform.Rotation.align_vectors(a - a.mean(axis=0), b - b.mean(axis=0))[
        0
    ].as_matrix()


def gauss_legendre(f_scale):
    """Nodes by the eigenvalues of Jacobi's matrix, in double precision; then an integral."""
    k = jnp.arange(1, 8)
    off = k / jnp.sqrt(4 * k**2 - 1.0)
    nodes, vectors = jnp.linalg.eigh(jnp.diag(off, 1) + jnp.diag(off, -1))
    weights = 2 * vectors[0] ** 2
    return nodes, weights, weights @ jnp.exp(f_scale * nodes)


def gauss_legendre_numpy(f_scale):
    nodes, weights = scipy.special.roots_legendre(8)
    return nodes, weights, 2 * np.sinh(f_scale) / f_scale


def determinant_by_elimination(matrix):
    """Gauss's elimination with pivoting, by exchanges of rows in a loop."""

    def step(k, state):
        a, determinant = state
        candidates = jnp.where(jnp.arange(4) >= k, jnp.abs(a[:, k]), -1.0)
        pivot = jnp.argmax(candidates)
        order = jnp.arange(4).at[k].set(pivot).at[pivot].set(k)
        a = a[order]
        determinant = determinant * a[k, k] * jnp.where(pivot == k, 1.0, -1.0)
        factors = jnp.where(jnp.arange(4) > k, a[:, k] / a[k, k], 0.0)
        return a - jnp.outer(factors, a[k]), determinant

    return functools.partial(lax.fori_loop, 0, 4, step)((matrix, 1.0))[1]


KNOTS = np.array([0, 0.7, 1.5, 2, 3.2, 4], np.float32)
COVARIANCE = (np.eye(3) + normal(3, 3) @ normal(3, 3).T).astype(np.float32)
ROTATION = scipy.linalg.expm(np.cross(np.eye(3), [0.3, -1, 0.5])).astype(np.float32)

PROGRAMS = [
    Program(power_iteration, (SYMMETRIC,), power_iteration_numpy),
    Program(qr_iteration, (SYMMETRIC,), np.linalg.eigvalsh),
    Program(lanczos, (SYMMETRIC, normal(4)), lambda a, v: np.linalg.eigvalsh(a)),
    Program(page_rank, (LINKS, np.zeros(4, np.float32)), page_rank_numpy),
    Program(principal_components, (DATA,), principal_components_numpy),
    Program(
        conjugate_gradients, (normal(6), normal(6, seed=1)), conjugate_gradients_numpy,
        gradient=(0, 1),
    ),
    Program(
        correlated_samples, (COVARIANCE, normal(4, 3)), correlated_samples_numpy, gradient=(0,)
    ),
    Program(fourier_convolution, (normal(9), normal(4)), np.convolve, gradient=(0, 1)),
    Program(
        cubic_spline, (KNOTS, normal(6), np.linspace(0.1, 3.9, 9, dtype=np.float32)),
        cubic_spline_numpy, gradient=(1, 2), tolerance=2e-5,
    ),
    Program(sinkhorn, (normal(3, 4) ** 2,), sinkhorn_numpy, tolerance=2e-5),
    Program(procrustes, (normal(7, 3) @ ROTATION, normal(7, 3)), procrustes_numpy),
    Program(gauss_legendre, (np.float64(1.3),), gauss_legendre_numpy, x64=True, tolerance=1e-12),
    Program(
        determinant_by_elimination, (normal(4, 4),), np.linalg.det, gradient=(0,), tolerance=1e-4
    ),
]  # fmt: skip


@over(PROGRAMS)
def test_linear_algebra(program: Program) -> None:
    program.check()
