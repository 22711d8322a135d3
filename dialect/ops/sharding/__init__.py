"""Layouts of a program's values on a mesh, and functions of the parts that devices hold.

Elsewhere: the cut of a program into devices' parts (`passes/partition/`), and the devices.
"""
