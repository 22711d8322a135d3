"""`Primitive`: an operation, its rules, and `bind`, which applies it to values.

`bind` evaluates at once when no operand is a tracer, and otherwise appends one op to the trace of
the innermost tracer: staging is by data. Elsewhere: the rules of the built-in operations (`ops/`)
and the recording of ops (`tracer.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TypeAlias

import numpy as np

from axir.dialect.core.annotations import (
    Foreign,
    HostArray,
    Params,
    UserFunction,
    UserObject,
)
from axir.dialect.core.array import Array, ConcreteArray, Memories, as_array
from axir.dialect.core.config import config
from axir.dialect.core.dtypes import is_inexact, is_key, is_narrow, storage
from axir.dialect.core.errors import (
    DTypeError,
    FloatingPointError_,
    MissingRuleError,
    execution_forbidden,
)
from axir.dialect.core.host_arrays import ignore_floating_point_warnings, restore_warnings
from axir.dialect.core.places import common_place, place_of_result, settled
from axir.dialect.core.symbolic.terms import SymbolicDimError
from axir.dialect.core.symbolic_dims import as_traced, is_symbolic_dim
from axir.dialect.core.types import NOWHERE, ShapedArray

from .described_arrays import keep_origin
from .effects import acts_where_it_stands
from .equation import Equation
from .function_rules import (
    BodyRule,
    ChosenBodyRule,
    DimensionsRule,
    LowerRule,
    PartitionRule,
    ReducedRule,
)
from .meshes.varying_axes import Axes, joined, missing_axes, varying_results
from .narrow_elements import has_narrow, infer_narrow, narrowed, widened, widened_params
from .operation import Application, Operation
from .rules import (
    HostArrays,
    Operand,
    Results,
    ResultTypes,
)
from .tracer import Tracer, state

# Memoized inference: applying a primitive to the same types again costs one look-up.
_APPLICATION_LIMIT = 8192


@dataclass(repr=False, eq=False)
class Primitive(Operation):
    """An operation: its rules, and `bind`.

    Args:
        name: The op's name in the dialect: `sin` becomes `jaxpr.sin`.
        multiple_results: Whether `bind` returns a list of results.
    """

    _: KW_ONLY
    lower: LowerRule | None = None
    dimensions: DimensionsRule | None = None
    partition: PartitionRule | None = None
    body: BodyRule | None = None
    chosen_body: ChosenBodyRule | None = None
    reduced: ReducedRule | None = None

    _applications: dict[Hashable, Application] = field(init=False, default_factory=dict)

    def bind(self, *operands: Operand, **params: object) -> Results:
        """Applies the primitive: now if all operands are concrete, else by recording an op."""
        trace = None
        for operand in operands:
            if type(operand) is Tracer:
                candidate = operand.owner
                if trace is None or candidate.level > trace.level:
                    trace = candidate
        if self.is_staged:
            ambient = state.ambient
            if trace is None or (
                ambient is not None
                and ambient.level > trace.level
                and acts_where_it_stands(self, params)
            ):
                trace = ambient
        if trace is not None:
            branch = state.branch
            if branch is not None and branch.level > trace.level:
                trace = branch
            return trace.record(self, operands, params)
        if state.keeps_origins:
            results = self._applied_now(operands, params)
            keep_origin(self, operands, params, results)
            return results
        return self._applied_now(operands, params)

    def _applied_now(self, operands: Sequence[Operand], params: Params) -> Results:
        if self.implementation is not None:
            return self.implementation(*operands, **params)
        return self._evaluate(operands, params)

    def _evaluate(self, operands: Sequence[Operand], params: Params) -> Results:  # noqa: C901
        arrays = []
        types = []
        committed: list[ConcreteArray] = []
        device = None
        for operand in operands:
            if type(operand) is not ConcreteArray:
                if is_symbolic_dim(operand):
                    return self.bind(*map(as_traced, operands), **params)
                operand = as_array(operand, f"operand of {self.name}")
            types.append(operand.type)
            arrays.append(operand)
            place = operand._device
            if place is not None:
                committed.append(operand)
                if device is None:
                    device = place
                elif place is not device:
                    device = common_place(self.name, [as_array(x) for x in operands])
        remote = _remote_device(committed or arrays) if Memories.has_remote else None
        if remote is not None:
            return _run_remote_op(self, arrays, params, remote)
        hosts = [x.host() if x._host is None else x._host for x in arrays]
        if config.jax_no_execution and state.ambient is None:
            raise execution_forbidden(self.name)
        if self.evaluate is None:
            raise MissingRuleError(f"Evaluation rule for '{self.name}' not implemented")
        application = self.apply_to(tuple(types), params)
        result_types = application.results
        if application.is_widened:
            if application.is_open:
                return self._recorded(operands, params)
            hosts, params = [widened(host) for host in hosts], widened_params(params)
        token = ignore_floating_point_warnings()
        try:
            results = self.evaluate(*hosts, **params)
        finally:
            restore_warnings(token)
        if type(result_types) is ShapedArray:
            if device is not None:
                device = place_of_result(device, committed, result_types.shape)
            return _wrap(self, result_types, results, device)
        return [
            _wrap(self, t, r, place_of_result(device, committed, t.shape))
            for t, r in zip(result_types, results, strict=True)
        ]

    def _recorded(self, operands: Sequence[Operand], params: Params) -> Results:
        """Records an op with known operands and results of unknown extents."""
        trace, branch = state.ambient, state.branch
        if trace is None:
            raise SymbolicDimError(
                f"{self.name}: the shape of the result has symbolic dimensions, which are not "
                "known here.",
                "They are for functions that are exported: axir.export.export(f)(specs).",
            )
        if branch is not None and branch.level > trace.level:
            trace = branch
        return trace.record(self, operands, params)

    def apply_to(self, types: tuple[ShapedArray, ...], params: Params) -> Application:
        """Returns the (memoized) outcome of `infer` for operand types and parameters."""
        if not self.is_memoized or state.presumed is not None:
            return Application(self._infer(types, params), missing=self._missing(types))
        key = (types, *params.items())
        try:
            application = self._applications.get(key)
        except TypeError:  # an unhashable parameter of a user's own primitive
            return Application(self._infer(types, params), missing=self._missing(types))
        if application is None:
            if len(self._applications) >= _APPLICATION_LIMIT:
                self._applications.clear()
            results = self._infer(types, params)
            is_widened = self.widens(types, results, params)
            missing = self._missing(types)
            application = self._applications[key] = Application(results, is_widened, missing)
        return application

    def _missing(self, types: Sequence[ShapedArray]) -> Sequence[tuple[Hashable, ...]] | None:
        """Returns the axes along which operands must vary first: operands of one op vary alike."""
        if self.varying is not None or self.is_call or self.body is not None:
            return None
        return missing_axes([t.varying for t in types])

    def widens(self, types: tuple[ShapedArray, ...], results: ResultTypes, params: Params) -> bool:
        """Tells whether the op computes with wide forms of elements of few bits."""
        if self.moves_elements or self.takes_narrow or not self.is_memoized:
            return False
        return has_narrow(types, params) or has_narrow(results, {})

    def _infer(self, types: tuple[ShapedArray, ...], params: Params) -> ResultTypes:
        if self.infer is None:
            raise MissingRuleError(
                f"Abstract evaluation for '{self.name}' not implemented",
                f"Define it with {self.name}.def_abstract_eval(rule).",
            )
        if not (self.takes_keys or self.moves_elements) and any(is_key(t.dtype) for t in types):
            raise DTypeError(
                f"{self.name} does not accept random keys, but got "
                f"{' and '.join(map(str, types))}.",
                "Keys can be moved, indexed, compared and given to axir.random; "
                "axir.random.key_data returns their words.",
            )
        given = [t.varying for t in types]
        if any(given):
            types = tuple([t.update(varying=NOWHERE) for t in types])
        if self.is_memoized and has_narrow(types, {}):
            results = infer_narrow(self.infer, types, params)
        else:
            results = self.infer(*types, **params)
        found = [*map(_as_type, results)] if self.multiple_results else [_as_type(results)]
        # The rules of ops with functions take time, and the types of their results suffice.
        has_rule = self.varying is not None and self.is_memoized
        if has_rule or any(given) or any(t.varying for t in found):
            found = self._varying_results(found, given, params)
        return found if self.multiple_results else found[0]

    def _varying_results(
        self, types: Sequence[ShapedArray], given: Sequence[Axes], params: Params
    ) -> list[ShapedArray]:
        """Returns types of results that state the mesh axes along which these vary."""
        found = varying_results(self, params, given)
        axes = [joined(given)] * len(types) if found is None else found
        return [t.update(varying=own) for t, own in zip(types, axes, strict=True)]

    def get_bind_params(self, params: Params) -> Params:
        """Returns the arguments of `bind` for the parameters of an equation: the same parameters.

        Functions and rules among them are values that `bind` accepts.
        """
        return dict(params)

    @property
    def impl(self) -> UserFunction:
        """The function that evaluates the primitive on arrays: a user's rule, or its own."""
        return self._by_own_rule if self.implementation is None else self.implementation

    def _by_own_rule(self, *operands: Operand, **params: object) -> Results:
        return self._evaluate(operands, params)

    def abstract_eval(
        self, *avals: ShapedArray, **params: object
    ) -> tuple[ResultTypes, frozenset[Primitive]]:
        """Returns the types of the results, given the operands' types, and the effects.

        >>> from axir import lax
        >>> lax.sin_p.abstract_eval(ShapedArray((2,), np.dtype("float32")))
        (ShapedArray(float32[2]), frozenset())
        """
        effects = frozenset([self]) if self.is_effectful else frozenset()
        return self.apply_to(avals, params).results, effects

    def def_impl(self, rule: UserFunction) -> UserFunction:
        """Defines how concrete operands are evaluated; the rule gets them as they were passed."""
        self.implementation = None if rule == self._by_own_rule else rule
        return rule

    def def_abstract_eval(self, rule: UserFunction) -> UserFunction:
        """Defines the result type(s) for operand types and parameters."""
        self.infer = rule
        self._applications.clear()
        return rule


