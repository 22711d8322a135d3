"""ott-jax: optimal transport between clouds of points, and its derivatives."""

import jax
import jax.numpy as jnp
from ott.geometry import pointcloud
from ott.problems.linear import linear_problem
from ott.solvers.linear import sinkhorn
from reporting import report

x = jax.random.normal(jax.random.key(0), (12, 2))
y = jax.random.normal(jax.random.key(1), (15, 2)) + 1.0


def solved(x):
    geometry = pointcloud.PointCloud(x, y, epsilon=0.5)
    return sinkhorn.Sinkhorn(threshold=1e-4)(linear_problem.LinearProblem(geometry))


@jax.jit
def cost_of(x):
    return solved(x).reg_ot_cost


costs = []
for _ in range(5):
    cost, slopes = jax.value_and_grad(cost_of)(x)
    x = x - 0.5 * slopes
    costs.append(cost)
out = jax.jit(solved)(x)
report(
    costs=jnp.stack(costs),
    points=x,
    plan=out.matrix,
    rows=out.matrix.sum(1),
    timed=lambda: cost_of(x),
)
