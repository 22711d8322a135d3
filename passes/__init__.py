"""axir: passes."""
