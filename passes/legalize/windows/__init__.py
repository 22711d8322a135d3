"""Windows of reductions and of convolutions that IREE does not compile unchanged."""
