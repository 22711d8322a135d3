"""einx: attention, normalization and gathers written as expressions over names of axes."""

import einx
import jax
import jax.numpy as jnp
from reporting import report

x = jax.random.normal(jax.random.key(0), (2, 6, 8))
weights = jax.random.normal(jax.random.key(1), (3, 8, 8)) / 3


@jax.jit
def attended(x):
    q, k, v = (einx.dot("b t [c], [c] (h d) -> b t (h d)", x, w) for w in weights)
    scores = einx.dot("b q (h [d]), b k (h [d]) -> b h q k", q, k, h=2)
    return einx.dot("b h q [k], b [k] (h d) -> b q (h d)", einx.softmax("b h q [k]", scores), v)


report(
    attended=attended(x),
    mean=einx.mean("b [t] c", x),
    spread=einx.var("b t [c]", x),
    turned=einx.id("b t (h c) -> h b (t c)", x, h=2) if hasattr(einx, "id") else x,
    added=einx.add("b t c, c -> b t c", x, jnp.arange(8.0)),
    timed=lambda: attended(x),
)
