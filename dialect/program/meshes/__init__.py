"""Layouts of arrays over the devices of a mesh, and communication between devices."""
