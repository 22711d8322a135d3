"""Programs that run as machine code of this process: loaded, called with arrays of the host."""
