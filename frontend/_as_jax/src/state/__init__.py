"""Names of `jax._src.state`: arrays that are assigned to."""
