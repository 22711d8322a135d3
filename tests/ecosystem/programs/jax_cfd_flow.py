"""jax-cfd: a decaying turbulent flow in two dimensions, by finite volumes and by spectra."""

import jax
import jax.numpy as jnp
import jax_cfd.base as cfd
import jax_cfd.spectral as spectral
from reporting import report

SIZE = 24
grid = cfd.grids.Grid((SIZE, SIZE), domain=((0, 2 * jnp.pi), (0, 2 * jnp.pi)))
start = cfd.initial_conditions.filtered_velocity_field(jax.random.PRNGKey(0), grid, 1.5, 3)
step = cfd.funcutils.repeated(
    cfd.equations.semi_implicit_navier_stokes(density=1.0, viscosity=5e-2, dt=0.02, grid=grid),
    steps=10,
)
moved = jax.jit(step)
out = moved(start)
equation = spectral.equations.NavierStokes2D(5e-2, grid, smooth=True)
march = jax.jit(spectral.time_stepping.crank_nicolson_rk4(equation, 0.02))
vorticity = jnp.fft.rfftn(cfd.finite_differences.curl_2d(start).data)
for _ in range(4):
    vorticity = march(vorticity)
report(
    horizontal=out[0].data[::4, ::4],
    vertical=out[1].data[::4, ::4],
    vorticity=jnp.fft.irfftn(vorticity)[::4, ::4],
    divergence=jnp.max(jnp.abs(cfd.finite_differences.divergence(out).data)) < 1e-3,
    timed=lambda: [part.data for part in moved(start)],
)
