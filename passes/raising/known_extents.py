"""Extents that values of a module hold while it is raised, and conditions on extents.

Elsewhere: the extents that an operation computes (`extents.py`), conditions of operations on open
dimensions (`wanted_dimensions.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from iree.compiler import ir

from axir.dialect.core.annotations import Dtype, Extent, HostArray
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.state import presuming
from axir.dialect.core.symbolic.texts import with_constraints
from axir.dialect.core.symbolic_dims import SymbolicDim, is_extent
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer, state
from axir.passes.raising.dimensions.extents import (
    Comparison,
    as_value,
    computes_extents,
    extents_array,
    followed,
)
from axir.passes.raising.dimensions.open_dimensions import DimensionArgument

from .known_values import KnownValues, owner_of
from .table import Raised, result_dtype

# Operations that combine known extents with others.
_PUT_TOGETHER = ("stablehlo.clamp", "stablehlo.concatenate")
# Constants of up to so many integers are kept for indices of slices.
_FEW = 64


class KnownExtents(KnownValues):
    """The part of a `RaisingContext` that knows extents.

    Attributes:
        assumed: Conditions without which the program would be invalid.
        presumed: Conditions without which parts of it would be invalid that may not run.
    """

    def __init__(self, module: ir.Module):
        super().__init__(module)
        self.assumed: set[str] = set()
        self.presumed: set[str] = set()
        # The extents that values of the trace hold, and the integers of constants.
        self._extents: dict[Value, HostArray] = {}
        self._integers: dict[Value, HostArray] = {}
        # The names of integer arguments, by their raised values.
        self._numbers: dict[Value, str] = {}

    def _follow(self, op: ir.Operation, results: list[Raised]) -> list[Raised]:
        """Records the extents that an operation's result holds, if an operand holds extents.

        Returns:
            The results; extents that are computed from others become expressions.
        """
        if len(results) != 1 or type(results[0]) is not Tracer or results[0] in self._extents:
            return results
        self._note_integers(op, results[0])
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

    def _note_integers(self, op: ir.Operation, result: Tracer) -> None:
        """Records the elements of a constant of few integers, which has become an op."""
        is_small = result.dtype.kind in "iu" and not result.type.is_open and result.size <= _FEW
        known = self.constant(op.results[0]) if is_small and not len(op.regions) else None
        if known is not None:
            self._integers[result] = known.astype(object)

    def extents(self, value: ir.Value) -> HostArray | None:
        """Returns the extents that a value holds, of known and open dimensions; else None.

        In a concatenation of known and unknown extents, the unknown ones are None.
        """
        found = self._whole_extents(value)
        op = owner_of(value)
        if found is not None or op is None or op.name not in _PUT_TOGETHER:
            return found
        return followed(op, self.extents)

    def _whole_extents(self, value: ir.Value) -> HostArray | None:
        held = self._values.get(value)
        if type(held) is Tracer and held in self._extents:
            return self._extents[held]
        known = self.constant(value)
        return None if known is None else known.astype(object)

    def held(self, value: Value) -> HostArray | None:
        """Returns the few integers or extents that a raised value holds; None if unknown."""
        if type(value) is ConcreteArray:
            return value.host().astype(object) if value.dtype.kind in "iu" else None
        found = self._extents.get(value)
        return self._integers.get(value) if found is None else found

    def want_extents(self, value: ir.Value) -> None:
        """Raises `DimensionArgument` if a shape is computed from an integer argument."""
        pending, seen = [value], set()
        while pending:
            current = pending.pop()
            held = self._values.get(current)
            if type(held) is Tracer and held in self._numbers and held not in self._extents:
                raise DimensionArgument(self._numbers[held])
            op = owner_of(current)
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

    def presuming(self, condition: str | None) -> AbstractContextManager[None]:
        """Lets a condition on extents hold while a body is traced that would not run otherwise."""
        if condition is None:
            return nullcontext()
        self.presumed.add(condition)
        outer = state.presumed

        @functools.cache
        def presumed(extent: SymbolicDim) -> SymbolicDim:
            known = extent if outer is None else outer(extent)
            found = with_constraints(known, (*known.constraints, condition))
            assert isinstance(found, SymbolicDim)
            return found

        return presuming(presumed)
