"""Models in the format of ONNX: graphs of its operators, with their initializers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from axir._bundles.exported import Exported
from axir.dialect.core.annotations import HostArray, UserObject

from .importing import WITHOUT_IT, imported, needed, text_of, told

_EXTRA = "onnx"
_AGAIN = "Write it again, with onnx.save or torch.onnx.export."
_PIPELINES = (
    "builtin.module(torch-onnx-to-torch-backend-pipeline"
    "{backend-legal-ops=aten.flatten.using_ints})",
    "builtin.module(torch-backend-to-stablehlo-backend-pipeline)",
)


def from_onnx(
    path: Path, *, name: str = "main", shapes: Mapping[str, Sequence[int]] | None = None
) -> Exported:
    """Returns a model of ONNX as a function; see `axir.export.from_onnx`."""
    onnx = needed("onnx", _EXTRA)
    path.open("rb").close()  # a file that is missing is no fault of the model
    model = told(f"{path} cannot be read", _AGAIN, lambda: onnx.load(str(path)))
    graph = model.graph
    held = {tensor.name for tensor in graph.initializer}
    arguments = [value.name for value in graph.input if value.name not in held]
    module = told(f"torch-mlir cannot read {path}", WITHOUT_IT, lambda: _lowered(model))
    weights = _weights(graph)
    text = text_of(module)
    made = imported(text, str(path), weights, name, arguments, shapes or {}, forgets_names=True)
    results = [value.name for value in graph.output]
    signature = made.signature.renamed(arguments, results)
    entry = replace(made.entry, signature=signature)
    return Exported(entry, made.function, made.parameters, made.in_tree, made.out_tree)


def _lowered(model: UserObject) -> UserObject:
    """Returns a model as a module of StableHLO of torch-mlir's."""
    onnx = needed("onnx", _EXTRA)
    importer = needed("torch_mlir.extras.onnx_importer", _EXTRA)
    torch_dialect = needed("torch_mlir.dialects.torch", _EXTRA)
    ir = needed("torch_mlir.ir", _EXTRA)
    passes = needed("torch_mlir.passmanager", _EXTRA)
    onnx.checker.check_model(model)
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    context = ir.Context()
    torch_dialect.register_dialect(context)
    info = importer.ModelInfo(model, config=importer.Config())
    module = info.create_module(context=context)
    node = importer.NodeImporter.define_function(info.main_graph, module.operation)
    node.import_all()
    with context:
        for pipeline in _PIPELINES:
            passes.PassManager.parse(pipeline).run(module.operation)
    return module


def _weights(graph: UserObject) -> dict[str, HostArray]:
    """Returns the initializers of a graph by the names that torch-mlir gives them."""
    importer = needed("torch_mlir.extras.onnx_importer", _EXTRA)
    numpy_helper = needed("onnx.numpy_helper", _EXTRA)
    tensors = list(graph.initializer)
    for node in graph.node:
        tensors += [each.t for each in node.attribute if each.HasField("t")]
    sanitized = importer.ContextCache._sanitize_name
    return {
        sanitized(None, tensor.name): np.ascontiguousarray(numpy_helper.to_array(tensor))
        for tensor in tensors
    }
