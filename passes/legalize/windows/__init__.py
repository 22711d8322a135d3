"""Windows, of reductions and of convolutions, that IREE does not take as they are."""
