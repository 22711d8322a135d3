"""jaxlie: poses made from twists, composed, inverted, applied to points, and their gradient."""

import jax
import jax.numpy as jnp
import jaxlie
from reporting import report

twists = 0.3 * jax.random.normal(jax.random.key(0), (40, 6))
points = jax.random.normal(jax.random.key(1), (40, 3))


@jax.jit
@jax.value_and_grad
def loss_of(twists):
    poses = jax.vmap(jaxlie.SE3.exp)(twists)
    moved = jax.vmap(lambda pose, point: pose @ point)(poses, points)
    turned = jax.vmap(lambda pose: (pose @ pose).log())(poses)
    return jnp.mean(moved**2) + jnp.mean(turned**2)


loss, slopes = loss_of(twists)
turn = jaxlie.SO3.from_rpy_radians(0.1, -0.2, 0.3)
report(
    loss=loss,
    slopes=slopes,
    matrix=turn.as_matrix(),
    inverse=(turn.inverse() @ turn).log(),
    adjoint=jaxlie.SE3.exp(twists[0]).adjoint(),
    plane=jaxlie.SE2.exp(twists[0, :3]).as_matrix(),
    timed=lambda: loss_of(twists),
)
