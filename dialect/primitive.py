"""`Primitive`: an operation, its rules, and `bind`, which applies it to values.

`bind` evaluates at once when no operand is a tracer, and otherwise appends one op to the trace of
the innermost tracer: staging is by data. What does not live here: the rules of the built-in
operations (`ops/`) and the recording of ops (`tracer.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .application import Application
from .array import Array, ConcreteArray, as_array
from .config import config
from .context import state
from .dtypes import is_key, storage
from .effects import acts_where_it_stands
from .errors import DTypeError, FloatingPointError_, MissingRuleError, UnsupportedRuleError
from .numerics import ignore_floating_point_warnings, restore_warnings
from .tracer import Tracer
from .types import ShapedArray

RULES = ("infer", "evaluate", "jvp", "transpose", "batch", "lower", "samples")


class Unsupported:
    """Stands where a rule cannot exist; calling it raises the reason.

    >>> Unsupported("transpose", "sort", "sort is not linear").reason
    'sort is not linear'
    """

    def __init__(self, rule: str, name: str, reason: str):
        self.rule, self.name, self.reason = rule, name, reason

    def __call__(self, *args: Any, **params: Any) -> Any:
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

    args: tuple[Any, ...]
    params: dict[str, Any] = field(default_factory=dict)
    is_smooth: bool = True
    tolerance: float = 16.0
    invariants: Callable[[list[Any]], list[Any]] | None = None


# Memoized inference: a primitive applied again to the same types costs one dictionary look-up.
_APPLICATION_LIMIT = 8192


class Primitive:
    """An operation with its rules.

    The rules are attributes under fixed names, `None` while absent:

    | rule | signature |
    | --- | --- |
    | `infer` | `(*types, **params) -> type(s)` |
    | `evaluate` | `(*numpy arrays, **params) -> numpy array(s)` |
    | `jvp` | `(primals, tangents, outs, **params) -> tangent(s)` |
    | `value_and_jvp` | `(primals, tangents, **params) -> outs, tangents`: in place of `jvp` for
    calls and users' primitives, which compute both together |
    | `linearize` | the same, where the known part must be split from the linear one; `jvp` serves
    where the results are known, if there is one, too |
    | `transpose` | `(cotangents, *operands, **params) -> cotangent or None per operand` |
    | `batch` | `(operands, axes, **params) -> result(s), axis or axes` |
    | `lower` | `(context, *values, **params) -> value(s)` |
    | `samples` | `() -> list of Sample` |

    Args:
        name: The op's name in the dialect: `sin` becomes `jaxpr.sin`.
        multiple_results: Whether `bind` returns a list of results.
    """

    def __init__(self, name: str, multiple_results: bool = False):
        self.name = name
        self.op_name = f"jaxpr.{name}"
        self.multiple_results = multiple_results
        self.infer: Callable[..., Any] | None = None
        self.evaluate: Callable[..., Any] | None = None
        self.jvp: Callable[..., Any] | None = None
        self.value_and_jvp: Callable[..., Any] | None = None
        self.linearize: Callable[..., Any] | None = None
        self.transpose: Callable[..., Any] | None = None
        self.batch: Callable[..., Any] | None = None
        self.lower: Callable[..., Any] | None = None
        self.samples: Callable[[], list[Sample]] | None = None
        # `(**params) -> function`: what the op comes down to once nothing differentiates it.
        self.body: Callable[..., Any] | None = None
        # Parameters that hold functions which nothing calls before somebody differentiates: such a
        # function may hold the op itself.
        self.deferred_params: tuple[str, ...] = ()
        # `(*operands, **params) -> (function, operands) or None`: the call that the op comes down
        # to, where the values of operands tell.
        self.chosen_body: Callable[..., Any] | None = None
        # `(equation, marks of the results that are used, simplify) -> equation`: the same with
        # simplified bodies, and without operands and results that nobody needs.
        self.reduced: Callable[..., Any] | None = None
        # `(*operands, **params) -> an equal value or None`: identities that `simplify` uses.
        self.simplify: Callable[..., Any] | None = None
        # Whether the op calls the function that its parameter `jaxpr` holds.
        self.is_call = False
        # Whether exchanging the two operands changes nothing.
        self.is_commutative = False
        # Whether `infer` is remembered by types and parameters. Not where parameters hold
        # functions: the memory would keep them, and the arrays they captured, alive.
        self.is_memoized = True
        # Whether it is recorded in the ambient trace even if no operand is a tracer.
        self.is_staged = False
        # Whether applying it does something besides giving results, so that no pass may drop,
        # repeat or merge its ops.
        self.is_effectful = False
        # Whether the effect is only that somebody looks at values: where a choice between ops
        # becomes a choice between their results, all may be looked at.
        self.is_observer = False
        # `(**params) -> names of the mapped axes over which the op communicates`.
        self.axis_names: Callable[..., tuple[Any, ...]] | None = None
        # `(operands, axes, frame, **params) -> result(s), axis or axes`: the batched form of an op
        # that communicates over the axis which `frame` names.
        self.batch_named: Callable[..., Any] | None = None
        # Whether operands may be random keys; `lower` gets their words, uint32 along a last axis.
        self.takes_keys = False
        # Whether it only moves elements. Then they may be random keys, too, and on their words the
        # op is itself, batched over the words.
        self.moves_elements = False
        # Named tuple classes of parameters that are such, for reading them back from text.
        self.param_types: dict[str, type] = {}
        # Set by `def_impl`: gets the operands as they were passed, for a user's own primitive.
        self.implementation: Callable[..., Any] | None = None
        self._applications: dict[Any, Application] = {}

    def __repr__(self) -> str:
        return self.name

    def bind(self, *operands: Any, **params: Any) -> Any:
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
        if self.implementation is not None:
            return self.implementation(*operands, **params)
        return self._evaluate(operands, params)

    def _evaluate(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        hosts = []
        types = []
        device = None
        for operand in operands:
            if type(operand) is not ConcreteArray:
                operand = as_array(operand, f"operand of {self.name}")
            types.append(operand.type)
            host = operand._host
            hosts.append(operand.host() if host is None else host)
            if operand._device is not None:
                device = operand._device
        if self.evaluate is None:
            raise MissingRuleError(f"Evaluation rule for '{self.name}' not implemented")
        result_types = self.apply_to(tuple(types), params).results
        token = ignore_floating_point_warnings()
        try:
            results = self.evaluate(*hosts, **params)
        finally:
            restore_warnings(token)
        if type(result_types) is ShapedArray:
            return _wrap(self, result_types, results, device)
        return [_wrap(self, t, r, device) for t, r in zip(result_types, results, strict=True)]

    def apply_to(self, types: tuple[ShapedArray, ...], params: dict[str, Any]) -> Application:
        """Returns the (memoized) outcome of `infer` for operand types and parameters."""
        if not self.is_memoized:
            return Application(self._infer(types, params))
        key = (types, *params.items())
        try:
            application = self._applications.get(key)
        except TypeError:  # an unhashable parameter of a user's own primitive
            return Application(self._infer(types, params))
        if application is None:
            if len(self._applications) >= _APPLICATION_LIMIT:
                self._applications.clear()
            application = self._applications[key] = Application(self._infer(types, params))
        return application

    def _infer(self, types: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
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
        results = self.infer(*types, **params)
        if self.multiple_results:
            return [_as_type(r) for r in results]
        return _as_type(results)

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Returns what `bind` takes for the parameters of an equation: the same.

        Functions and rules among them are values that `bind` understands.
        """
        return dict(params)

    def def_impl(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Defines how concrete operands are evaluated; the rule gets them as they were passed."""
        self.implementation = rule
        return rule

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Defines the result type(s) for operand types and parameters."""
        self.infer = rule
        self._applications.clear()
        return rule


def _as_type(result: Any) -> ShapedArray:
    if type(result) is ShapedArray:
        return result
    return ShapedArray(result.shape, result.dtype, getattr(result, "weak_type", False))


def _wrap(primitive: Primitive, array_type: ShapedArray, host: Any, device: Any) -> Array:
    if type(host) is not np.ndarray or host.dtype != array_type.dtype:
        host = np.asarray(host, dtype=storage(array_type.dtype))
    if config.jax_debug_nans or config.jax_debug_infs:
        check_finite(primitive.name, host)
    return ConcreteArray(array_type, host, None, device)


def check_finite(name: str, host: np.ndarray) -> None:
    """Raises `FloatingPointError` if the debugging options forbid what an array holds."""
    if host.dtype.kind not in "fcV" or host.dtype.names is not None:
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
