"""bayex: Bayesian optimization of a function by Gaussian processes."""

import bayex
import jax
import jax.numpy as jnp
import numpy as np
from reporting import report


def height(x):
    return float(-(1.4 - 3 * x) * np.sin(18 * x))


optimizer = bayex.Optimizer({"x": bayex.domain.Real(0.0, 2.0)}, maximize=True, acq="EI")
places = [0.0, 0.5, 1.0, 1.6]
state = optimizer.init([height(x) for x in places], {"x": places})
first = optimizer.sample(jax.random.key(0), state)
asked = [float(first["x"][0])]
state = optimizer.fit(state, height(asked[0]), first)
for index in range(1, 12):
    place = optimizer.sample(jax.random.key(index), state)
    state = optimizer.fit(state, height(float(place["x"][0])), place)
best = max(height(float(x)) for x in state.params["x"][: len(places) + 12])
report(
    first=asked,
    best_is_near=best > 3.0,
    timed=lambda: jnp.asarray(optimizer.sample(jax.random.key(99), state)["x"]),
)
