"""exponax: partial differential equations by exponential integrators, and a gradient."""

import exponax as ex
import jax
import jax.numpy as jnp
from reporting import report

POINTS = 48
stepper = ex.stepper.KuramotoSivashinskyConservative(1, 60.0, POINTS, 0.1)
burgers = ex.stepper.Burgers(2, 1.0, 16, 0.01, diffusivity=0.05)
start = ex.ic.RandomTruncatedFourierSeries(1, cutoff=4)(POINTS, key=jax.random.key(0))
plane = ex.ic.RandomTruncatedFourierSeries(2, cutoff=3)(16, key=jax.random.key(1))
rolled = jax.jit(ex.rollout(stepper, 40))
repeated = jax.jit(ex.repeat(burgers, 8))
slopes = jax.jit(jax.grad(lambda u: jnp.mean(ex.repeat(stepper, 8)(u) ** 2)))
report(
    waves=rolled(start)[::8, 0, ::4],
    burgers=repeated(jnp.concatenate([plane, -plane]))[:, ::4, ::4],
    slopes=slopes(start),
    derivative=ex.derivative(start, 60.0),
    timed=lambda: rolled(start),
)
