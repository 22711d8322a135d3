"""`Primitive`: an operation, its rules, and `bind`, which applies it to values.

`bind` evaluates at once when no operand is a tracer, and otherwise appends one op to the trace of
the innermost tracer: staging is by data. Elsewhere: the rules of the built-in operations (`ops/`)
and the recording of ops (`tracer.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import ClassVar, NoReturn, TypeAlias

import numpy as np

from axir.dialect.core.annotations import (
    Foreign,
    HostArray,
    Param,
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
    UnsupportedRuleError,
    execution_forbidden,
)
from axir.dialect.core.manual_axes import NOWHERE
from axir.dialect.core.numerics import ignore_floating_point_warnings, restore_warnings
from axir.dialect.core.places import common_place, place_of_result, settled
from axir.dialect.core.state import state
from axir.dialect.core.symbolic_dims import (
    SymbolicDimError,
    as_traced,
    is_symbolic_dim,
)
from axir.dialect.core.types import ShapedArray

from .effects import acts_where_it_stands
from .meshes.varying_axes import Axes, joined, missing_axes, varying_results
from .narrow_elements import has_narrow, infer_narrow, narrowed, widened, widened_params
from .origins import keep_origin
from .primitive_application import Application
from .rules import (
    AxisNamesRule,
    BatchNamedRule,
    BatchRule,
    BodyRule,
    ChosenBodyRule,
    DimensionsRule,
    EvaluateRule,
    FixedLayoutRule,
    HostArrays,
    InferRule,
    JvpRule,
    LowerRule,
    Operand,
    PartitionRule,
    ReducedRule,
    Results,
    ResultTypes,
    SamplesRule,
    SimplifyRule,
    TransposeRule,
    Value,
    ValueAndJvpRule,
    VaryingRule,
)
from .tracer import Tracer


class Unsupported:
    """A placeholder for a rule that cannot exist; a call raises the reason.

    >>> Unsupported("transpose", "sort", "sort is not linear").reason
    'sort is not linear'
    """

    def __init__(self, rule: str, name: str, reason: str):
        self.rule, self.name, self.reason = rule, name, reason

    def __call__(self, *args: object, **params: object) -> NoReturn:
        """Raises the reason."""
        raise UnsupportedRuleError(
            f"Rule {self.rule!r} of {self.name!r} cannot exist: {self.reason}"
        )


@dataclass(frozen=True)
class Sample:
    """Inputs that exercise a primitive; tests of every rule are generated from them.

    Attributes:
        args: NumPy arrays (the operands).
        params: Parameters of the primitive.
        is_smooth: Whether derivatives may be compared with finite differences there.
        tolerance: Multiple of the dtype's resolution by which IREE may differ from the evaluator.
        invariants: From the list of results to values that the operands determine, as a traceable
            function; for results that are not unique (eigenvectors have a free sign).
    """

    args: tuple[HostArray, ...]
    params: Params = field(default_factory=dict)
    is_smooth: bool = True
    tolerance: float = 16.0
    invariants: Callable[[list[Value]], list[Value]] | None = None


# Memoized inference: applying a primitive to the same types again costs one look-up.
_APPLICATION_LIMIT = 8192


@dataclass(init=False, repr=False, eq=False, kw_only=True)
class Rules:
    """The rules that every op has, `None` while absent.

    If an op of the table lacks one of them, it has an `Unsupported` with the reason instead.
    """

    # `(*types, **params) -> type(s)`; raises the user's error.
    infer: InferRule | None = None
    # `(*numpy arrays, **params) -> numpy array(s)`
    evaluate: EvaluateRule | None = None
    # `(primals, tangents, outs, **params) -> tangent(s)`
    jvp: JvpRule | None = None
    # `(cotangents, *operands, **params) -> cotangent or None per operand`
    transpose: TransposeRule | None = None
    # `(operands, axes, **params) -> result(s), axis or axes`
    batch: BatchRule | None = None
    # `(context, *values, **params) -> value(s)`
    lower: LowerRule | None = None
    # `() -> list of Sample`: inputs for the tests, and for nothing else.
    samples: SamplesRule | None = None


RULES = tuple(rule.name for rule in fields(Rules))


@dataclass(repr=False, eq=False)
class Primitive(Rules):
    """An operation: its rules, and the other fields of its declaration.

    Args:
        name: The op's name in the dialect: `sin` becomes `jaxpr.sin`.
        multiple_results: Whether `bind` returns a list of results.
    """

    name: str
    multiple_results: bool = False
    op_name: str = field(init=False)
    _: KW_ONLY
    # Names and types of its parameters, in the notation of `parameters.py`; all of them are always
    # present. None if undeclared, as for users' own primitives: then any parameters are allowed.
    parameters: Mapping[str, Foreign] | None = None

    # `(primals, tangents, **params) -> outs, tangents`: in place of `jvp` for calls and users'
    # primitives, which compute both together.
    value_and_jvp: ValueAndJvpRule | None = None
    # The same, if the known part must be split from the linear one. If the op also has a `jvp`,
    # that serves where the results are known.
    linearize: ValueAndJvpRule | None = None
    # `(operands, axes, frame, **params) -> result(s), axis or axes`: the batched form of an op
    # that communicates over the axis which `frame` names.
    batch_named: BatchNamedRule | None = None
    # `(operand types, result types, **params) -> Dimensions, a function, or None`: the op's work on
    # parts of arrays. Without it, or with None, the op gets whole arrays.
    dimensions: DimensionsRule | None = None
    # `(partitioner, equation, operands) -> results`: the op on parts, in place of `dimensions`.
    partition: PartitionRule | None = None
    # `(**params) -> layout`: the layout that the op declares for its result.
    fixed_layout: FixedLayoutRule | None = None
    # `(axes of each operand, **params) -> axes of each result`: the named axes along which they
    # differ. By default, results differ along the axes of all operands.
    varying: VaryingRule | None = None
    # `(**params) -> names of the mapped axes over which the op communicates`.
    axis_names: AxisNamesRule | None = None
    # `(*operands, **params) -> an equal value or None`: identities that `simplify` uses.
    simplify: SimplifyRule | None = None
    # `(**params) -> function`: an equivalent function, once differentiation is over.
    body: BodyRule | None = None
    # `(*operands, **params) -> (function, operands) or None`: an equivalent call, if the values of
    # operands determine it.
    chosen_body: ChosenBodyRule | None = None
    # `(equation, marks of the results that are used, simplify) -> equation`: the same with
    # simplified bodies, and without unused operands and results.
    reduced: ReducedRule | None = None
    # `(*operands, **params) -> result(s)`: gets the operands as they were passed, in place of
    # `evaluate`. Users' primitives set it by `def_impl`.
    implementation: UserFunction | None = None

    # Whether the op calls the function that its parameter `jaxpr` holds.
    is_call: bool = False
    # Whether exchanging the two operands changes nothing.
    is_commutative: bool = False
    # Whether `infer` is remembered by types and parameters. Not where parameters hold
    # functions: the memory would keep them, and the arrays they captured, alive.
    is_memoized: bool = True
    # Whether it is recorded in the ambient trace even if no operand is a tracer.
    is_staged: bool = False
    # Whether applying it has effects, so that no pass may drop, repeat or merge its ops.
    is_effectful: bool = False
    # Whether its only effect is to observe values. If a choice between ops becomes a choice between
    # their results, the values of all of them may be observed.
    is_observer: bool = False
    # Whether operands may be random keys; `lower` gets their words, uint32 along a last axis.
    takes_keys: bool = False
    # Whether it takes elements of few bits, such as float8 and int4, as they are. Other ops get
    # wide operands, and their results are rounded (`narrow_elements.py`).
    takes_narrow: bool = False
    # Whether it only moves elements. Then these may be random keys, too: on their words the op is
    # the same op, batched over the words.
    moves_elements: bool = False

    # JAX's question to primitives that take functions; here functions are parameters.
    call_primitive: ClassVar[bool] = False
    map_primitive: ClassVar[bool] = False

    _applications: dict[Hashable, Application] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.op_name = f"jaxpr.{self.name}"

    def __repr__(self) -> str:
        return self.name

    def bind(self, *operands: Operand, **params: Param) -> Results:
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
        if not self.is_memoized:
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

    def _by_own_rule(self, *operands: Operand, **params: Param) -> Results:
        return self._evaluate(operands, params)

    def abstract_eval(
        self, *avals: ShapedArray, **params: Param
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
