"""s2fft: transforms on the sphere, there and back, in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
from reporting import report

jax.config.update("jax_enable_x64", True)
import s2fft  # noqa: E402  # it looks at the precision as it is imported

SPIN = np.int64(0)  # s2fft asks for its size when nothing is compiled
results = {}
for limit in (4, 8, 16, 24):
    random = np.random.default_rng(limit)
    flm = jnp.asarray(s2fft.utils.signal_generator.generate_flm(random, L=limit))
    signal = s2fft.inverse_jax(flm, L=limit, spin=SPIN)
    again = s2fft.forward_jax(signal, L=limit, spin=SPIN)

    @jax.jit
    def there_and_back(flm, limit=limit):
        there = s2fft.inverse_jax(flm, L=limit, spin=SPIN)
        return s2fft.forward_jax(there, L=limit, spin=SPIN)

    in_one = there_and_back(flm)
    weights = jnp.cos(jnp.arange(signal.shape[1]))
    results[f"real_{limit}"] = (signal * weights).real.sum(1)
    results[f"imaginary_{limit}"] = (signal * weights).imag.sum(1)
    results[f"again_{limit}"] = jnp.abs(again).sum(1)
    results[f"in_one_{limit}"] = jnp.abs(in_one).sum(1)
    results[f"is_there_and_back_{limit}"] = jnp.allclose(in_one, flm, atol=1e-10)

report(**results, timed=lambda: there_and_back(flm))
