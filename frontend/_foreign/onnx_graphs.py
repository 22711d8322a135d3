"""Graphs of ONNX: rewriting their nodes, and quantized integers with their scales and zero points.

Elsewhere: rewriting the operators of quantization (`onnx_quantization.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from axir.dialect.core.annotations import HostArray, UserObject

from .importing import ModelImportError, needed

_EXTRA = "onnx"


class Integers(NamedTuple):
    """An array of quantized integers, and its scales and zero points.

    Attributes:
        name: The array.
        scale: The name of the scales.
        zero: The name of the zero points; none if they are 0.
        axis: The axis along which these change.
        block: The number of neighbours along it that share one; 0 if each has a separate one.
    """

    name: str
    scale: str
    zero: str
    axis: int
    block: int = 0


class Graph:
    """Rewrites the nodes of a graph."""

    def __init__(self, graph: UserObject):
        self._onnx = needed("onnx", _EXTRA)
        self._graph = graph
        self._written: list[UserObject] = []
        self._number = 0
        self._arrays = {tensor.name: tensor for tensor in graph.initializer}
        self._kinds: dict[str, tuple[int, list[int | None]]] = {}
        for value in (*graph.input, *graph.value_info, *graph.output):
            tensor = value.type.tensor_type
            shape = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
            self._kinds[value.name] = tensor.elem_type, shape
        for node in graph.node:
            if node.op_type == "Constant":
                for attribute in node.attribute:
                    if attribute.name == "value":
                        self._arrays[node.output[0]] = attribute.t
        for name, tensor in self._arrays.items():
            self._kinds[name] = tensor.data_type, list(tensor.dims)
            self._widen(tensor)
        self._results = {value.name for value in graph.output}
        self._dequantized: dict[str, Integers] = {}

    def rewrite(self, rules: Mapping[str, Rule]) -> None:
        """Replaces the nodes with operators that have rules."""
        for node in list(self._graph.node):
            rule = rules.get(node.op_type)
            if rule is None:
                self._written.append(node)
            else:
                rule(self, node)
        del self._graph.node[:]
        self._graph.node.extend(self._written)
        del self._graph.value_info[:]

    def _widen(self, tensor: UserObject) -> None:
        """Gives a constant of fewer than 8 bits 8 bits, for torch-mlir does not read these."""
        kind = self._wider.get(tensor.data_type)
        if kind is not None and kind != self._onnx.TensorProto.INT32:
            array = self._onnx.numpy_helper.to_array(tensor)
            dtype = self._onnx.helper.tensor_dtype_to_np_dtype(kind)
            wide = self._onnx.numpy_helper.from_array(array.astype(dtype), tensor.name)
            tensor.CopyFrom(wide)

    @cached_property
    def _wider(self) -> dict[int, int]:
        """Integer types that torch-mlir does not convert to, and wider replacements."""
        proto = self._onnx.TensorProto
        names = {
            "INT2": "INT8", "INT4": "INT8", "UINT2": "UINT8", "UINT4": "UINT8",
            "INT16": "INT32", "UINT16": "INT32",
        }  # fmt: skip
        return {
            getattr(proto, few): getattr(proto, many)
            for few, many in names.items()
            if hasattr(proto, few)
        }

    # Known facts about values ---------------------------------------------------------------------

    def kind(self, name: str) -> int:
        """Returns the type of elements; 0 if it is not known."""
        return self._kinds.get(name, (0, []))[0]

    def shape(self, name: str) -> list[int | None] | None:
        """Returns a shape, with None for open extents; None if it is not known."""
        return self._kinds[name][1] if name in self._kinds else None

    def is_integer(self, kind: int) -> bool:
        """Tells whether a type is one of integers; types that are not known are taken for one."""
        return "FLOAT" not in self._onnx.TensorProto.DataType.Name(kind)

    def array(self, name: str) -> HostArray | None:
        """Returns a constant; None for a computed value."""
        if name not in self._arrays:
            return None
        found: HostArray = self._onnx.numpy_helper.to_array(self._arrays[name])
        return found

    def remember(self, name: str, integers: Integers) -> None:
        """Records the quantized integers that a value was dequantized from."""
        self._dequantized[name] = integers

    def numbers_of(self, name: str) -> Integers | None:
        """Returns the quantized integers that a value was dequantized from, or None."""
        return self._dequantized.get(name)

    # Writing --------------------------------------------------------------------------------------

    def keep(self, node: object) -> None:
        """Writes a node unchanged."""
        self._written.append(node)

    def write(self, operator: str, *inputs: str, output: str = "", **attributes: object) -> str:
        """Writes a node; returns its only output."""
        name = output or self._free_name(operator)
        node = self._onnx.helper.make_node(operator, list(inputs), [name], **attributes)
        self._written.append(node)
        return name

    def constant(self, value: HostArray) -> str:
        """Writes a small constant; returns its name."""
        name = self._free_name("constant")
        tensor = self._onnx.numpy_helper.from_array(np.asarray(value))
        self.write("Constant", output=name, value=tensor)
        self._arrays[name] = tensor
        self._kinds[name] = tensor.data_type, list(tensor.dims)
        return name

    def cast(self, name: str, kind: int, output: str = "") -> str:
        """Writes a conversion."""
        return self.write("Cast", name, output=output, to=kind)

    def _free_name(self, hint: str) -> str:
        self._number += 1
        return f"axir/{self._graph.name}/{hint}{self._number}"

    # Scales and zero points -----------------------------------------------------------------------

    def spread(self, name: str, x: str, axis: int, block: int) -> str:
        """Returns scales or zero points in a shape that broadcasts over an array."""
        shape, extents = self.shape(name) or [], self.shape(x)
        if extents is None or (not block and len(shape) != 1) or shape in ([], [1]):
            return name
        axis %= len(extents)
        if block:
            return self._repeated(name, axis, block, extents[axis])
        wanted = [-1 if place == axis else 1 for place in range(len(extents))]
        if wanted == [-1]:
            return name
        return self.write("Reshape", name, self.constant(np.array(wanted, np.int64)))

    def column(self, name: str) -> str:
        """Writes a vector as a column."""
        made = self.write("Reshape", name, self.constant(np.array([-1, 1], np.int64)))
        self._kinds[made] = self.kind(name), [*(self.shape(name) or [None]), 1]
        return made

    def _repeated(self, name: str, axis: int, block: int, extent: int | None) -> str:
        known = self.array(name)
        if known is None or extent is None:
            raise ModelImportError(
                "A model quantizes an array in blocks by scales that it computes.",
                "Quantize it by scales that are constants.",
            )
        whole = np.repeat(known, block, axis)
        return self.constant(np.take(whole, range(extent), axis))

    def wide(self, name: str) -> str:
        """Converts integers to 32 bits."""
        return self.cast(name, self._onnx.TensorProto.INT32)

    def centred(self, x: Integers) -> str:
        """Returns integers as 32 bits, after subtracting the zero point."""
        wide = self.wide(x.name)
        if not x.zero or self.is_zero(x.zero):
            return wide
        return self.write("Sub", wide, self.wide(self.spread(x.zero, x.name, x.axis, x.block)))

    def is_zero(self, name: str) -> bool:
        """Tells whether a constant is known to be 0."""
        known = self.array(name)
        return known is not None and not known.astype(np.int64).any()

    def dequantize(self, x: Integers, output: str = "") -> str:
        """Writes the dequantized numbers of integers."""
        single = self._onnx.TensorProto.FLOAT
        kind = self.kind(x.scale) or single
        # Half precision has no large integers, so the product is computed in single precision and
        # rounded.
        numbers = self.cast(self.centred(x), single)
        scale = self.spread(x.scale, x.name, x.axis, x.block)
        if kind == single:
            return self.write("Mul", numbers, scale, output=output)
        return self.cast(self.write("Mul", numbers, self.cast(scale, single)), kind, output)

    def quantize(self, x: str, like: Integers, kind: int, output: str) -> None:
        """Writes the quantized integers of numbers."""
        scale = self.spread(like.scale, x, like.axis, like.block)
        self.round(self.write("Div", x, scale), x, like, kind, output)

    def round(self, scaled: str, x: str, like: Integers, kind: int, output: str) -> None:
        """Writes the quantized integers of numbers that were divided by their scale."""
        helper = self._onnx.helper
        number = self._onnx.TensorProto.FLOAT
        if self.kind(like.scale) not in (0, number):
            scaled = self.cast(scaled, number)
        rounded = self.write("Round", scaled)
        if like.zero and not self.is_zero(like.zero):
            zero = self.cast(self.spread(like.zero, x, like.axis, like.block), number)
            rounded = self.write("Add", rounded, zero)
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        floats = helper.tensor_dtype_to_np_dtype(number)
        low, high = (self.constant(np.array(bound).astype(floats)) for bound in _bounds(dtype))
        if output not in self._results:
            kind = self._wider.get(kind, kind)
        self.cast(self.write("Clip", rounded, low, high), kind, output)


def _bounds(dtype: np.dtype) -> tuple[int, int]:
    import ml_dtypes  # late: only models with quantized operators need it

    info = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def attribute_of(node: UserObject, name: str, default: int) -> int:
    """Returns an attribute of a node that is an integer, or a default."""
    for attribute in node.attribute:
        if attribute.name == name:
            return int(attribute.i)
    return default


def inputs_of(node: UserObject, count: int) -> list[str]:
    """Returns the inputs of a node, with empty names for omitted ones."""
    return [*node.input, *[""] * (count - len(node.input))]


Rule = Callable[[Graph, UserObject], None]
"""Writes what a node becomes."""
