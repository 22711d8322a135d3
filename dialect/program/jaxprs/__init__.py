"""JAX's view of functions: jaxprs of functions, and jaxprs made from equations."""
