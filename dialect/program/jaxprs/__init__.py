"""JAX's view of functions: jaxprs, read and made of equations."""
