"""The basis of all other rooms: types, dtypes, arrays, options, errors, the MLIR context.

This room does not know functions, tracers or operations.
"""
