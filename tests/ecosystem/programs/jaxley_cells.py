"""jaxley: a neuron of branches with ion channels, and how its voltage depends on its shape."""

import jax
import jax.numpy as jnp
import jaxley as jx
from jaxley.channels import HH, Leak
from reporting import report

compartment = jx.Compartment()
branch = jx.Branch(compartment, ncomp=2)
cell = jx.Cell([branch] * 3, parents=[-1, 0, 0])
cell.insert(Leak())
cell.branch(0).insert(HH())
current = jx.step_current(i_delay=0.5, i_dur=1.0, i_amp=0.2, delta_t=0.025, t_max=2.0)
cell.branch(0).loc(0.0).stimulate(current)
cell.branch(0).loc(0.0).record()
cell.branch(2).loc(1.0).record()
cell.make_trainable("radius")
parameters = cell.get_parameters()
voltages = jax.jit(lambda p: jx.integrate(cell, params=p))(parameters)


@jax.jit
@jax.value_and_grad
def mean_voltage(parameters):
    return jnp.mean(jx.integrate(cell, params=parameters))


mean, slopes = mean_voltage(parameters)
report(
    voltages=voltages[:, ::4],
    mean=mean,
    slopes=slopes[0]["radius"],
    timed=lambda: mean_voltage(parameters),
)
