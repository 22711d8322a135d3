"""chex: assertions on arrays, dataclasses that are containers, variants of tests."""

import chex
import jax
import jax.numpy as jnp
from reporting import report


@chex.dataclass
class Point:
    """A container of two arrays."""

    x: chex.Array
    y: chex.Array


point = Point(x=jnp.arange(3.0), y=jnp.ones((3, 2)))
chex.assert_shape(point.y, (3, 2))
chex.assert_rank([point.x, point.y], [1, 2])
chex.assert_type(point.x, float)
chex.assert_tree_all_finite(point)
chex.assert_trees_all_close(point, jax.tree.map(lambda v: v + 1e-9, point), atol=1e-6)
chex.assert_equal_shape([point.x, jnp.zeros(3)])
chex.assert_trees_all_equal_shapes_and_dtypes(point, point)
doubled = jax.jit(lambda p: jax.tree.map(lambda v: 2 * v, p))(point)


@jax.jit
@chex.assert_max_traces(n=1)
def traced(x):
    return x + 1


traced(1.0)
traced(2.0)
failures = 0
for check in (
    lambda: chex.assert_shape(point.x, (4,)),
    lambda: chex.assert_trees_all_close(point, doubled),
    lambda: chex.assert_scalar(point.x),
    lambda: chex.assert_tree_all_finite(jnp.array(jnp.nan)),
    lambda: traced(jnp.ones(2)),
):
    try:
        check()
    except (AssertionError, ValueError):
        failures += 1


@chex.chexify
@jax.jit
def positive(x):
    chex.assert_tree_all_finite(x)
    return jnp.log(x)


positive(jnp.array([1.0, 2.0]))
positive.wait_checks()
positive(jnp.array([1.0, jnp.inf]))
try:
    positive.wait_checks()
except AssertionError:
    failures += 1
report(
    x=doubled.x,
    y=doubled.y,
    failures=failures,
    fields=len(point.to_tuple()),
    timed=lambda: positive(jnp.array([1.0, 2.0])),
)
