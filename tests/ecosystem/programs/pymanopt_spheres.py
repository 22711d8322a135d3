"""Pymanopt: a dominant eigenvector and a Procrustes problem, on manifolds, by JAX's gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pymanopt
from reporting import report

random = np.random.default_rng(0)
matrix = random.normal(size=(12, 12)).astype(np.float32)
matrix = matrix @ matrix.T
sphere = pymanopt.manifolds.Sphere(12)


@pymanopt.function.jax(sphere)
def quotient(x):
    return -x @ matrix @ x / 10


rotations = pymanopt.manifolds.SpecialOrthogonalGroup(3)
points = random.normal(size=(10, 3)).astype(np.float32)
turn = np.linalg.qr(random.normal(size=(3, 3)))[0].astype(np.float32)
turn *= np.sign(np.linalg.det(turn))


@pymanopt.function.jax(rotations)
def misfit(x):
    return jnp.sum((points @ x - points @ turn) ** 2)


optimizer = pymanopt.optimizers.SteepestDescent(max_iterations=60, verbosity=0)
first = np.ones(12) / np.sqrt(12)
found = optimizer.run(pymanopt.Problem(sphere, quotient), initial_point=first)
aligned = optimizer.run(pymanopt.Problem(rotations, misfit), initial_point=np.eye(3))
gradient = jax.jit(jax.grad(lambda x: -x @ matrix @ x / 10))
report(
    value=found.cost,
    is_aligned=aligned.cost < 1e-2,
    slopes=quotient.get_gradient_operator()(first),
    timed=lambda: gradient(first),
)
