"""Models in the format of ONNX: graphs of its operators, with their initializers."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from axir._bundles.exported import Exported
from axir.dialect.core.annotations import Extent, HostArray, UserObject
from axir.passes.raising.dimensions.open_dimensions import plain_name

from .importing import WITHOUT_IT, Names, imported, needed, text_of, told
from .onnx_quantization import write_out_quantization

_EXTRA = "onnx"
_AGAIN = "Write it again, with onnx.save or torch.onnx.export."
_PIPELINES = (
    "builtin.module(torch-onnx-to-torch-backend-pipeline)",
    "builtin.module(torch-backend-to-stablehlo-backend-pipeline)",
)
# What can name a dimension: none of the words of extents.
_IS_NAME = re.compile(r"(?!(?:mod|floordiv|max|min)$)[A-Za-z_]\w*", re.ASCII)

# Initializers of bytes with fewer elements are zero points.
_MANY = 64


def from_onnx(
    path: Path, *, name: str = "main", shapes: Mapping[str, Sequence[Extent]] | None = None
) -> Exported:
    """Returns a model of ONNX as a function; see `axir.export.from_onnx`."""
    onnx = needed("onnx", _EXTRA)
    path.open("rb").close()  # a file that is missing is no fault of the model
    model = told(f"{path} cannot be read", _AGAIN, lambda: onnx.load(str(path)))
    graph = model.graph
    held = {tensor.name for tensor in graph.initializer}
    arguments = [value.name for value in graph.input if value.name not in held]
    tensors = _Tensors(graph)
    module = told(f"torch-mlir cannot read {path}", WITHOUT_IT, lambda: _lowered(model, tensors))
    text = with_weights(text_of(module), len(arguments), tensors.integers)
    names = Names(name, arguments, [value.name for value in graph.output])
    named = {**_named_shapes(graph, arguments), **(shapes or {})}
    return imported(text, str(path), tensors.arrays, names, named, tensors.unnamed)


def _named_shapes(graph: UserObject, arguments: Sequence[str]) -> dict[str, list[Extent | str]]:
    """Returns the shapes of the arguments with open extents that have valid names of dimensions."""
    found = {}
    for value in (value for value in graph.input if value.name in arguments):
        extents = value.type.tensor_type.shape.dim
        names = [x.dim_param if _IS_NAME.fullmatch(x.dim_param) else "" for x in extents]
        if any(names):
            plain = plain_name(value.name)
            found[value.name] = [
                extent.dim_value if extent.HasField("dim_value") else name or f"{plain}_{axis}"
                for axis, (extent, name) in enumerate(zip(extents, names, strict=True))
            ]
    return found


def _lowered(model: UserObject, tensors: _Tensors) -> UserObject:
    """Returns a model as a module of StableHLO of torch-mlir's."""
    onnx = needed("onnx", _EXTRA)
    importer = needed("torch_mlir.extras.onnx_importer", _EXTRA)
    torch_dialect = needed("torch_mlir.dialects.torch", _EXTRA)
    ir = needed("torch_mlir.ir", _EXTRA)
    passes = needed("torch_mlir.passmanager", _EXTRA)
    # Shapes come first: the results' shapes may be missing, and the checker requires them.
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    onnx.checker.check_model(model)
    if write_out_quantization(model):
        tensors.pass_integers(model.graph)
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    context = ir.Context()
    torch_dialect.register_dialect(context)
    info = importer.ModelInfo(model, config=importer.Config())
    module = info.create_module(context=context)
    cache = tensors.cache(context)
    node = importer.NodeImporter.define_function(info.main_graph, module.operation, cache)
    node.import_all()
    with context:
        for pipeline in _PIPELINES:
            passes.PassManager.parse(pipeline).run(module.operation)
    return module


