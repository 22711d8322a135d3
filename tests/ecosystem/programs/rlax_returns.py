"""rlax: returns, off-policy corrections and losses of agents, and a Q-function that is trained."""

import jax
import jax.numpy as jnp
import rlax
from reporting import report

keys = jax.random.split(jax.random.key(0), 4)
rewards, values = jax.random.normal(keys[0], (20,)), jax.random.normal(keys[1], (21,))
discounts = jnp.full(20, 0.95)
observed = jax.random.normal(keys[2], (64, 4))
actions = jax.random.randint(keys[3], (64,), 0, 3)


@jax.jit
@jax.value_and_grad
def loss_of(weights):
    q = jnp.tanh(observed) @ weights
    errors = jax.vmap(rlax.double_q_learning)(
        q[:-1], actions[:-1], observed[:-1, 0], jnp.full(63, 0.9), q[1:], q[1:]
    )
    return jnp.mean(rlax.huber_loss(errors))


weights = 0.1 * jax.random.normal(jax.random.key(1), (4, 3))
losses = []
for _ in range(15):
    loss, slopes = loss_of(weights)
    weights = weights - 0.3 * slopes
    losses.append(loss)
logits = observed[:, :3]
report(
    losses=jnp.stack(losses),
    returns=rlax.lambda_returns(rewards, discounts, values[1:], 0.9),
    advantages=rlax.truncated_generalized_advantage_estimation(rewards, discounts, 0.9, values),
    corrected=rlax.vtrace(values[:-1], values[1:], rewards, discounts, jnp.ones(20), 0.9),
    policy=rlax.policy_gradient_loss(logits, actions, observed[:, 3], jnp.ones(64)),
    entropy=rlax.entropy_loss(logits, jnp.ones(64)),
    sampled=rlax.softmax(0.5).sample(jax.random.key(2), logits),
    two_hot=rlax.transform_to_2hot(jnp.array([0.3, -1.2]), -2.0, 2.0, 9),
    timed=lambda: loss_of(weights),
)
