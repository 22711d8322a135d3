"""dynamiqs: a damped, driven oscillator's master equation, and its gradient."""

import dynamiqs as dq
import jax
import jax.numpy as jnp
from reporting import report

SIZE = 12
lower = dq.destroy(SIZE)
hamiltonian = dq.dag(lower) @ lower + 0.1 * (lower + dq.dag(lower))
times = jnp.linspace(0.0, 2.0, 11)


@jax.jit
def photons(rate):
    solved = dq.mesolve(
        hamiltonian,
        [jnp.sqrt(rate) * lower],
        dq.coherent(SIZE, 1.0),
        times,
        exp_ops=[dq.number(SIZE)],
        progress_meter=False,
    )
    return solved.expects[0].real


rate = jnp.float32(0.3)
slope = jax.jit(jax.grad(lambda rate: photons(rate)[-1]))(rate)
report(photons=photons(rate), slope=slope, timed=lambda: photons(rate))
