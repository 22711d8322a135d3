"""Functions that JAX's packages of kernels offer, under the names of `jax.experimental.pallas.ops`.

Attention, products and normalizations are functions of arrays; here they are made of axir's
operations, which compile for the CPU, so the sizes of blocks say nothing. The others are for one
kind of accelerator and raise `AcceleratorOnlyError`.
"""
