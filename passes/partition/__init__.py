"""Programs cut into parts for the devices of a mesh, with the collectives between them.

Elsewhere: how the dimensions of an op are related (the rule `dimensions` of each op), and running
the parts (`axir.runtime.spmd`).
"""
