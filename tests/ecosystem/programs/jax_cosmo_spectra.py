"""jax-cosmo: distances, growth and power spectra of a universe, and how they depend on matter."""

import jax
import jax.numpy as jnp
import jax_cosmo
from reporting import report

scale = jnp.linspace(0.3, 1.0, 8)
waves = jnp.logspace(-2, 0, 12)


def universe(matter):
    return jax_cosmo.Planck15(Omega_c=matter)


@jax.jit
def spectrum(matter):
    return jax_cosmo.power.linear_matter_power(universe(matter), waves)


@jax.jit
def bent(matter):
    return jax_cosmo.power.nonlinear_matter_power(universe(matter), waves, a=jnp.array(1.0))


slopes = jax.jit(jax.jacfwd(spectrum))
report(
    distances=jax_cosmo.background.radial_comoving_distance(universe(0.25), scale),
    growth=jax_cosmo.background.growth_factor(universe(0.25), scale),
    spectrum=spectrum(0.25),
    bent=bent(0.25),
    slopes=slopes(0.25),
    timed=lambda: spectrum(0.25),
)
