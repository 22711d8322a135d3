"""axir.numpy."""
