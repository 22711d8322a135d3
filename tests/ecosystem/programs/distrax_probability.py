"""distrax and TensorFlow Probability on JAX: densities, samples, bijectors, and a chain."""

import distrax
import jax
import jax.numpy as jnp
from reporting import report
from tensorflow_probability.substrates import jax as tfp

key = jax.random.key(0)
normal = distrax.MultivariateNormalDiag(jnp.zeros(3), jnp.array([1.0, 2.0, 0.5]))
mixture = distrax.MixtureSameFamily(
    distrax.Categorical(logits=jnp.array([0.1, 0.5])),
    distrax.Normal(jnp.array([-1.0, 2.0]), jnp.array([0.5, 1.0])),
)
flow = distrax.Transformed(
    distrax.Normal(0.0, 1.0), distrax.Chain([distrax.ScalarAffine(1.0, 2.0), distrax.Tanh()])
)
tfd, tfb = tfp.distributions, tfp.bijectors
gamma = tfd.Gamma(jnp.array([2.0, 3.0]), 1.5)
joint = tfd.JointDistributionSequential(
    [tfd.Normal(0.0, 1.0), lambda loc: tfd.Independent(tfd.Normal(loc * jnp.ones(2), 0.5), 1)]
)


@jax.jit
def chain(key):
    kernel = tfp.mcmc.HamiltonianMonteCarlo(
        lambda x: tfd.Normal(0.0, 1.0).log_prob(x), step_size=0.3, num_leapfrog_steps=3
    )
    return tfp.mcmc.sample_chain(
        8, current_state=jnp.array(0.5), kernel=kernel, seed=key, trace_fn=None
    )


report(
    normal=normal.log_prob(normal.sample(seed=key, sample_shape=4)),
    entropy=normal.entropy(),
    divergence=normal.kl_divergence(distrax.MultivariateNormalDiag(jnp.ones(3), jnp.ones(3))),
    mixture=mixture.log_prob(jnp.linspace(-2, 2, 5)),
    flow=flow.log_prob(jnp.array([0.5, 1.5])),
    gradient=jax.grad(lambda x: jnp.sum(gamma.log_prob(x)))(jnp.array([0.5, 1.5])),
    gamma=gamma.cdf(jnp.array([0.5, 1.5])),
    beta=tfd.Beta(2.0, 3.0).log_prob(jnp.array([0.2, 0.7])),
    sampled=tfd.Normal(jnp.zeros(2), 1.0).sample(3, seed=key),
    bijector=tfb.Softplus().inverse_log_det_jacobian(jnp.array(0.7), event_ndims=0),
    joint=joint.log_prob([0.1, jnp.array([0.2, 0.3])]),
    chain=chain(jax.random.key(1)),
    timed=lambda: chain(jax.random.key(1)),
)
