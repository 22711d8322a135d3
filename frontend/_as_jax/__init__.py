"""axir as a replacement for JAX: modules under JAX's names, and the command that runs programs.

`axir.as_jax` installs it when it is imported; nothing here does. `src` has the few names of JAX's
private modules that libraries use.
"""
