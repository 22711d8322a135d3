"""Programs cut into the parts that the devices of a mesh hold, with the collectives between them.

Elsewhere: how the dimensions of an op hang together (the rule `dimensions` of each), and what runs
the parts (`axir.runtime.spmd`).
"""
