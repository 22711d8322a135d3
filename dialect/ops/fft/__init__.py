"""Fourier transforms.

Elsewhere: their computation without a library (`axir.passes.legalize.fft.expand_fft`).
"""
