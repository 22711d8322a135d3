"""jaxoplanet: light curves of planets that pass before a star with a dark limb."""

import jax
import jax.numpy as jnp
from jaxoplanet.core.kepler import kepler
from jaxoplanet.light_curves import limb_dark_light_curve
from jaxoplanet.orbits import TransitOrbit
from reporting import report

times = jnp.linspace(-0.15, 0.15, 50)


@jax.jit
def light(params):
    orbit = TransitOrbit(
        period=3.4, time_transit=0.0, duration=0.12, impact_param=params[0], radius_ratio=params[1]
    )
    return limb_dark_light_curve(orbit, params[2:])(times)


params = jnp.array([0.2, 0.1, 0.3, 0.2])
slopes = jax.jit(jax.grad(lambda params: jnp.sum(light(params) ** 2)))
sine, cosine = kepler(jnp.linspace(0.0, 6.0, 9), jnp.full(9, 0.3))
report(
    light=light(params),
    slopes=slopes(params),
    sine=sine,
    cosine=cosine,
    timed=lambda: slopes(params),
)
