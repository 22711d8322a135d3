"""axir: frontend."""
