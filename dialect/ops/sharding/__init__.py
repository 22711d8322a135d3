"""Where values of a program lie on a mesh, and functions of the parts that its devices hold.

Elsewhere: how a program is cut into the parts of the devices (`passes/partition/`), and what
devices there are.
"""
