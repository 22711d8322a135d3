"""Names of JAX of 2020 that today's JAX lacks; documents and programs of that time use them. A
function that was only renamed is an entry of `NAMES` or `MODULES`. Elsewhere: names that `axir` has
for everybody, such as `axir.numpy.msort` or `axir.experimental.stax`.
"""

from __future__ import annotations

# Modules, and the ones that have their names today.
MODULES = {
    "jax.abstract_arrays": "axir._as_jax.older.abstract_arrays",
    "jax.ad": "axir.interpreters.ad",
    "jax.ad_util": "axir._as_jax.src.ad_util",
    "jax.api": "axir",
    "jax.batching": "axir.interpreters.batching",
    "jax.config": "axir._as_jax.older.config",
    "jax.util": "axir._as_jax.src.util",
    "jax.xla": "axir.interpreters.xla",
}

# Names of the module `jax`, and the modules where they are.
NAMES = {
    "DeviceArray": "axir._as_jax.older.names",
    "custom_transforms": "axir._as_jax.older.custom_transforms",
    "defjvp": "axir._as_jax.older.custom_transforms",
    "defjvp_all": "axir._as_jax.older.custom_transforms",
    "defvjp": "axir._as_jax.older.custom_transforms",
    "defvjp_all": "axir._as_jax.older.custom_transforms",
    "host_count": "axir._as_jax.older.names",
    "host_ids": "axir._as_jax.older.names",
    "xla_computation": "axir._as_jax.older.names",
}
