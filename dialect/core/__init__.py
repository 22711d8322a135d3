"""What everything stands on: types, dtypes, arrays, options, errors, the MLIR context.

Nothing here knows of functions, tracers or operations.
"""
