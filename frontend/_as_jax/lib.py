"""The module `jax.lib` where axir stands in for JAX: without names, as today's has none."""
