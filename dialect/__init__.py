"""axir: dialect."""
