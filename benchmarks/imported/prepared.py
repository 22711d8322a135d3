"""A model of one batch size as the contenders take it: files in a folder, made once."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.imported.cpp_program import build

ONNX_FILE, BUNDLE, CPP, TOOK = "model.onnx", "model.axir", "cpp", "took.json"


class Maker:
    """Makes the files of models, in a process with PyTorch and axir; `name` is unused."""

    def __init__(self, name: str) -> None:
        warnings.simplefilter("ignore")  # PyTorch's about its own exporters

    def make(self, name: str, batch: int, folder: Path) -> dict[str, float]:
        """Makes all files of a model, and returns the seconds that each step took.

        Existing files in the folder are reused.
        """
        if (folder / TOOK).exists():
            return json.loads((folder / TOOK).read_text())
        folder.mkdir(parents=True, exist_ok=True)
        import axir  # late: the process that measures does without

        axir.config.update("jax_enable_x64", True)
        make = _from_onnx if name.startswith("onnx-") else _from_torch
        exported, arguments, results, took = make(name, batch, folder)
        exported.save(folder / BUNDLE)
        np.savez(folder / "arguments.npz", **arguments)
        np.savez(folder / "results.npz", *results)
        start = time.perf_counter()
        axir.export.to_cpp(exported, folder / CPP, name="model", target_cpu="host")
        took["C++ written"] = time.perf_counter() - start
        built = build(folder / CPP, exported.fun_name, arguments, len(results))
        took["C++ built"] = built.seconds
        took["bytes of C++"], took["bytes of weights"] = built.size, built.data
        (folder / TOOK).write_text(json.dumps(took))
        return took


def _from_torch(name: str, batch: int, folder: Path) -> Any:
    import torch

    import axir
    from benchmarks.imported.torch_models import MODELS

    module, tensors = MODELS[name].seeded(), MODELS[name].arguments(batch)
    with torch.no_grad():
        results = module(*tensors)
        start = time.perf_counter()
        program = torch.export.export(module, tensors)
        middle = time.perf_counter()
        exported = axir.export.from_torch(program)
        took = {"exported": middle - start, "imported": time.perf_counter() - middle}
        torch.onnx.export(module, tensors, folder / ONNX_FILE, dynamo=False, opset_version=17)
    results = results if isinstance(results, tuple) else (results,)
    arrays = [tensor.numpy() for tensor in tensors]
    arguments = dict(zip(exported.argument_names, arrays, strict=True))
    return exported, arguments, [each.numpy() for each in results], took


def _from_onnx(name: str, batch: int, folder: Path) -> Any:
    import onnxruntime

    import axir
    from benchmarks.imported import onnx_models

    x = onnx_models.write(name, batch, folder / ONNX_FILE)
    start = time.perf_counter()
    exported = axir.export.from_onnx(folder / ONNX_FILE)
    took = {"imported": time.perf_counter() - start}
    results = onnxruntime.InferenceSession(folder / ONNX_FILE).run(None, {"x": x})
    return exported, {"x": x}, results, took