def with_weights(text: str, count: int, names: Sequence[str]) -> str:
    """Returns the text of a function with its last arguments turned into weights.

    Args:
        text: The function's module.
        count: How many arguments remain.
        names: The names of the weights, in the order of the other arguments.
    """
    constants = []
    for number, name in enumerate(names, count):
        place = r' loc\((?:#loc\d*|"(?:[^"\\]|\\.)*")\)'
        found = re.search(rf"(?:, )?%arg{number}: (tensor<[^>]*>)(?:{place})?", text)
        assert found is not None, "torch-mlir numbers arguments"
        text = text[: found.start()] + text[found.end() :]
        constant = f'stablehlo.constant dense_resource<"{name}"> : {found[1]}'
        constants.append(f"    %arg{number} = {constant}\n")
    if not constants:
        return text
    begin = text.index("{\n", text.index("func.func")) + 2
    return text[:begin] + "".join(constants) + text[begin:]


class _Tensors:
    """The tensors of a model by name; constants without a name get one.

    Args:
        graph: The graph. Its constants lose names that initializers have: no node refers to a
            constant by its tensor's name.

    Attributes:
        arrays: The tensors' contents, initializers first.
        unnamed: The names of those tensors that had no name.
        integers: The names of those tensors that become arguments for torch-mlir.
    """

    def __init__(self, graph: object):
        graphs = list(_graphs(graph))
        self.arrays: dict[str, HostArray] = {}
        self.unnamed: list[str] = []
        self.integers: list[str] = []
        self._given: set[str] = set()
        for tensor in (tensor for each in graphs for tensor in each.initializer):
            self.arrays.setdefault(tensor.name, _array(tensor))
        for tensor in (x.t for each in graphs for x in _attributes(each) if x.HasField("t")):
            if tensor.name in self.arrays:
                tensor.name = ""

    def pass_integers(self, graph: UserObject) -> None:
        """Makes arguments of initializers of bytes, which torch-mlir would widen as constants."""
        onnx = needed("onnx", _EXTRA)
        kinds = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)
        kept = []
        for tensor in graph.initializer:
            self.arrays[tensor.name] = _array(tensor)  # it may have been widened
            is_plain = tensor.name.isprintable() and not set(tensor.name) & set('"\\')
            if tensor.data_type in kinds and math.prod(tensor.dims) >= _MANY and is_plain:
                self.integers.append(tensor.name)
                shape = list(tensor.dims)
                kind = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, shape)
                given = [value for value in graph.input if value.name != tensor.name]
                del graph.input[:]
                graph.input.extend([*given, kind])
            else:
                kept.append(tensor)
        del graph.initializer[:]
        graph.initializer.extend(kept)

    def cache(self, context: object) -> UserObject:
        """Returns the object that makes tensors for torch-mlir, which would rename them."""
        importer = needed("torch_mlir.extras.onnx_importer", _EXTRA)
        ir = needed("torch_mlir.ir", _EXTRA)

        def tensor_proto_to_attr(cache: UserObject, tensor: UserObject) -> UserObject:
            if not tensor.HasField("raw_data"):  # few elements, which torch-mlir looks at
                return importer.ContextCache.tensor_proto_to_attr(cache, tensor)
            kind = cache.tensor_proto_to_builtin_type(tensor)
            name = self._name_of(tensor)
            return ir.DenseResourceElementsAttr.get_from_buffer(tensor.raw_data, name, kind)

        methods = {"tensor_proto_to_attr": tensor_proto_to_attr}
        return type("Cache", (importer.ContextCache,), methods)(context)

    def _name_of(self, tensor: UserObject) -> str:
        """Returns a name that no other tensor has; branches may contain tensors of one name."""
        name = tensor.name
        if not name or name in self._given:
            free = (f"#{n}" for n in itertools.count(len(self.unnamed)))
            name = next(each for each in free if each not in self.arrays)
            self.unnamed.append(name)
        self._given.add(name)
        self.arrays[name] = _array(tensor)
        return name


def _array(tensor: object) -> HostArray:
    found = needed("onnx.numpy_helper", _EXTRA).to_array(tensor)
    return np.ascontiguousarray(found).reshape(found.shape)


def _graphs(graph: object) -> Iterator[UserObject]:
    """Yields a graph and its nested graphs, of loops and branches."""
    yield graph
    for attribute in _attributes(graph):
        for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
            yield from _graphs(inner)


def _attributes(graph: UserObject) -> Iterator[UserObject]:
    """Yields the attributes of the nodes of a graph."""
    for node in graph.node:
        yield from node.attribute
