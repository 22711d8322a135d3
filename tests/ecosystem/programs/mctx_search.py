"""mctx: Monte Carlo tree searches with a model of the environment."""

import jax
import jax.numpy as jnp
import mctx
from reporting import report


def model(params, key, action, state):
    """A walk on a line, which is rewarded at its right end."""
    state = jnp.clip(state + jnp.where(action == 1, 1, -1), 0, 4)
    reward = (state == 4).astype(jnp.float32)
    logits = jnp.stack([params * state, 0.5 * state + 0.1, -state], axis=-1).astype(jnp.float32)
    discount = jnp.where(state == 4, 0.0, 0.9)
    told = mctx.RecurrentFnOutput(
        reward=reward, discount=discount, prior_logits=logits, value=0.1 * state
    )
    return told, state


states = jnp.array([0, 2, 3])
root = mctx.RootFnOutput(prior_logits=jnp.zeros((3, 3)), value=0.1 * states, embedding=states)
options = {"recurrent_fn": model, "num_simulations": 24, "max_depth": 6}


@jax.jit
def search(params, key):
    return (
        mctx.muzero_policy(params, key, root, **options),
        mctx.gumbel_muzero_policy(params, key, root, **options),
    )


visits, gumbel = search(0.3, jax.random.key(0))
summary = gumbel.search_tree.summary()
report(
    actions=jnp.stack([visits.action, gumbel.action]),
    visits=visits.action_weights,
    weights=gumbel.action_weights,
    values=summary.value,
    counts=summary.visit_counts,
    timed=lambda: search(0.3, jax.random.key(0))[1].action_weights,
)
