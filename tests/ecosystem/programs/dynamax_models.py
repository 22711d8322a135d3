"""dynamax: state space models, filtered, smoothed, and fitted."""

import jax
import jax.numpy as jnp
import jax.random as jr
from dynamax.hidden_markov_model import CategoricalHMM, GaussianHMM
from dynamax.linear_gaussian_ssm import LinearGaussianSSM
from reporting import report

hmm = GaussianHMM(num_states=3, emission_dim=2)
params, properties = hmm.initialize(jr.PRNGKey(0), method="prior")
_, emissions = hmm.sample(params, jr.PRNGKey(1), 60)
posterior = jax.jit(hmm.smoother)(params, emissions)
fitted, losses = hmm.fit_em(params, properties, emissions, num_iters=4, verbose=False)

coins = CategoricalHMM(num_states=2, emission_dim=1, num_classes=4)
coin_params, _ = coins.initialize(jr.PRNGKey(2))
_, throws = coins.sample(coin_params, jr.PRNGKey(3), 40)

linear = LinearGaussianSSM(state_dim=3, emission_dim=2)
linear_params, _ = linear.initialize(jr.PRNGKey(4))
_, seen = linear.sample(linear_params, jr.PRNGKey(5), 30)
smoother = jax.jit(linear.smoother)
smoothed = smoother(linear_params, seen)
slopes = jax.grad(
    lambda weights: linear.marginal_log_prob(
        linear_params._replace(dynamics=linear_params.dynamics._replace(weights=weights)), seen
    )
)(linear_params.dynamics.weights)

report(
    log_likelihood=posterior.marginal_loglik,
    smoothed=posterior.smoothed_probs,
    states=hmm.most_likely_states(params, emissions),
    losses=losses,
    means=fitted.emissions.means,
    throws=throws,
    coin_states=coins.most_likely_states(coin_params, throws),
    filtered=smoothed.filtered_means,
    linear_means=smoothed.smoothed_means,
    linear_variances=jnp.diagonal(smoothed.smoothed_covariances, axis1=1, axis2=2),
    slopes=slopes,
    timed=lambda: smoother(linear_params, seen).smoothed_means,
)
