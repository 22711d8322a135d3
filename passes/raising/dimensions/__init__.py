"""Open dimensions of modules of StableHLO: extents that a program computes, and facts about them.

Here: integers computed from extents, the names of open dimensions and what raising learns about
them, the requirements of operations, and the attributes that these and all rules read.
Elsewhere: operations with shapes as operands (`passes/raising/shapes.py`,
`passes/raising/shape_arithmetic.py`).
"""
