"""Functions of functions: mapped along axes, piece by piece, over leading dimensions."""