def primitive_of(equation: Equation) -> Primitive:
    """Returns the primitive of an op, with the types of all its rules."""
    primitive = equation.primitive
    assert isinstance(primitive, Primitive)
    return primitive


def _remote_device(arrays: Sequence[ConcreteArray]) -> Foreign | None:
    """Returns the device with separate memory that one of the arrays is on, or None."""
    return next((x.remote_device for x in arrays if x.remote_device is not None), None)


RemoteRunner: TypeAlias = "Callable[[Primitive, Sequence[ConcreteArray], Params, Foreign], Results]"
_run_remote_op: RemoteRunner


def run_remote_ops_by(runner: RemoteRunner) -> None:
    """Sets the function that applies primitives to arrays in separate device memory.

    Args:
        runner: Takes a primitive, operands, parameters, and the device.
    """
    global _run_remote_op
    _run_remote_op = runner


def _as_type(result: ShapedArray | UserObject) -> ShapedArray:
    if type(result) is ShapedArray:
        return result
    return ShapedArray(result.shape, result.dtype, getattr(result, "weak_type", False))


def _wrap(
    primitive: Primitive, array_type: ShapedArray, host: HostArrays, device: Foreign
) -> Array:
    if type(host) is not np.ndarray or host.dtype != array_type.dtype:
        if is_narrow(array_type.dtype):
            host = narrowed(np.asarray(host), array_type.dtype)
        host = np.asarray(host, dtype=storage(array_type.dtype))
    if config.jax_debug_nans or config.jax_debug_infs:
        check_finite(primitive.name, host)
    made = ConcreteArray(array_type, host, None, device)
    return made if config.jax_default_device is None or device is not None else settled(made)


def check_finite(name: str, host: HostArray) -> None:
    """Raises `FloatingPointError` if the debugging options forbid an element of an array."""
    if not is_inexact(host.dtype):
        return
    if config.jax_debug_nans and bool(np.isnan(host).any()):
        raise _floating_point_error("nan", name)
    if config.jax_debug_infs and bool(np.isinf(host).any()):
        raise _floating_point_error("inf", name)


def _floating_point_error(value: str, name: str) -> FloatingPointError_:
    origin = state.origin
    purpose = ""
    if origin is not None and origin.primitive.name != name:
        purpose = f", which was computed for {origin.primitive.name}"
    return FloatingPointError_(
        f"invalid value ({value}) encountered in {name}{purpose}.",
        f"The option jax_debug_{value}s is on.",
    )
