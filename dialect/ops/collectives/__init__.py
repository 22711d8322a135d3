"""Collectives: operations along an axis that `vmap` maps under a name."""
