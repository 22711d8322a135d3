"""Models of other programs: of PyTorch and ONNX, by way of torch-mlir, which writes StableHLO.

Private: `axir.export.from_torch` and `from_onnx` are the public names. Elsewhere: StableHLO as such
(`frontend/_bundles/module_functions.py`).
"""
