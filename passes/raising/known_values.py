"""The values of a module that is raised: constants, extents of open dimensions, and weights.

Elsewhere: the walk over the module, which uses these (`module.py`).
"""

from __future__ import annotations

import abc
from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import Dtype, Extent, HostArray, Param
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.symbolic_dims import is_extent
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer, state
from axir.passes.raising.dimensions.extents import (
    Comparison,
    as_value,
    computes_extents,
    extents_array,
    followed,
)
from axir.passes.raising.dimensions.open_dimensions import (
    DimensionArgument,
)

from .table import Raised, result_dtype

# Operations that combine known extents with others.
_PUT_TOGETHER = ("stablehlo.clamp", "stablehlo.concatenate")
# How many bytes of arrays are compared before all bytes are.
_COMPARED_FIRST = 64


class KnownValues(abc.ABC):
    """The raised values of a module, and what is known about them.

    Attributes:
        assumed: Constraints of open dimensions that operations have added.
        weight_names: Names of weights, by the identities of the arrays.
    """

    def __init__(self) -> None:
        self.assumed: set[str] = set()
        self.weight_names: dict[int, str] = {}
        self._values: dict[ir.Value, Value] = {}
        # The results of `constant` for results of operations.
        self._constants: dict[ir.Value, HostArray | None] = {}
        # The extents that values of the trace hold.
        self._extents: dict[Value, HostArray] = {}
        # The names of integer arguments, by their raised values.
        self._numbers: dict[Value, str] = {}
        self._replaced: dict[ir.Operation, Sequence[Value]] = {}
        self._weights: list[ConcreteArray] = []

    @abc.abstractmethod
    def _computed(self, op: ir.Operation, value: ir.OpResult) -> HostArray | None:
        """Returns the elements of a result that depends only on constants; None for others."""

    # Extents ------------------------------------------------------------------------------------

    def _follow(self, op: ir.Operation, results: list[Raised]) -> list[Raised]:
        """Records the extents that an operation's result holds, if an operand holds extents.

        Returns:
            The results; extents that are computed from others become expressions.
        """
        if len(results) != 1 or type(results[0]) is not Tracer or results[0] in self._extents:
            return results
        held = [self._values.get(v) for v in op.operands]
        if not any(type(x) is Tracer and x in self._extents for x in held):
            return results
        found = followed(op, self._whole_extents)
        if found is None:
            return results
        [result] = results
        if all(map(is_extent, found.reshape(-1).tolist())):
            result = as_value(found, result_dtype(op, 0))
        if type(result) is Tracer:
            self._extents[result] = found
        return [result]

    def extents(self, value: ir.Value) -> HostArray | None:
        """Returns the extents that a value holds, of known and open dimensions; else None.

        In a concatenation of known and unknown extents, the unknown ones are None.
        """
        found = self._whole_extents(value)
        op = _owner(value)
        if found is not None or op is None or op.name not in _PUT_TOGETHER:
            return found
        return followed(op, self.extents)

    def _whole_extents(self, value: ir.Value) -> HostArray | None:
        held = self._values.get(value)
        if type(held) is Tracer and held in self._extents:
            return self._extents[held]
        known = self.constant(value)
        return None if known is None else known.astype(object)

    def want_extents(self, value: ir.Value) -> None:
        """Raises `DimensionArgument` if a shape is computed from an integer argument."""
        pending, seen = [value], set()
        while pending:
            current = pending.pop()
            held = self._values.get(current)
            if type(held) is Tracer and held in self._numbers and held not in self._extents:
                raise DimensionArgument(self._numbers[held])
            op = _owner(current)
            if op is not None and op not in seen and computes_extents(op):
                seen.add(op)
                pending += op.operands

    def extents_value(self, extents: Sequence[Extent], shape: Sequence[int], dtype: Dtype) -> Value:
        """Returns extents as a value, from which `extents` returns them later."""
        array = extents_array(extents, shape)
        made = as_value(array, dtype)
        if type(made) is Tracer:
            self._extents[made] = array
        return made

    def assume(self, condition: ir.Value) -> None:
        """Records that a comparison of extents holds in all calls."""
        found = self.extents(condition)
        if found is not None and isinstance(found.item(), Comparison) and found.item().text:
            self.assumed.add(found.item().text)

    # Values -------------------------------------------------------------------------------------

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
        op = _owner(value)
        if op is None:
            return None
        if value not in self._constants:
            self._constants[value] = self._computed(op, value)
        return self._constants[value]


def _owner(value: ir.Value) -> ir.Operation | None:
    """Returns the operation that a value is a result of; None for arguments."""
    if not isinstance(value, ir.OpResult):
        return None
    return value.owner.operation if isinstance(value.owner, ir.OpView) else value.owner


def _are_equal(a: HostArray, b: HostArray) -> bool:
    """Tells whether arrays of one type hold the same bytes; compares a few of them first."""
    left, right = a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8)
    step = max(1, len(left) // _COMPARED_FIRST)
    return np.array_equal(left[::step], right[::step]) and np.array_equal(left, right)
