"""orthax: series of Chebyshev, Legendre and Hermite polynomials, fitted, derived, integrated."""

import jax
import jax.numpy as jnp
import orthax
from reporting import report

x = jnp.linspace(-1.0, 1.0, 30)
y = jnp.exp(x) * jnp.sin(3 * x)
chebyshev, legendre, hermite = orthax.chebyshev, orthax.legendre, orthax.hermite
fitted = chebyshev.chebfit(x, y, 8)


@jax.jit
def energy(series):
    derivative = chebyshev.chebder(chebyshev.chebmul(series, series))
    return jnp.sum(chebyshev.chebval(x, derivative) ** 2)


nodes, weights = orthax.legendre.leggauss(8)
slopes = jax.jit(jax.grad(energy))
report(
    fitted=fitted,
    values=chebyshev.chebval(x, fitted),
    integral=chebyshev.chebint(fitted),
    converted=chebyshev.cheb2poly(fitted),
    legendre=legendre.legval(x, legendre.legfit(x, y, 6)),
    hermite=hermite.hermval(x, fitted[:4]),
    quadrature=jnp.sum(weights * jnp.cos(nodes)),
    energy=energy(fitted),
    slopes=slopes(fitted),
    timed=lambda: slopes(fitted),
)
