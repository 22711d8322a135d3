"""e3nn-jax: features that turn with the space they are of."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
from reporting import report

points = jax.random.normal(jax.random.key(0), (6, 3))
harmonics = e3nn.spherical_harmonics(e3nn.s2_irreps(3), e3nn.IrrepsArray("1o", points), True)
features = e3nn.normal("4x0e + 2x1o", jax.random.key(1), (6,))
product = e3nn.tensor_product(features, harmonics, filter_ir_out="0e + 1o + 2e")
turn = e3nn.rand_matrix(jax.random.key(2), ())


@jax.jit
def energy(points):
    vectors = e3nn.IrrepsArray("1o", points)
    mixed = e3nn.tensor_product(features, e3nn.spherical_harmonics("0e + 1o", vectors, False))
    return jnp.sum(e3nn.norm(mixed, squared=True).array)


turned = features.transform_by_matrix(turn)
report(
    harmonics=harmonics.array,
    product=product.array[:2],
    gate=e3nn.gate(e3nn.normal("3x0e + 2x0e + 2x1o", jax.random.key(3), ())).array,
    turned=turned.array,
    energies=jnp.stack([energy(points), energy(points @ turn.T)]),
    forces=jax.grad(energy)(points),
    coupling=e3nn.clebsch_gordan(1, 2, 3)[0],
    timed=lambda: energy(points),
)
