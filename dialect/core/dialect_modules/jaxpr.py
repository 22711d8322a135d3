"""jaxpr has no operation classes."""
