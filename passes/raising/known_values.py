"""Known values of a module that is raised: constants and weights.

Elsewhere: the extents that values hold (`known_extents.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import HostArray, Param
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.state import outside_traces
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import state
from axir.dialect.text.summary import OF_DEVICES

from .grid import ALONE, Grid
from .quantized_operations import rule_of
from .shapes import elements
from .table import raised_type

_DIALECTS = ("stablehlo", "chlo", "arith", "shape", "tensor")
# How many bytes of arrays are compared before all bytes are.
_COMPARED_FIRST = 64


class KnownValues:
    """The part of a `RaisingContext` that knows values.

    Attributes:
        module: The module that is raised.
        grid: The devices that run the program that is being raised.
        weight_names: Names of weights, by the identities of the arrays.
    """

    def __init__(self, module: ir.Module):
        self.module = module
        self.grid: Grid = ALONE
        self.weight_names: dict[int, str] = {}
        self._weights: list[ConcreteArray] = []
        self._values: dict[ir.Value, Value] = {}
        self._replaced: dict[ir.Operation, Sequence[Value]] = {}
        # The results of `constant` for results of operations.
        self._constants: dict[ir.Value, HostArray | None] = {}

    def weights(self, array: HostArray, name: str | None) -> Value:
        """Returns weights as a value; shares weights of one name, and equal ones without a name.

        Equal weights with different names stay separate, because they may differ after training.
        """
        for known in self._weights:
            host = known.host()
            is_alike = (host.shape, host.dtype) == (array.shape, array.dtype)
            if not is_alike or self.weight_names.get(id(known)) != name:
                continue
            if name is not None or _are_equal(host, array):
                break
        else:
            known = ConcreteArray(ShapedArray(array.shape, array.dtype), array)
            self._weights.append(known)
            if name is not None:
                self.weight_names[id(known)] = name
        if state.ambient is None:
            return known
        captured: Param = state.ambient.capture(known)
        return captured

    def value(self, value: ir.Value) -> Value:
        """Returns the raised value."""
        return self._values[value]

    def replace(self, operation: ir.Operation, values: Sequence[Value]) -> None:
        """Sets the raised results of a later operation."""
        self._replaced[operation] = values

    def constant(self, value: ir.Value) -> HostArray | None:
        """Returns the elements of a value that depends only on constants; None for others."""
        known = self._values.get(value)
        if type(known) is ConcreteArray:
            return known.host()
        op = owner_of(value)
        if op is None:
            return None
        if value not in self._constants:
            self._constants[value] = self._computed(op, value)
        return self._constants[value]

    def _computed(self, op: ir.Operation, value: ir.OpResult) -> HostArray | None:
        if op.name in ("stablehlo.constant", "arith.constant"):
            return elements(op)
        rule = rule_of(op)
        if rule is None or len(op.regions) or not op.name.startswith(_DIALECTS):
            return None
        if op.name in OF_DEVICES and self.grid.size > 1:
            return None  # each device has another value
        operands = [self.constant(v) for v in op.operands]
        if any(x is None for x in operands) or op.name.startswith("stablehlo.custom"):
            return None
        arrays = [
            ConcreteArray(raised_type(v.type), x)
            for v, x in zip(op.operands, operands, strict=True)
        ]
        context: Param = self  # its subclass is one
        with outside_traces():
            raised: Param = rule(context, op, *arrays)
        results = raised if isinstance(raised, (list, tuple)) else [raised]
        return results[value.result_number].host()


def owner_of(value: ir.Value) -> ir.Operation | None:
    """Returns the operation that a value is a result of; None for arguments."""
    if not isinstance(value, ir.OpResult):
        return None
    return value.owner.operation if isinstance(value.owner, ir.OpView) else value.owner


def _are_equal(a: HostArray, b: HostArray) -> bool:
    """Tells whether arrays of one type hold the same bytes; compares a few of them first."""
    left, right = a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8)
    step = max(1, len(left) // _COMPARED_FIRST)
    return np.array_equal(left[::step], right[::step]) and np.array_equal(left, right)
