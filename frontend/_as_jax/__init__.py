"""axir as a stand-in for JAX: modules under JAX's names, and the command that runs programs so.

`axir.as_jax` installs it when it is imported; nothing here does. `src` has the few names of JAX's
private modules that libraries use.
"""
