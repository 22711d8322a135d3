"""jax-md: soft spheres that come to rest, and molecular dynamics at constant energy."""

import jax
import jax.numpy as jnp
from jax_md import energy, minimize, simulate, space
from reporting import report

BOX = 6.0
displacement, shift = space.periodic(BOX)
places = jax.random.uniform(jax.random.key(0), (48, 2), maxval=BOX)
potential = energy.soft_sphere_pair(displacement)
start, descend = minimize.fire_descent(potential, shift)


@jax.jit
def relaxed(state):
    return jax.lax.fori_loop(0, 60, lambda _, s: descend(s), state)


begun = start(places)
rest = relaxed(begun).position
begin, move = simulate.nve(potential, shift, dt=1e-2)
moving = begin(jax.random.key(1), places, kT=0.1)
moved = jax.jit(lambda s: jax.lax.fori_loop(0, 20, lambda _, s: move(s), s))(moving)
report(
    energies=jnp.stack([potential(places), potential(rest), potential(moved.position)]),
    moved=moved.position[:8],
    timed=lambda: relaxed(begun).position,
)
