"""What libraries use of `jax._src`: names of JAX's that are not public, and cost nothing here.

Each module has the names that a library in use asks for; what is public comes from elsewhere.
"""
