"""Names of `jax.experimental.array_serialization`: arrays as files of tensorstore's."""
