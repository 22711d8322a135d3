"""jaxquantum: states, displaced and squeezed, and a master equation with losses."""

import jax
import jax.numpy as jnp
import jaxquantum as jqt
from reporting import report

SIZE = 10
lower = jqt.destroy(SIZE)
count = lower.dag() @ lower
start = (jqt.displace(SIZE, 0.5) @ jqt.basis(SIZE, 0)).to_dm()
times = jnp.linspace(0.0, 1.0, 11)
options = jqt.SolverOptions.create(progress_meter=False)


@jax.jit
def photons(rate):
    losses = jqt.Qarray.from_list([jnp.sqrt(rate) * lower])
    states = jqt.mesolve(3.0 * count, start, times, c_ops=losses, solver_options=options)
    return jnp.real(jqt.overlap(count, states))


squeezed = jqt.squeeze(SIZE, 0.3) @ jqt.basis(SIZE, 0)
report(
    photons=photons(jnp.array(0.7)),
    squeezed=jnp.abs(squeezed.data[:, 0]) ** 2,
    entangled=jnp.abs((jqt.basis(2, 0) ^ jqt.basis(2, 1)).data[:, 0]),
    timed=lambda: photons(jnp.array(0.7)),
)
