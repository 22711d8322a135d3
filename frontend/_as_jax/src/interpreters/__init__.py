"""Names of `jax._src.interpreters`: rules of primitives."""
