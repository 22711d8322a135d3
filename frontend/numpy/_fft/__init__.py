"""Parts of `axir.numpy.fft`."""
