"""quadax: integrals by adaptive rules, over infinite intervals too, and their derivatives."""

import jax
import jax.numpy as jnp
import quadax
from reporting import report


def bell(t, width):
    return jnp.exp(-((t / width) ** 2)) * jnp.cos(t)


@jax.jit
def integral(width):
    value, _ = quadax.quadgk(bell, [-jnp.inf, jnp.inf], args=(width,), epsabs=1e-5, epsrel=1e-5)
    return value


wave = lambda t: t * jnp.sin(5 * t)  # noqa: E731
ends = [0.0, 3.0]
widths = jnp.array([0.5, 1.0, 2.0])
report(
    integrals=jax.vmap(integral)(widths),
    slopes=jax.vmap(jax.grad(integral))(widths),
    clenshaw=quadax.quadcc(wave, ends, epsabs=1e-5, epsrel=1e-5)[0],
    romberg=quadax.romberg(wave, ends, epsabs=1e-5, epsrel=1e-5)[0],
    sampled=quadax.simpson(jnp.sin(widths), x=widths),
    running=quadax.cumulative_trapezoid(jnp.sin(widths), x=widths),
    timed=lambda: integral(1.0),
)
