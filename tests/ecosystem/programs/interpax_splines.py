"""interpax: splines through points of one and two dimensions, their derivatives and integrals."""

import interpax
import jax
import jax.numpy as jnp
from reporting import report

knots = jnp.linspace(0.0, 6.0, 25)
values = jnp.sin(knots) + 0.1 * knots
wanted = jnp.linspace(0.1, 5.9, 40)
results = {
    method: interpax.interp1d(wanted, knots, values, method=method)
    for method in ("nearest", "linear", "cubic", "cubic2", "catmull-rom", "monotonic", "akima")
}
grid = jnp.sin(knots)[:, None] * jnp.cos(knots)[None, :]


@jax.jit
def surface(wanted):
    return interpax.interp2d(wanted, wanted[::-1], knots, knots, grid, method="cubic")


spline = interpax.CubicSpline(knots, values)
report(
    **results,
    surface=surface(wanted),
    slopes=interpax.interp1d(wanted, knots, values, method="cubic", derivative=1),
    integral=spline.integrate(0.5, 5.5),
    waves=interpax.fft_interp1d(jnp.sin(jnp.linspace(0, 2 * jnp.pi, 16, endpoint=False)), 48),
    gradient=jax.grad(lambda x: jnp.sum(surface(x)))(wanted),
    timed=lambda: surface(wanted),
)
