"""Where arrays lie over the devices of a mesh, and what devices tell each other."""
