"""Programs of several processes, started by `mpirun` or one by one, and tests that start them."""
