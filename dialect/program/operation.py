"""`Operation`: the declaration of an op, and its result types for given operand types.

Elsewhere: how ops are applied to values (`primitive.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import ClassVar, NoReturn

from iree.compiler import ir

from axir.dialect.core.annotations import Foreign, HostArray, Param, Params, Returning, UserFunction
from axir.dialect.core.attributes import encode
from axir.dialect.core.errors import UnsupportedRuleError
from axir.dialect.core.late_modules import LateNames
from axir.dialect.core.types import ShapedArray

from .rules import (
    AxisNamesRule,
    BatchNamedRule,
    BatchRule,
    EvaluateRule,
    FixedLayoutRule,
    InferRule,
    JvpRule,
    Operand,
    Results,
    ResultTypes,
    SimplifyRule,
    TransposeRule,
    Value,
    ValueAndJvpRule,
    VaryingRule,
)

# Views of programs are the last modules of the room, and refer to the modules before them.
later = LateNames(
    "axir.dialect.program",
    {
        "effects": ["primitives_that_act"],
        "jaxpr": ["ClosedJaxpr", "Jaxpr"],
        "op_table": ["OPS"],
    },
)


class Application:
    """Result types of a primitive for operand types and parameters.

    Attributes:
        results: The result type, or a list of them for a primitive with multiple results.
        mlir_types: The same as MLIR types; None until first recorded.
        attributes: The parameters as MLIR attributes; None until first recorded.
        is_widened: Whether the primitive computes with wide forms of the operands' elements, or
            returns wide forms of its results' elements (`narrow_elements.py`); or is open.
        is_open: Whether extents of its results are symbolic dimensions: it can only be recorded.
        missing: For each operand the named axes along which its type must vary first, so that all
            operands agree; None if they do.
    """

    __slots__ = ("attributes", "is_open", "is_widened", "missing", "mlir_types", "results")

    def __init__(
        self,
        results: ResultTypes,
        is_widened: bool = False,
        missing: Sequence[tuple[Hashable, ...]] | None = None,
    ):
        self.results = results
        types = [results] if type(results) is ShapedArray else results
        self.is_open = any([t.is_open for t in types])
        self.is_widened = is_widened or self.is_open
        self.missing = missing
        self.mlir_types: list[ir.Type] | None = None
        self.attributes: dict[str, ir.Attribute] | None = None

    def materialize(self, params: Params) -> None:
        """Makes the MLIR types and attributes."""
        results = self.results
        types = [results] if type(results) is ShapedArray else results
        self.mlir_types = [t.mlir for t in types]
        self.attributes = {name: encode(value) for name, value in params.items()}


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
    lower: Returning[object] | None = None
    # `() -> list of Sample`: inputs for the tests, and for nothing else.
    samples: Callable[[], list[Sample]] | None = None


RULES = tuple(rule.name for rule in fields(Rules))


@dataclass(repr=False, eq=False)
class Operation(Rules):
    """An operation by its declaration: its rules, and what else is said of it.

    Equations name it. `Primitive` applies it, and knows the types of the rules that take or give
    functions, which are made of equations.

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
    dimensions: Returning[object] | None = None
    # `(partitioner, equation, operands) -> results`: the op on parts, in place of `dimensions`.
    partition: Returning[object] | None = None
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
    body: Returning[object] | None = None
    # `(*operands, **params) -> (function, operands) or None`: an equivalent call, if the values of
    # operands determine it.
    chosen_body: Returning[object] | None = None
    # `(equation, marks of the results that are used, simplify) -> equation`: the same with
    # simplified bodies, and without unused operands and results.
    reduced: Returning[object] | None = None
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

    def __post_init__(self) -> None:
        self.op_name = f"jaxpr.{self.name}"

    def __repr__(self) -> str:
        return self.name

    def bind(self, *operands: Operand, **params: Param) -> Results:
        """Applies the operation to values."""
        raise NotImplementedError(self.name)

    def apply_to(self, types: tuple[ShapedArray, ...], params: Params) -> Application:
        """Returns the outcome of the operation for operand types and parameters."""
        raise NotImplementedError(self.name)
