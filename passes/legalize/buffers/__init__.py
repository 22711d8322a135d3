"""What lies in memory, and where: arguments, results, slices, the number of arrays of a kernel."""
