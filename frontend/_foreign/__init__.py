"""Models of PyTorch and ONNX, converted by torch-mlir to StableHLO.

Private: `axir.export.from_torch` and `from_onnx` are the public names. Elsewhere: StableHLO in
general (`frontend/_bundles/module_functions.py`).
"""
