"""Fourier transforms.

How they are computed without a library stands in `axir.passes.legalize.fft.expand_fft`.
"""
