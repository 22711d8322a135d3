"""What libraries use of `jax._src`: names of JAX's that are not public, and that cost nothing here.

Each module has those names which a library in use asks for; what is public elsewhere comes from there.
"""
